package rows

import (
	"bytes"
	"errors"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// A span is stored without the fields that are columns of the table. The first byte of its shape
// says which; spans with unusual encodings are stored as a whole.
const (
	bodyStripped    = 1 << iota // without the fields 1 to 8; otherwise the rest is the whole span
	bodyTraceState              // the first text is the trace state
	bodyEmptyParent             // the field of the parent is present and empty
	bodyNoDuration              // the span ends when it starts
	bodyFlags       = bodyStripped | bodyTraceState | bodyEmptyParent | bodyNoDuration
)

// head holds the fields that are columns.
type head struct {
	traceID         otlpdata.TraceID
	spanID, parent  otlpdata.SpanID
	start, duration uint64
	kind            int32
	name            string
	traceState      string
}

// append appends the fields 1 to 8 of a span as encoders usually write them.
func (h *head) append(dst []byte, flags byte) []byte {
	if !h.traceID.IsZero() {
		dst = protoenc.AppendBytes(dst, 1, h.traceID[:])
	}
	if !h.spanID.IsZero() {
		dst = protoenc.AppendBytes(dst, 2, h.spanID[:])
	}
	dst = protoenc.AppendString(dst, 3, h.traceState)
	if flags&bodyEmptyParent != 0 {
		dst = protoenc.AppendHeader(dst, 4, 0)
	} else if !h.parent.IsZero() {
		dst = protoenc.AppendBytes(dst, 4, h.parent[:])
	}
	dst = protoenc.AppendString(dst, 5, h.name)
	dst = protoenc.AppendUint(dst, 6, uint64(int64(h.kind)))
	dst = protoenc.AppendFixed64(dst, 7, h.start)
	end := h.start + h.duration
	if flags&bodyNoDuration != 0 {
		end = h.start
	}
	return protoenc.AppendFixed64(dst, 8, end)
}

// span cuts a span into the parts that the row holds in addition to the columns, using scratch,
// which it returns. The first byte of the shape holds flags, the first text is the trace state if
// there is one. If the span could not be restored, the shape is one zero and the rest is the span.
func (c *cut) span(scratch []byte, s *otlpdata.Span) (buf []byte) {
	duration, _ := s.Duration()
	h := head{traceID: s.TraceID, spanID: s.SpanID, parent: s.ParentID, start: s.Start, duration: duration,
		kind: s.Kind, name: s.Operation(), traceState: s.TraceState}
	flags := byte(bodyStripped)
	if s.TraceState != "" {
		flags |= bodyTraceState
	}
	if s.End == s.Start {
		flags |= bodyNoDuration
	}
	scratch = h.append(scratch[:0], flags)
	if s.ParentID.IsZero() && !bytes.HasPrefix(s.Raw, scratch) {
		flags |= bodyEmptyParent
		scratch = h.append(scratch[:0], flags)
	}
	c.reset(s.Start)
	c.shape = append(c.shape, flags)
	if s.TraceState != "" {
		c.texts = append(c.texts, []byte(s.TraceState))
	}
	if !bytes.HasPrefix(s.Raw, scratch) || !c.message(s.Raw[len(scratch):], spanRules) {
		c.reset(s.Start)
		c.shape, c.rest = append(c.shape, 0), append(c.rest, s.Raw...)
	}
	return scratch
}

var errBody = errors.New("invalid parts of the span")

// appendRaw appends the encoded span of a shape, texts and a rest.
func appendRaw(dst []byte, h head, shape string, texts []string, rest string) (_ []byte, err error) {
	if shape == "" {
		return dst, errBody
	}
	flags, shape := shape[0], shape[1:]
	switch {
	case flags == 0 && shape == "" && len(texts) == 0:
		return append(dst, rest...), nil
	case flags&bodyStripped == 0 || flags&^bodyFlags != 0:
		return dst, errBody
	}
	j := joint{start: h.start, texts: texts, rest: rest}
	if flags&bodyTraceState != 0 {
		if len(texts) == 0 {
			return dst, errBody
		}
		h.traceState, j.texts = texts[0], texts[1:]
	}
	if dst, err = j.append(h.append(dst, flags), shape, spanRules); err != nil {
		return dst, err
	}
	if len(j.texts) > 0 || len(j.rest) > 0 {
		return dst, errBody
	}
	return dst, nil
}
