package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/tracing-backend/tracing/pipeline"
)

// Memory in bytes that decoders allocate as the compressed data requests. It is charged to the
// budget while a decoder is in use.
const (
	zstdWindow    = 8 << 20 // the window that every zstd decoder should support, see RFC 8878
	minZstdWindow = 1 << 20
	lz4Blocks     = 8 << 20
)

// decoder is a reusable decompressor.
type decoder interface {
	io.Reader
	// Reset starts a new stream. It may read the header.
	Reset(io.Reader) error
}

// decoders holds a pool of decompressors for each supported content encoding.
type decoders struct {
	byName map[string]*decoderPool
}

type decoderPool struct {
	free    sync.Pool // of *bodyDecoder
	scratch int64     // bytes charged while one is in use
}

func newDecoders(budget *pipeline.Budget) *decoders {
	window := int64(zstdWindow)
	if budget.Limit() > 0 {
		window = min(window, max(budget.Limit()/4, minZstdWindow))
	}
	pool := func(scratch int64, make func() decoder) *decoderPool {
		p := &decoderPool{scratch: scratch}
		p.free.New = func() any { return &bodyDecoder{decoder: make(), in: bufio.NewReader(nil), pool: p} }
		return p
	}
	snappyPool := pool(0, func() decoder { return &snappyDecoder{} })
	return &decoders{byName: map[string]*decoderPool{
		"gzip":            pool(0, func() decoder { return new(gzip.Reader) }),
		"zstd":            pool(window, func() decoder { return newZstdDecoder(window) }),
		"zlib":            pool(0, func() decoder { return &zlibDecoder{} }),
		"deflate":         pool(0, func() decoder { return &deflateDecoder{} }),
		"snappy":          snappyPool,
		"x-snappy-framed": snappyPool,
		"lz4":             pool(lz4Blocks, func() decoder { return &lz4Decoder{lz4.NewReader(nil)} }),
	}}
}

var errTrailingData = errors.New("trailing data after the end of the compressed data")

// isIdentity reports whether the Content-Encoding is empty or identity.
func isIdentity(encoding string) bool {
	return encoding == "" || strings.EqualFold(strings.TrimSpace(encoding), "identity")
}

// bodyDecoder is a pooled decompressor, in use for one body. Decompressors read no further than
// needed from in, which is an io.ByteReader.
type bodyDecoder struct {
	decoder decoder
	in      *bufio.Reader
	pool    *decoderPool
	body    *body
}

// Read implements io.Reader.
func (d *bodyDecoder) Read(p []byte) (int, error) { return d.decoder.Read(p) }

// get returns a decompressor for the encoding of the body, positioned at the start of its data.
func (d *decoders) get(b *body) (*bodyDecoder, error) {
	pool := d.byName[strings.ToLower(strings.TrimSpace(b.encoding))]
	if pool == nil {
		return nil, badEncoding(fmt.Errorf("unsupported Content-Encoding: %.100s", b.encoding))
	}
	if err := b.charge(pool.scratch); err != nil {
		return nil, err
	}
	bd := pool.free.Get().(*bodyDecoder)
	bd.body = b
	bd.in.Reset(&b.wire)
	if s, ok := bd.decoder.(*snappyDecoder); ok {
		s.body = b
	}
	if err := bd.decoder.Reset(bd.in); err != nil {
		bd.release()
		return nil, err
	}
	return bd, nil
}

// release returns the decompressor to its pool.
func (d *bodyDecoder) release() {
	if s, ok := d.decoder.(*snappyDecoder); ok {
		*s = snappyDecoder{framed: s.framed}
	}
	d.body.charge(-d.pool.scratch) //nolint:errcheck // a smaller charge never fails
	d.body = nil
	d.in.Reset(nil)
	d.pool.free.Put(d)
}

