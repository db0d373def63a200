package delivery

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/selftrace"
)

// traced is a Consumer that makes a span of each call of the next one, if self-tracing is on.
type traced struct {
	next   pipeline.Consumer
	tracer *selftrace.Tracer
	name   string // of the spans
}

// Consume passes b to the next Consumer.
func (t *traced) Consume(ctx context.Context, b *otlpdata.Batch) error {
	ctx, span := t.tracer.StartBatch(ctx, t.name, b)
	err := t.next.Consume(ctx, b)
	selftrace.End(span, err)
	return err
}

// Refusing returns the part of the next Consumer that refused a batch with err.
func (t *traced) Refusing(err error) pipeline.Consumer {
	return &traced{refusing(t.next, err), t.tracer, t.name}
}
