package selftrace

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Request is the trace of a client's request. A nil Request is not traced. It is safe for
// concurrent use.
type Request struct {
	source *source
	parent context.Context // of the span: contains the client's span, if the request names it
	start  time.Time
	read   time.Time // when the body was read; zero before

	mu       sync.Mutex
	name     string
	attrs    []attribute.KeyValue
	excluded bool
	span     trace.Span // nil until it is made
}

type requestKey struct{}

// requestOf returns the request of ctx, or nil.
func requestOf(ctx context.Context) *Request {
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r
}

// Request starts the trace of a request that began at start, and whose headers may name the
// client's span. It returns a context for the work on the request. If the tracer is off, or the
// request sends spans of self-tracing, it returns ctx and nil. The caller must call End.
func (t *Tracer) Request(ctx context.Context, name string, start time.Time, headers propagation.TextMapCarrier,
	attrs ...attribute.KeyValue) (context.Context, *Request) {
	s := t.source()
	if s == nil || headers.Get(OwnHeader) != "" {
		return ctx, nil
	}
	r := &Request{source: s, parent: s.propagator.Extract(ctx, headers), start: start, name: name, attrs: attrs}
	return context.WithValue(ctx, requestKey{}, r), r
}

// root returns the span of the request, which it starts if necessary. If the request is not traced,
// the span records nothing.
func (r *Request) root() trace.Span {
	if r == nil {
		return none
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.excluded {
		return none
	}
	if r.span == nil {
		_, r.span = r.source.tracer.Start(r.parent, r.name, trace.WithTimestamp(r.start),
			trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(r.attrs...))
	}
	return r.span
}

// exclude prevents the trace of the request of ctx, unless the trace has already started.
func exclude(ctx context.Context) {
	r := requestOf(ctx)
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.excluded = r.span == nil
}

// MarkRead records that the body of the request was read at a time.
func (r *Request) MarkRead(at time.Time) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = at
}

// recordIntake adds spans for the parts of ctx's request before its spans are passed on at now:
// reading and decoding the body.
func (t *Tracer) recordIntake(ctx context.Context, now time.Time) {
	r := requestOf(ctx)
	if r == nil {
		return
	}
	r.mu.Lock()
	start, read := r.start, r.read
	r.mu.Unlock()
	if !read.IsZero() {
		t.record(ctx, "read", start, read)
		t.record(ctx, "decode", read, now)
	}
}

// Response returns the value of the traceresponse header (W3C Trace Context), or "" if the request
// is not traced.
func (r *Request) Response() string {
	c := r.root().SpanContext()
	if !c.IsValid() {
		return ""
	}
	return fmt.Sprintf("00-%s-%s-%02x", c.TraceID(), c.SpanID(), byte(c.TraceFlags()))
}

// End ends the request with its final name, attributes of the response, and the text of this
// process's failure, or "".
func (r *Request) End(name, failure string, attrs ...attribute.KeyValue) {
	span := r.root()
	if !span.IsRecording() {
		return
	}
	span.SetName(name)
	span.SetAttributes(attrs...)
	if failure != "" {
		fail(span, failure)
	}
	span.End()
}
