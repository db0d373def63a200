package column

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

const (
	// frameMagic starts every zstd frame (RFC 8878, 3.1.1). Streams omit it.
	frameMagic = "\x28\xb5\x2f\xfd"

	// minCompress is the minimum length of streams that are compressed: the headers of a frame and
	// its block take about ten bytes.
	minCompress = 24

	// maxExpansion is the maximum ratio by which a zstd frame can expand: a block of 4 bytes can
	// stand for 128 KiB of a repeated byte.
	maxExpansion = 128 << 10 / 4

	// maxReusable is the maximum size of buffers that are kept for the next column, so that one
	// huge column does not occupy memory permanently.
	maxReusable = 1 << 20

	// window limits the memory of the compressor. Columns are rarely larger.
	window = 1 << 20
)

// compressor encodes streams.
type compressor struct {
	enc *zstd.Encoder
	buf []byte
}

func newCompressor(l Level) compressor {
	enc, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.EncoderLevel(l)),
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false),
		zstd.WithSingleSegment(true),
		zstd.WithAllLitEntropyCompression(true),
		zstd.WithWindowSize(window),
		zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // invalid Level; the other options are constants
	}
	return compressor{enc: enc}
}

// stream appends raw as a stream. It compresses raw if that saves more than 1/64.
func (c *compressor) stream(dst, raw []byte) []byte {
	if len(raw) < minCompress {
		return stored(dst, raw)
	}
	c.buf = c.enc.EncodeAll(raw, c.buf[:0])
	frame := c.buf[len(frameMagic):]
	if len(frame) >= len(raw)-len(raw)/64 {
		dst = stored(dst, raw)
	} else {
		dst = binary.AppendUvarint(dst, uint64(len(frame))<<1|1)
		dst = append(dst, frame...)
	}
	c.buf = reusable(c.buf)
	return dst
}

// stored appends raw as an uncompressed stream.
func stored(dst, raw []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(raw))<<1)
	return append(dst, raw...)
}

// decompressor decodes streams.
type decompressor struct {
	dec   *zstd.Decoder
	frame []byte
}

func newDecompressor() decompressor {
	dec, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(MaxBytes),
		zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return decompressor{dec: dec}
}

// stream decodes a stream of size bytes. The result aliases the column or *buf, which grows as
// needed.
func (x *decompressor) stream(r *reader, size int, buf *[]byte) []byte {
	body, compressed := x.body(r, size)
	if !compressed {
		return body
	}
	if cap(*buf) < size {
		*buf = make([]byte, size)
	}
	x.decompress(r, body, (*buf)[:size])
	return (*buf)[:size]
}

// streamInto decodes a stream of len(dst) bytes into dst.
func (x *decompressor) streamInto(r *reader, dst []byte) {
	body, compressed := x.body(r, len(dst))
	if compressed {
		x.decompress(r, body, dst)
		return
	}
	copy(dst, body)
}

// body returns the encoded bytes of a stream. It fails if they cannot hold size decoded bytes, so
// that the memory that callers allocate is proportional to the column.
func (x *decompressor) body(r *reader, size int) (body []byte, compressed bool) {
	h := r.uvarint()
	if h>>1 > uint64(len(r.b)) {
		r.fail("stream exceeds the column")
		return nil, false
	}
	body, compressed = r.take(int(h>>1)), h&1 != 0
	if !compressed && len(body) != size || compressed && (size == 0 || size > MaxBytes || size/maxExpansion > len(body)) {
		r.fail(fmt.Sprintf("stream of %d bytes cannot hold %d", len(body), size))
		return nil, false
	}
	return body, compressed
}

// decompress decodes body into dst, which it must fill exactly.
func (x *decompressor) decompress(r *reader, body, dst []byte) {
	x.frame = append(append(x.frame[:0], frameMagic...), body...)
	out, err := x.dec.DecodeAll(x.frame, dst[:0:len(dst)])
	switch {
	case err != nil:
		r.fail("decompress: " + err.Error())
	case len(out) != len(dst):
		r.fail(fmt.Sprintf("stream has %d bytes, want %d", len(out), len(dst)))
	}
	x.frame = reusable(x.frame)
}

// reusable returns b for reuse, or nil if its capacity exceeds maxReusable.
func reusable(b []byte) []byte {
	if cap(b) > maxReusable {
		return nil
	}
	return b
}
