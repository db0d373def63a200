package column

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

const (
	// frameMagic begins every zstd frame (RFC 8878, 3.1.1) and is left out of a stream.
	frameMagic = "\x28\xb5\x2f\xfd"

	// minCompress is the shortest stream worth a try: the headers of a frame and of its block take about ten bytes.
	minCompress = 24

	// maxExpansion bounds what a byte of a zstd frame can become: a repeated byte takes a block of 4 bytes and fills 128 KiB.
	maxExpansion = 128 << 10 / 4

	// maxKept is the largest buffer that is kept for the next column, so that one huge column does not occupy memory for ever.
	maxKept = 1 << 20

	// window bounds the memory of the compressor; columns are rarely larger.
	window = 1 << 20
)

// compressor writes streams.
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
		panic(err) // the options are constants, but for a Level that is none
	}
	return compressor{enc: enc}
}

// stream appends raw as a stream, compressed where that saves at least 2 %.
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
	c.buf = kept(c.buf)
	return dst
}

// stored appends raw as a stream that is not compressed.
func stored(dst, raw []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(raw))<<1)
	return append(dst, raw...)
}

// expander reads streams.
type expander struct {
	dec   *zstd.Decoder
	frame []byte
}

func newExpander() expander {
	dec, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(MaxBytes),
		zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return expander{dec: dec}
}

// stream reads a stream of want bytes. The result aliases the column or *buf, which grows as needed.
func (x *expander) stream(r *reader, want int, buf *[]byte) []byte {
	body, compressed := x.body(r, want)
	if !compressed {
		return body
	}
	if cap(*buf) < want {
		*buf = make([]byte, want)
	}
	x.expand(r, body, (*buf)[:want])
	return (*buf)[:want]
}

// streamInto reads a stream of len(dst) bytes into dst.
func (x *expander) streamInto(r *reader, dst []byte) {
	body, compressed := x.body(r, len(dst))
	if compressed {
		x.expand(r, body, dst)
		return
	}
	copy(dst, body)
}

// body returns the bytes of a stream as they are in the column. It fails unless they can be a stream of want bytes; what the caller
// allocates for them is then in proportion to the column.
func (x *expander) body(r *reader, want int) (body []byte, compressed bool) {
	h := r.uvarint()
	if h>>1 > uint64(len(r.b)) {
		r.fail("a stream is longer than the column")
		return nil, false
	}
	body, compressed = r.take(int(h>>1)), h&1 != 0
	if !compressed && len(body) != want || compressed && (want == 0 || want > MaxBytes || want/maxExpansion > len(body)) {
		r.fail(fmt.Sprintf("a stream of %d bytes cannot hold %d", len(body), want))
		return nil, false
	}
	return body, compressed
}

// expand decompresses body into dst, which it must fill.
func (x *expander) expand(r *reader, body, dst []byte) {
	x.frame = append(append(x.frame[:0], frameMagic...), body...)
	out, err := x.dec.DecodeAll(x.frame, dst[:0:len(dst)])
	switch {
	case err != nil:
		r.fail("decompress: " + err.Error())
	case len(out) != len(dst):
		r.fail(fmt.Sprintf("a stream has %d bytes instead of %d", len(out), len(dst)))
	}
	x.frame = kept(x.frame)
}

// kept returns a buffer for reuse, or nil for one that is too large to be kept.
func kept(b []byte) []byte {
	if cap(b) > maxKept {
		return nil
	}
	return b
}
