package server

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // registers itself
)

// RegisterCompressors registers the compressors zstd and snappy with gRPC. Clients must call it
// before they make calls; [NewGRPC] calls it itself.
func RegisterCompressors() { registerCompressors() }

// registerCompressors registers zstd and snappy once. gRPC keeps compressors in a global map
// without a lock, so they must not be registered while calls are served. All servers are created
// before any is started, so this never happens.
var registerCompressors = sync.OnceFunc(func() {
	for _, c := range []encoding.Compressor{newZstdCompressor(), &snappyCompressor{}} {
		if encoding.GetCompressor(c.Name()) == nil {
			encoding.RegisterCompressor(c)
		}
	}
})

// zstdCompressor implements the gRPC encoding `zstd`. gRPC limits the decompressed size; the
// decoder limits the window.
type zstdCompressor struct{ readers, writers sync.Pool }

func newZstdCompressor() *zstdCompressor {
	return &zstdCompressor{
		readers: sync.Pool{New: func() any { return newZstdDecoder(zstdWindow) }},
		writers: sync.Pool{New: func() any { return newZstdEncoder() }},
	}
}

func newZstdEncoder() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(fmt.Sprintf("BUG: zstd options: %v", err))
	}
	return e
}

// Name returns the value of the grpc-encoding header.
func (*zstdCompressor) Name() string { return "zstd" }

// Compress returns a writer that returns to the pool when it is closed.
func (c *zstdCompressor) Compress(w io.Writer) (io.WriteCloser, error) {
	e := c.writers.Get().(*zstd.Encoder)
	e.Reset(w)
	return &zstdWriter{e, &c.writers}, nil
}

// Decompress returns a reader that returns to the pool when it is closed. gRPC always closes it.
func (c *zstdCompressor) Decompress(r io.Reader) (io.Reader, error) {
	d := c.readers.Get().(*zstd.Decoder)
	if err := d.Reset(r); err != nil {
		return nil, err
	}
	return &zstdReader{d, &c.readers}, nil
}

type zstdWriter struct {
	*zstd.Encoder
	pool *sync.Pool
}

// Close finishes the stream and returns the encoder to the pool.
func (w *zstdWriter) Close() error {
	err := w.Encoder.Close()
	w.pool.Put(w.Encoder)
	return err
}

type zstdReader struct {
	*zstd.Decoder
	pool *sync.Pool
}

// Close drops the reference to the source and returns the decoder to the pool.
func (r *zstdReader) Close() error {
	err := r.Reset(nil)
	if errors.Is(err, zstd.ErrDecoderNilInput) {
		err = nil
	}
	r.pool.Put(r.Decoder)
	return err
}

// snappyCompressor implements the gRPC encoding `snappy`, which is the framed format.
type snappyCompressor struct{ readers, writers sync.Pool }

// Name returns the value of the grpc-encoding header.
func (*snappyCompressor) Name() string { return "snappy" }

// Compress returns a writer that returns to the pool when it is closed.
func (c *snappyCompressor) Compress(w io.Writer) (io.WriteCloser, error) {
	s, ok := c.writers.Get().(*snappy.Writer)
	if !ok {
		return &snappyWriter{snappy.NewBufferedWriter(w), &c.writers}, nil
	}
	s.Reset(w)
	return &snappyWriter{s, &c.writers}, nil
}

// Decompress returns a reader that returns to the pool when it is closed.
func (c *snappyCompressor) Decompress(r io.Reader) (io.Reader, error) {
	s, ok := c.readers.Get().(*snappy.Reader)
	if !ok {
		return &snappyReader{snappy.NewReader(r), &c.readers}, nil
	}
	s.Reset(r)
	return &snappyReader{s, &c.readers}, nil
}

type snappyWriter struct {
	*snappy.Writer
	pool *sync.Pool
}

// Close finishes the stream and returns the encoder to the pool.
func (w *snappyWriter) Close() error {
	err := w.Writer.Close()
	w.pool.Put(w.Writer)
	return err
}

type snappyReader struct {
	*snappy.Reader
	pool *sync.Pool
}

// Close drops the reference to the source and returns the reader to the pool.
func (r *snappyReader) Close() error {
	r.Reset(nil)
	r.pool.Put(r.Reader)
	return nil
}
