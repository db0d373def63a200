package native

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/mem"
)

// codec sends a message that is encoded already, in memory that goes back to the buffers once gRPC needs it no more, which can be after the
// call has ended. Answers say nothing.
type codec struct{ buffers *buffers }

// Name is that of protobuf, which is what it is on the wire.
func (codec) Name() string { return "proto" }

// Marshal hands the message on without a copy.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("BUG: request of type %T", v)
	}
	return mem.BufferSlice{mem.NewBuffer(&message, c.buffers)}, nil
}

// Unmarshal does not look at the answer.
func (codec) Unmarshal(mem.BufferSlice, any) error { return nil }

// keepBuffer is the greatest buffer that is kept for the next message, in bytes.
const keepBuffer = 8 << 20

// buffers are the memory of messages.
type buffers struct{ pool sync.Pool }

var _ mem.BufferPool = (*buffers)(nil)

// take returns an empty buffer to append to.
func (p *buffers) take() []byte { return (*p.Get(0))[:0] }

// Get returns a buffer of some length.
func (p *buffers) Get(length int) *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok && cap(*b) >= length {
		*b = (*b)[:length]
		return b
	}
	b := make([]byte, length)
	return &b
}

// Put keeps a buffer for the next message.
func (p *buffers) Put(b *[]byte) {
	if cap(*b) <= keepBuffer {
		p.pool.Put(b)
	}
}
