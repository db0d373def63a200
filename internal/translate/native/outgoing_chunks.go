package native

import (
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// chunkSpans is the field of a SpansResponseChunk. It has the same number in api_v2 and in
// storage.v1 (reference 3.5 and 3.7).
const chunkSpans = 1

// Chunks writes spans as SpansResponseChunks: messages of few spans, each of which carries its
// process. It is a visitor of otlpdata.Walk. The rules are those of [SplitPostSpans]. The spans of
// a chunk are those between two calls of Finish, so that who calls it behind each trace has no
// chunk with spans of two.
//
// It holds one chunk at a time, however large the processes are that all spans repeat. Not for
// concurrent use.
type Chunks struct {
	limits ChunkLimits
	send   func(chunk []byte) error

	process []byte // the current resource as an encoded Process
	scope   []byte // the current scope as encoded tags of a span
	buf     []byte
	spans   int // in buf
}

// ChunkLimits bound a chunk. A span that is larger than Bytes with its process makes a chunk of its
// own.
type ChunkLimits struct {
	Spans int
	Bytes int
}

var _ otlpdata.Visitor = (*Chunks)(nil)

// NewChunks returns a writer that gives each chunk to send, which must not keep it. An error of
// send ends the walk and is returned.
func NewChunks(limits ChunkLimits, send func(chunk []byte) error) *Chunks {
	return &Chunks{limits: limits, send: send}
}

// Resource makes the resource the one of the spans that follow.
func (c *Chunks) Resource(r *otlpdata.Resource) error {
	c.process = appendProcess(c.process[:0], r.Attributes)
	return nil
}

// Scope makes the scope the one of the spans that follow.
func (c *Chunks) Scope(s *otlpdata.Scope) error {
	c.scope = appendScope(c.scope[:0], s)
	return nil
}

// Span writes the span, and sends the chunk that is full.
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
	const room = 2 // right for 128 bytes to 16 KiB
	buf, at := protoenc.BeginMessage(c.buf, chunkSpans, room)
	buf = appendSpan(buf, s, c.scope)
	buf = protoenc.AppendBytes(buf, spanProcess, c.process)
	c.buf = protoenc.EndMessage(appendWarnings(buf, s.Attributes), at, room)
	c.spans++
}

// Finish sends what is not sent yet.
func (c *Chunks) Finish() error {
	if c.spans == 0 {
		return nil
	}
	chunk := c.buf
	c.buf, c.spans = c.buf[:0], 0
	return c.send(chunk)
}
