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

// Memory that decoders allocate by what the compressed data asks for, in bytes. It is charged to the budget while they work. The window
// of zstd is the one that its specification wants every decoder to support.
const (
	zstdWindow  = 8 << 20
	lz4Blocks   = 8 << 20
	leastWindow = 1 << 20
)

// decoder is a decompressor that can be used again.
type decoder interface {
	io.Reader
	// Reset begins a new stream, of which it may read the start.
	Reset(io.Reader) error
}

// decoders are the content encodings that a server takes, each with a pool of decompressors.
type decoders struct {
	byName map[string]*decoderPool
}

type decoderPool struct {
	free    sync.Pool // of *lentDecoder
	scratch int64     // bytes charged while one is in use
}

func newDecoders(budget *pipeline.Budget) *decoders {
	window := int64(zstdWindow)
	if budget.Limit() > 0 {
		window = min(window, max(budget.Limit()/4, leastWindow))
	}
	pool := func(scratch int64, make func() decoder) *decoderPool {
		p := &decoderPool{scratch: scratch}
		p.free.New = func() any { return &lentDecoder{decoder: make(), in: bufio.NewReader(nil), pool: p} }
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

var errTail = errors.New("data follows the end of the compressed data")

// plain reports whether a Content-Encoding means none.
func plain(encoding string) bool {
	return encoding == "" || strings.EqualFold(strings.TrimSpace(encoding), "identity")
}

// lentDecoder is a decompressor in use for one body. All decompressors take their data from a ByteReader no further than they need it.
type lentDecoder struct {
	decoder
	in   *bufio.Reader
	pool *decoderPool
	body *body
}

// lend returns a decompressor for the body's encoding, at the start of its data.
func (d *decoders) lend(b *body) (*lentDecoder, error) {
	pool := d.byName[strings.ToLower(strings.TrimSpace(b.encoding))]
	if pool == nil {
		return nil, badEncoding(fmt.Errorf("unsupported Content-Encoding: %.100s", b.encoding))
	}
	if err := b.charge(pool.scratch); err != nil {
		return nil, err
	}
	l := pool.free.Get().(*lentDecoder)
	l.body = b
	l.in.Reset(&b.wire)
	if s, ok := l.decoder.(*snappyDecoder); ok {
		s.body = b
	}
	if err := l.Reset(l.in); err != nil {
		l.giveBack()
		return nil, err
	}
	return l, nil
}

func (l *lentDecoder) giveBack() {
	if s, ok := l.decoder.(*snappyDecoder); ok {
		*s = snappyDecoder{framed: s.framed}
	}
	l.body.charge(-l.pool.scratch) //nolint:errcheck // giving back never fails
	l.body = nil
	l.in.Reset(nil)
	l.pool.free.Put(l)
}

// atEnd checks that nothing follows the compressed data. It would be lost without a word, and could come for ever.
func (l *lentDecoder) atEnd() error {
	_, err := l.in.ReadByte()
	if err == nil {
		return errTail
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// newZstdDecoder returns a decoder without goroutines of its own, so it can be dropped at any time.
func newZstdDecoder(window int64) *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(uint64(window)))
	if err != nil {
		panic(fmt.Sprintf("BUG: zstd options: %v", err))
	}
	return d
}

// zlibDecoder puts off making the reader, which wants data at once.
type zlibDecoder struct{ io.ReadCloser }

// Reset reads the header.
func (d *zlibDecoder) Reset(r io.Reader) (err error) {
	if d.ReadCloser != nil {
		return d.ReadCloser.(zlib.Resetter).Reset(r, nil)
	}
	d.ReadCloser, err = zlib.NewReader(r)
	return err
}

// deflateDecoder reads what the name means (RFC 9110: the zlib format), and raw deflate data, which some clients send.
type deflateDecoder struct {
	io.Reader
	zlib zlibDecoder
	raw  io.ReadCloser
}

// Reset finds out which of the two it is.
func (d *deflateDecoder) Reset(r io.Reader) error {
	br := bufio.NewReader(r)
	head, err := br.Peek(2)
	if err != nil {
		return noEOF(err)
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		d.Reader = &d.zlib
		return d.zlib.Reset(br)
	}
	if d.raw == nil {
		d.raw = flate.NewReader(br)
	}
	d.Reader = d.raw
	return d.raw.(flate.Resetter).Reset(br, nil)
}

type lz4Decoder struct{ *lz4.Reader }

// Reset never fails.
func (d *lz4Decoder) Reset(r io.Reader) error {
	d.Reader.Reset(r)
	return nil
}

// snappyDecoder reads both formats that go by the name: a framed stream, which begins with a magic chunk, and a single block, which has to
// be in memory as a whole.
type snappyDecoder struct {
	io.Reader
	framed *snappy.Reader
	body   *body
}

const snappyMagic = "\xff\x06\x00\x00sNaPpY"

// Reset finds out which of the two it is, and decodes a block.
func (d *snappyDecoder) Reset(r io.Reader) error {
	br := bufio.NewReader(r)
	head, err := br.Peek(len(snappyMagic))
	switch {
	case err != nil && err != io.EOF:
		return err
	case len(head) == 0: // a stream without chunks
		d.Reader = br
		return nil
	case string(head) != snappyMagic:
		return d.block(br)
	}
	if d.framed == nil {
		d.framed = snappy.NewReader(nil)
	}
	d.framed.Reset(br)
	d.Reader = d.framed
	return nil
}

func (d *snappyDecoder) block(r io.Reader) error {
	packed, err := d.gather(r)
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
	d.Reader = bytes.NewReader(out)
	return nil
}

// gather reads all compressed data. Twice its size is charged, which is what the buffer may have grown to.
func (d *snappyDecoder) gather(r io.Reader) ([]byte, error) {
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
