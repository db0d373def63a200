package selftrace

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// OwnHeader is the name of a header of requests that send spans of self-tracing. Such requests are
// not traced, even if they are refused before their spans are read.
const OwnHeader = "x-tracing-self"

// errOther ends a walk at the first span that is not of self-tracing.
var errOther = errors.New("span of another program")

// IsOwn reports whether all spans of a batch are spans of self-tracing, of this or another process.
// It reads the batch up to the first other span.
func IsOwn(b *otlpdata.Batch) bool {
	return b.Len() > 0 && b.Walk(&ownVisitor{}) == nil
}

type ownVisitor struct{ own bool }

// Resource implements otlpdata.Visitor.
func (v *ownVisitor) Resource(*otlpdata.Resource) error {
	v.own = false
	return nil
}

// Scope implements otlpdata.Visitor.
func (v *ownVisitor) Scope(s *otlpdata.Scope) error {
	v.own = s.Name == Scope
	return nil
}

// Span implements otlpdata.Visitor.
func (v *ownVisitor) Span(*otlpdata.Span) error {
	if !v.own {
		return errOther
	}
	return nil
}

// StartIntake starts the span for passing on a received batch, at now. The span is below the
// request of ctx, whose earlier parts StartIntake adds, or starts a new trace if no client waits.
// Batches of spans of self-tracing, and their requests, are not traced. See Start.
func (t *Tracer) StartIntake(ctx context.Context, name string, b *otlpdata.Batch,
	now func() time.Time) (context.Context, trace.Span) {
	if !t.On() {
		return ctx, none
	}
	if IsOwn(b) {
		exclude(ctx)
		return ctx, none
	}
	t.recordIntake(ctx, now())
	return t.StartBatch(ctx, name, b)
}

// StartBatch starts a span for work on a batch. The span is below the span of ctx, or starts a new
// trace if ctx has none, for example after a queue. Batches of spans of self-tracing are not
// traced. See Start.
func (t *Tracer) StartBatch(ctx context.Context, name string, b *otlpdata.Batch) (context.Context, trace.Span) {
	s := t.source()
	if s == nil {
		return ctx, none
	}
	var span trace.Span
	switch {
	case spanOf(ctx).SpanContext().IsValid():
		ctx, span = s.start(ctx, name)
	case IsOwn(b):
		return ctx, none
	default:
		ctx, span = t.StartRoot(ctx, name)
	}
	if b.Meta().Signal == otlpdata.SignalLogs {
		span.SetAttributes(attribute.Int("tracing.log_records", b.Len()))
	} else {
		span.SetAttributes(Spans(b.Len()))
	}
	return ctx, span
}
