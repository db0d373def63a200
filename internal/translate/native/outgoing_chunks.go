package native

import (
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// chunkSpans is the field of the spans in a SpansResponseChunk, in api_v2 and in storage.v1.
const chunkSpans = 1

// Chunks writes spans as SpansResponseChunks: messages of few spans. Each span carries its process.
// It is a visitor of otlpdata.Walk and follows the rules of [SplitPostSpans]. A chunk contains only
// spans between two calls of Finish, so calling Finish after each trace separates traces.
//
// It holds one chunk in memory at a time, however large the repeated processes are. It is not safe
// for concurrent use.
type Chunks struct {
	limits ChunkLimits
	send   func(chunk []byte) error

	single Spans
	buf    []byte
	spans  int // in buf
}

// ChunkLimits are the limits of one chunk. A span that exceeds Bytes together with its process gets
// its own chunk.
type ChunkLimits struct {
	Spans int
	Bytes int
}

var _ otlpdata.Visitor = (*Chunks)(nil)

// NewChunks returns a writer that passes each chunk to send, which must not keep it. An error of
// send ends the walk and is returned.
func NewChunks(limits ChunkLimits, send func(chunk []byte) error) *Chunks {
	return &Chunks{limits: limits, send: send}
}

// Resource sets the resource of the spans that follow.
func (c *Chunks) Resource(r *otlpdata.Resource) error { return c.single.Resource(r) }

// Scope sets the scope of the spans that follow.
func (c *Chunks) Scope(s *otlpdata.Scope) error { return c.single.Scope(s) }

// Span writes the span and sends the chunk if it is full.
func (c *Chunks) Span(s *otlpdata.Span) error {
	before := len(c.buf)
	c.span(s)
	if c.spans > 1 && len(c.buf) > c.limits.Bytes {
		c.buf, c.spans = c.buf[:before], c.spans-1
		if err := c.Finish(); err != nil {
			return err
		}
		c.span(s)
	}
	if c.spans < c.limits.Spans {
		return nil
	}
	return c.Finish()
}

func (c *Chunks) span(s *otlpdata.Span) {
	const reserved = 2 // exact for 128 bytes to 16 KiB
	buf, at := protoenc.BeginMessage(c.buf, chunkSpans, reserved)
	c.buf = protoenc.EndMessage(c.single.Append(buf, s), at, reserved)
	c.spans++
}

// Finish sends the open chunk, if there is one.
func (c *Chunks) Finish() error {
	if c.spans == 0 {
		return nil
	}
	chunk := c.buf
	c.buf, c.spans = c.buf[:0], 0
	return c.send(chunk)
}
