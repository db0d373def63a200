package native

import (
	"bytes"
	"errors"
	"slices"
	"sync"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// SplitPostSpans translates the spans of a batch into PostSpansRequests (package api_v2) of at most
// limit bytes. It passes each request to send with the number of its spans. A span that is larger
// than limit gets its own request; without spans there is no request. A request is appended to the
// result of buffer, and send may keep it. An error of send ends the translation and is returned.
//
// The rules are the same as in the original exporter. In addition:
//
//   - Strings that are not UTF-8, which strict decoders reject, become bytes or are repaired.
//   - Native flags are kept (otlpdata.FlagsAttribute, or FlagSampled of OTLP).
//   - A second attribute service.name, or one that is not a string, becomes a process tag.
//   - If the name of an event differs from its attribute `event`, both become fields.
//
// Jaeger's model has no fields for the following data, which is lost: attributes of scopes and
// links, trace states and flags of links, dropped counts, schema URLs, flags of OTLP other than
// sampled, and kinds and status codes that OTLP does not define.
func SplitPostSpans(b *otlpdata.Batch, limit int, buffer func() []byte, send func(request []byte, spans int) error) error {
	w := requestWriters.Get().(*requestWriter)
	defer w.release()
	w.limit, w.expected, w.buffer, w.send = limit, min(limit, b.Size()), buffer, send
	if err := b.Walk(w); err != nil {
		return err
	}
	return w.finish()
}

var requestWriters = sync.Pool{New: func() any { return new(requestWriter) }}

// requestWriter writes requests span by span. The first process of a request is the process of its
// batch; spans of other processes carry their own:
//
//	PostSpansRequest{batch{process, span, span, span{process}, ...}}
type requestWriter struct {
	limit    int
	expected int // approximate size of a request: the size of its spans in OTLP
	buffer   func() []byte
	send     func(request []byte, spans int) error

	process []byte // the current resource as an encoded Process
	scope   []byte // the current scope as encoded tags of a span

	buf       []byte // the open request
	batch     int    // position of the content of its batch; 0 if no request is open
	inherited []byte // the process of the batch; aliases buf
	own       bool   // whether spans of the current resource carry their own process
	spans     int    // in the open request
	carried   int    // bytes of processes in the spans of the open request

	repeated int // bytes of scopes written in spans so far
	allowed  int // maximum of repeated
}

const (
	// maxCarried is the maximum number of bytes of processes in the spans of one request. Above it,
	// a new request starts, in which the process belongs to the batch, so that a resource of 1 MiB
	// is not sent with each of its spans.
	maxCarried = 256 << 10
	// Every span carries its scope. So that a huge scope with many small spans does not become
	// gigabytes, the total size of written scopes is limited to maxScopePerSpan bytes per span plus
	// maxScopeSurplus bytes.
	maxScopePerSpan = 1 << 10
	maxScopeSurplus = 4 << 20
	// maxPooledScratch is the maximum size of reused memory for resource and scope, in bytes.
	maxPooledScratch = 64 << 10
)

var errScopes = errors.New("native: scope names are too long in total, because each span repeats its scope name")

// release returns w to the pool, without references to the chunks or requests.
func (w *requestWriter) release() {
	process, scope := w.process, w.scope
	*w = requestWriter{}
	if cap(process)+cap(scope) <= maxPooledScratch {
		w.process, w.scope = process[:0], scope[:0]
	}
	requestWriters.Put(w)
}

// Resource sets the resource of the spans that follow.
func (w *requestWriter) Resource(r *otlpdata.Resource) error {
	w.process = appendProcess(w.process[:0], r.Attributes)
	w.own = w.batch > 0 && !bytes.Equal(w.process, w.inherited)
	return nil
}

// Scope sets the scope of the spans that follow.
func (w *requestWriter) Scope(s *otlpdata.Scope) error {
	w.scope = appendScope(w.scope[:0], s)
	return nil
}

// Span writes the span. If the span would make the open request too large, it begins a new one.
func (w *requestWriter) Span(s *otlpdata.Span) error {
	w.allowed += maxScopePerSpan
	if w.repeated += len(w.scope); w.repeated > w.allowed+maxScopeSurplus {
		return errScopes
	}
	if w.own && w.carried+len(w.process) > maxCarried {
		if err := w.finish(); err != nil {
			return err
		}
	}
	w.beginRequest()
	before := len(w.buf)
	w.span(s)
	if w.spans == 0 || w.size() <= w.limit {
		w.spans++
		return nil
	}
	w.buf = w.buf[:before]
	if err := w.finish(); err != nil {
		return err
	}
	w.beginRequest()
	w.span(s)
	w.spans++
	return nil
}

// beginRequest begins a request for the current resource, unless a request is open.
func (w *requestWriter) beginRequest() {
	if w.batch > 0 {
		return
	}
	w.buf = slices.Grow(w.buffer(), w.expected+w.expected/8)
	w.buf, w.batch = protoenc.BeginMessage(w.buf, requestBatch, protoenc.SizeVarint(uint64(w.expected)))
	w.buf = protoenc.AppendBytes(w.buf, batchProcess, w.process)
	w.inherited = w.buf[len(w.buf)-len(w.process):]
	w.own, w.spans, w.carried = false, 0, 0
}

// size returns the size of the open request.
func (w *requestWriter) size() int {
	batch := len(w.buf) - w.batch
	return 1 + protoenc.SizeVarint(uint64(batch)) + batch
}

// span writes the span into the open request.
func (w *requestWriter) span(s *otlpdata.Span) {
	const reserved = 2 // exact for 128 bytes to 16 KiB
	buf, at := protoenc.BeginMessage(w.buf, batchSpans, reserved)
	buf = appendSpan(buf, s, w.scope)
	if w.own {
		buf = protoenc.AppendBytes(buf, spanProcess, w.process)
		w.carried += len(w.process)
	}
	w.buf = protoenc.EndMessage(appendWarnings(buf, s.Attributes), at, reserved)
}

// finish sends the open request, if there is one.
func (w *requestWriter) finish() error {
	if w.batch == 0 {
		return nil
	}
	request := protoenc.EndMessage(w.buf, w.batch, protoenc.SizeVarint(uint64(w.expected)))
	w.buf, w.batch, w.inherited = nil, 0, nil
	return w.send(request, w.spans)
}
