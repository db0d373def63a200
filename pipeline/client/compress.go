package client

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tracing-backend/tracing/pipeline"
)

func validateCompression(name string) error {
	if all := []string{"gzip", "zstd", "snappy", CompressionNone}; name != "" && !slices.Contains(all, name) {
		return pipeline.BadKey("compression", "unknown compression %q; use %s", name, strings.Join(all, ", "))
	}
	return nil
}

// bodyCompressor compresses the bodies of HTTP requests. For snappy it uses the block format, which
// HTTP servers expect.
type bodyCompressor struct {
	name    string
	writers sync.Pool // of resettableWriter
}

type resettableWriter interface {
	io.WriteCloser
	Reset(w io.Writer)
}

func newBodyCompressor(name string) *bodyCompressor {
	b := &bodyCompressor{name: name}
	switch name {
	case "gzip":
		b.writers.New = func() any { return gzip.NewWriter(nil) }
	case "zstd":
		b.writers.New = func() any { return newZstd() }
	case "":
		b.name = CompressionNone
	}
	return b
}

func newZstd() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(fmt.Sprintf("BUG: zstd options: %v", err))
	}
	return e
}

// compress joins and compresses the chunks. Without compression it returns them unchanged.
func (b *bodyCompressor) compress(chunks [][]byte) ([][]byte, error) {
	switch b.name {
	case CompressionNone:
		return chunks, nil
	case "snappy":
		return [][]byte{snappy.Encode(nil, bytes.Join(chunks, nil))}, nil
	}
	w := b.writers.Get().(resettableWriter)
	defer b.writers.Put(w)
	var out bytes.Buffer
	out.Grow(totalSize(chunks) / 4) // spans compress well
	w.Reset(&out)
	for _, c := range chunks {
		if _, err := w.Write(c); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	w.Reset(nil)
	return [][]byte{out.Bytes()}, nil
}

func totalSize(chunks [][]byte) int {
	n := 0
	for _, c := range chunks {
		n += len(c)
	}
	return n
}