// atEnd returns an error if other data follows the compressed data. Otherwise that data would be
// lost silently, and a client could send an unlimited amount of it.
func (d *bodyDecoder) atEnd() error {
	_, err := d.in.ReadByte()
	if err == nil {
		return errTrailingData
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// newZstdDecoder returns a decoder that starts no goroutines, so that it can be garbage collected
// without Close.
func newZstdDecoder(window int64) *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(uint64(window)))
	if err != nil {
		panic(fmt.Sprintf("BUG: zstd options: %v", err))
	}
	return d
}

// zlibDecoder creates its reader with the first data, because zlib.NewReader reads the header.
type zlibDecoder struct{ r io.ReadCloser }

// Read implements io.Reader.
func (d *zlibDecoder) Read(p []byte) (int, error) { return d.r.Read(p) }

// Reset implements decoder. It reads the header.
func (d *zlibDecoder) Reset(r io.Reader) (err error) {
	if d.r != nil {
		return d.r.(zlib.Resetter).Reset(r, nil)
	}
	d.r, err = zlib.NewReader(r)
	return err
}

// deflateDecoder reads the zlib format, which is what RFC 9110 defines for the name, and raw
// deflate data, which some clients send.
type deflateDecoder struct {
	active io.Reader // zlib or raw
	zlib   zlibDecoder
	raw    io.ReadCloser
}

// Read implements io.Reader.
func (d *deflateDecoder) Read(p []byte) (int, error) { return d.active.Read(p) }

// Reset implements decoder. It detects the format.
func (d *deflateDecoder) Reset(r io.Reader) error {
	br := bufio.NewReader(r)
	head, err := br.Peek(2)
	if err != nil {
		return unexpectedEOF(err)
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		d.active = &d.zlib
		return d.zlib.Reset(br)
	}
	if d.raw == nil {
		d.raw = flate.NewReader(br)
	}
	d.active = d.raw
	return d.raw.(flate.Resetter).Reset(br, nil)
}

// lz4Decoder adapts lz4.Reader, whose Reset has no result.
type lz4Decoder struct{ *lz4.Reader }

// Reset implements decoder.
func (d *lz4Decoder) Reset(r io.Reader) error {
	d.Reader.Reset(r)
	return nil
}

// snappyDecoder reads both snappy formats: a framed stream, which begins with a magic chunk, and a
// single block, which must be in memory as a whole.
type snappyDecoder struct {
	active io.Reader
	framed *snappy.Reader
	body   *body
}

// Read implements io.Reader.
func (d *snappyDecoder) Read(p []byte) (int, error) { return d.active.Read(p) }

const snappyMagic = "\xff\x06\x00\x00sNaPpY"

// Reset implements decoder. It detects the format, and decodes a block.
func (d *snappyDecoder) Reset(r io.Reader) error {
	br := bufio.NewReader(r)
	head, err := br.Peek(len(snappyMagic))
	switch {
	case err != nil && err != io.EOF:
		return err
	case len(head) == 0: // a stream without chunks
		d.active = br
		return nil
	case string(head) != snappyMagic:
		return d.decodeBlock(br)
	}
	if d.framed == nil {
		d.framed = snappy.NewReader(nil)
	}
	d.framed.Reset(br)
	d.active = d.framed
	return nil
}

func (d *snappyDecoder) decodeBlock(r io.Reader) error {
	packed, err := d.readAll(r)
	if err != nil {
		return err
	}
	size, err := snappy.DecodedLen(packed)
	if err != nil {
		return err
	}
	if limit := d.body.server.maxBody; int64(size) > limit {
		return tooLarge(limit)
	}
	if err := d.body.charge(int64(size)); err != nil {
		return err
	}
	out, err := snappy.Decode(nil, packed)
	if err != nil {
		return err
	}
	d.active = bytes.NewReader(out)
	return nil
}

// readAll reads all compressed data. It charges twice the size, because the buffer may be that
// large after growing.
func (d *snappyDecoder) readAll(r io.Reader) ([]byte, error) {
	const step = 16 << 10
	var packed bytes.Buffer
	for {
		if err := d.body.charge(2 * step); err != nil {
			return nil, err
		}
		_, err := io.CopyN(&packed, r, step)
		if err == io.EOF {
			return packed.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
	}
}
