package storequery

import (
	"context"
	"errors"
	"iter"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// WholeTraces implements the methods of [tracestore.Reader] for parts of a trace by reading the
// whole trace, for stores that have no faster way. It does not know sizes and versions of traces.
type WholeTraces struct{ Of tracestore.Reader }

// SelectSpans implements tracestore.Reader. It returns all spans of the trace.
func (w WholeTraces) SelectSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, _ []otlpdata.SpanID,
) iter.Seq2[tracestore.Trace, error] {
	return w.Of.Traces(ctx, tenant, []tracestore.TraceRef{{ID: id}})
}

// FindSpans implements tracestore.Reader.
func (w WholeTraces) FindSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, c tracestore.SpanCondition,
) (found tracestore.FoundSpans, err error) {
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return found, err
	}
	defer memory.Release()
	m := c.Matcher(ctx)
	for t, err := range w.Of.Traces(ctx, tenant, []tracestore.TraceRef{{ID: id}}) {
		if err == nil {
			err = tracestore.WalkSpans(t.Spans, func(s tracestore.Span) error {
				if found.Spans++; m.Matches(s) {
					found.IDs = append(found.IDs, s.SpanID)
				}
				return nil
			})
		}
		if err == nil {
			err = memory.Resize(int64(2 * cap(found.IDs) * len(otlpdata.SpanID{}))) // append may double it
		}
		if err != nil {
			return found, err
		}
	}
	return found, ctx.Err() // the matcher may be wrong after it has ended
}

// Outline implements tracestore.Reader.
func (w WholeTraces) Outline(
	ctx context.Context, tenant string, id otlpdata.TraceID, limit int,
	hold func(spans, textBytes int) error, take func([]tracestore.SummarySpan) error,
) error {
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return err
	}
	defer memory.Release()
	var hosts Hosts
	var spans []tracestore.SummarySpan // share strings with the pieces
	texts := 0
	var damaged *tracestore.DamagedError
	for t, err := range w.Of.Traces(ctx, tenant, []tracestore.TraceRef{{ID: id}}) {
		if errors.As(err, &damaged) {
			break
		}
		if err == nil {
			err = memory.Grow(int64(t.Spans.Size()))
		}
		if err == nil {
			err = tracestore.WalkSpans(t.Spans, func(s tracestore.Span) error {
				one := hosts.OutlineSpan(s)
				spans, texts = append(spans, one), texts+len(one.Name)+one.Extras.Size()
				return nil
			})
		}
		if err == nil {
			err = hold(len(spans), texts)
		}
		if err != nil {
			return err
		}
		if limit > 0 && len(spans) > limit {
			break
		}
	}
	if len(spans) > 0 {
		if err := take(spans); err != nil {
			return err
		}
	}
	if damaged != nil {
		return damaged
	}
	return nil
}

// TraceSpans implements tracestore.Reader.
func (WholeTraces) TraceSpans(context.Context, string, otlpdata.TraceID) (int, error) { return 0, nil }

// TraceVersion implements tracestore.Reader.
func (WholeTraces) TraceVersion(context.Context, string, otlpdata.TraceID) (v tracestore.TraceVersion, _ error) {
	return v, tracestore.ErrUnsupported
}
