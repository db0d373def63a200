package native

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/mem"
)

// codec sends encoded messages. gRPC returns their memory to the buffer pool when it no longer
// needs it, which may be after the call has ended. Responses are empty and not decoded.
type codec struct{ buffers *bufferPool }

// Name returns the name of the protobuf codec, because the wire format is the same.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2 without copying the message.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("BUG: cannot encode request of type %T", v)
	}
	return mem.BufferSlice{mem.NewBuffer(&message, c.buffers)}, nil
}

// Unmarshal implements encoding.CodecV2. It ignores the response.
func (codec) Unmarshal(mem.BufferSlice, any) error { return nil }

// maxPooledBuffer is the maximum size of a buffer that is reused, in bytes.
const maxPooledBuffer = 8 << 20

// bufferPool is a pool of buffers for messages.
type bufferPool struct{ pool sync.Pool }

var _ mem.BufferPool = (*bufferPool)(nil)

// empty returns an empty buffer to append to.
func (p *bufferPool) empty() []byte { return (*p.Get(0))[:0] }

// Get returns a buffer of the given length.
func (p *bufferPool) Get(length int) *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok && cap(*b) >= length {
		*b = (*b)[:length]
		return b
	}
	b := make([]byte, length)
	return &b
}

// Put returns a buffer to the pool unless it is too large.
func (p *bufferPool) Put(b *[]byte) {
	if cap(*b) <= maxPooledBuffer {
		p.pool.Put(b)
	}
}
