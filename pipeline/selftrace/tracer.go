package selftrace

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Scope is the name of the instrumentation scope of all spans of self-tracing.
const Scope = "github.com/tracing-backend/tracing"

// Tracer makes spans while it is on. A nil Tracer is always off. It is safe for concurrent use.
type Tracer struct{ active atomic.Pointer[source] }

// source makes spans and passes their contexts to other processes.
type source struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

// TurnOn makes the tracer create its spans with provider. propagator reads and writes the headers
// of requests.
func (t *Tracer) TurnOn(provider trace.TracerProvider, propagator propagation.TextMapPropagator) {
	t.active.Store(&source{provider.Tracer(Scope), propagator})
}

// TurnOff makes the tracer make no more spans.
func (t *Tracer) TurnOff() { t.active.Store(nil) }

// On reports whether the tracer makes spans.
func (t *Tracer) On() bool { return t.source() != nil }

func (t *Tracer) source() *source {
	if t == nil {
		return nil
	}
	return t.active.Load()
}

// none is a span that records nothing.
var none trace.Span = noop.Span{}

// StartClient is like Start, for a request to another process. [Tracer.Inject] passes it on.
func (t *Tracer) StartClient(ctx context.Context, name string) (context.Context, trace.Span) {
	s := t.source()
	if s == nil {
		return ctx, none
	}
	return s.start(ctx, name, trace.WithSpanKind(trace.SpanKindClient))
}

// Start starts a span below the span or the request of ctx, and returns it with a context for its
// children. If the tracer is off, or nothing of ctx is traced, it returns ctx and a span that
// records nothing. The caller must end the span, see [End].
func (t *Tracer) Start(ctx context.Context, name string) (context.Context, trace.Span) {
	s := t.source()
	if s == nil {
		return ctx, none
	}
	return s.start(ctx, name)
}

func (s *source) start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent := spanOf(ctx)
	if !parent.SpanContext().IsValid() {
		return ctx, none
	}
	return s.tracer.Start(trace.ContextWithSpan(ctx, parent), name, options...)
}

// spanOf returns the current span of ctx, or the span of its request.
func spanOf(ctx context.Context) trace.Span {
	if span := trace.SpanFromContext(ctx); span.SpanContext().IsValid() {
		return span
	}
	return requestOf(ctx).root()
}

// StartRoot starts a trace of work that no client waits for. See Start.
func (t *Tracer) StartRoot(ctx context.Context, name string) (context.Context, trace.Span) {
	s := t.source()
	if s == nil {
		return ctx, none
	}
	return s.tracer.Start(ctx, name, trace.WithNewRoot(), trace.WithLinks(linksOf(ctx)...))
}

// record adds a span that has already ended to the span or the request of ctx.
func (t *Tracer) record(ctx context.Context, name string, from, to time.Time) {
	if s := t.source(); s != nil {
		_, span := s.start(ctx, name, trace.WithTimestamp(from))
		span.End(trace.WithTimestamp(to))
	}
}

// End ends a span. An error other than nil marks it as failed.
func End(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		fail(span, err.Error())
	}
	span.End()
}

// fail marks a span as failed. The text may contain client data, and an exporter would refuse a
// whole batch because of one text that is not UTF-8.
func fail(span trace.Span, text string) {
	span.SetStatus(codes.Error, strings.ToValidUTF8(text, "\uFFFD"))
}

// Inject writes the context of the current span of ctx into the headers of a request to another
// process, which can continue the trace.
func (t *Tracer) Inject(ctx context.Context, headers propagation.TextMapCarrier) {
	if s := t.source(); s != nil {
		s.propagator.Inject(ctx, headers)
	}
}

type linksKey struct{}

// WithLinks returns a context for work on behalf of several callers: a trace that StartRoot starts
// with it links to the current spans of the callers.
func WithLinks(ctx context.Context, callers ...context.Context) context.Context {
	var links []trace.Link
	for _, c := range callers {
		if caller := trace.SpanContextFromContext(c); caller.IsValid() {
			links = append(links, trace.Link{SpanContext: caller})
		}
	}
	if links == nil {
		return ctx
	}
	return context.WithValue(ctx, linksKey{}, links)
}

func linksOf(ctx context.Context) []trace.Link {
	links, _ := ctx.Value(linksKey{}).([]trace.Link)
	return links
}

// Spans returns an attribute with a number of spans.
func Spans(n int) attribute.KeyValue { return attribute.Int("tracing.spans", n) }
