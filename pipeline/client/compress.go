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
	if all := []string{"gzip", "zstd", "snappy", None}; name != "" && !slices.Contains(all, name) {
		return pipeline.BadKey("compression", "%q is not a compression; write %s", name, strings.Join(all, ", "))
	}
	return nil
}

// bodies compresses the bodies of HTTP requests. snappy is a single block there, as HTTP servers expect under that name.
type bodies struct {
	name    string
	writers sync.Pool // of resetter
}

type resetter interface {
	io.WriteCloser
	Reset(w io.Writer)
}

func newBodies(name string) *bodies {
	b := &bodies{name: name}
	switch name {
	case "gzip":
		b.writers.New = func() any { return gzip.NewWriter(nil) }
	case "zstd":
		b.writers.New = func() any { return newZstd() }
	case "":
		b.name = None
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

// compress returns the segments as one body. Uncompressed ones are returned as they are.
func (b *bodies) compress(segments [][]byte) ([][]byte, error) {
	switch b.name {
	case None:
		return segments, nil
	case "snappy":
		return [][]byte{snappy.Encode(nil, bytes.Join(segments, nil))}, nil
	}
	w := b.writers.Get().(resetter)
	defer b.writers.Put(w)
	var out bytes.Buffer
	out.Grow(length(segments) / 4) // spans repeat themselves
	w.Reset(&out)
	for _, s := range segments {
		if _, err := w.Write(s); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	w.Reset(nil)
	return [][]byte{out.Bytes()}, nil
}

func length(segments [][]byte) int {
	n := 0
	for _, s := range segments {
		n += len(s)
	}
	return n
}
