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

// registerCompressors makes zstd and snappy known to gRPC, for servers and clients. gRPC keeps them in an unguarded map of the process, so
// this must not happen while calls are served: it is done once, when the first server is made, and servers are made before any is started.
var registerCompressors = sync.OnceFunc(func() {
	for _, c := range []encoding.Compressor{newZstdCompressor(), &snappyCompressor{}} {
		if encoding.GetCompressor(c.Name()) == nil {
			encoding.RegisterCompressor(c)
		}
	}
})

// zstdCompressor is the gRPC encoding `zstd`. How much a message may become is limited by gRPC, the window here.
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

// Name is the value of grpc-encoding.
func (*zstdCompressor) Name() string { return "zstd" }

// Compress returns a writer that is used again after its Close.
func (c *zstdCompressor) Compress(w io.Writer) (io.WriteCloser, error) {
	e := c.writers.Get().(*zstd.Encoder)
	e.Reset(w)
	return &zstdWriter{e, &c.writers}, nil
}

// Decompress returns a reader that is used again after its Close, which gRPC calls whatever happened.
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

// Close ends the stream.
func (w *zstdWriter) Close() error {
	err := w.Encoder.Close()
	w.pool.Put(w.Encoder)
	return err
}

type zstdReader struct {
	*zstd.Decoder
	pool *sync.Pool
}

// Close gives the decoder back without what it read from.
func (r *zstdReader) Close() error {
	err := r.Reset(nil)
	if errors.Is(err, zstd.ErrDecoderNilInput) {
		err = nil
	}
	r.pool.Put(r.Decoder)
	return err
}

// snappyCompressor is the gRPC encoding `snappy`: the framed format.
type snappyCompressor struct{ readers, writers sync.Pool }

// Name is the value of grpc-encoding.
func (*snappyCompressor) Name() string { return "snappy" }

// Compress returns a writer that is used again after its Close.
func (c *snappyCompressor) Compress(w io.Writer) (io.WriteCloser, error) {
	s, ok := c.writers.Get().(*snappy.Writer)
	if !ok {
		return &snappyWriter{snappy.NewBufferedWriter(w), &c.writers}, nil
	}
	s.Reset(w)
	return &snappyWriter{s, &c.writers}, nil
}

// Decompress returns a reader that is used again after its Close.
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

// Close ends the stream.
func (w *snappyWriter) Close() error {
	err := w.Writer.Close()
	w.pool.Put(w.Writer)
	return err
}

type snappyReader struct {
	*snappy.Reader
	pool *sync.Pool
}

// Close gives the reader back without what it read from.
func (r *snappyReader) Close() error {
	r.Reset(nil)
	r.pool.Put(r.Reader)
	return nil
}

// RegisterCompressors makes zstd and snappy known to gRPC for clients, under the same condition: before calls are made. Servers do it
// themselves.
func RegisterCompressors() { registerCompressors() }
