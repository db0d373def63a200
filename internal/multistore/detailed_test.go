package multistore

import (
	"context"
	"iter"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

// detailed is a memory store that also answers what the disk store can answer about single traces.
type detailed struct {
	storetest.Subject
	tracestore.Follower
	tracestore.Deleter
}

func openDetailed(tb testing.TB) storetest.Subject {
	tb.Helper()
	m := openMemory(tb)
	return detailed{m, as[tracestore.Follower](tb, m), as[tracestore.Deleter](tb, m)}
}

func as[T any](tb testing.TB, store any) T {
	tb.Helper()
	optional, ok := tracestore.As[T](tb.Context(), "", store)
	if !ok {
		tb.Fatalf("memory store is not a %T", optional)
	}
	return optional
}

// spans calls visit with the spans of a trace.
func (d detailed) spans(ctx context.Context, tenant string, id otlpdata.TraceID, visit func(tracestore.Span) error) error {
	for t, err := range d.Traces(ctx, tenant, []tracestore.TraceRef{{ID: id}}) {
		if err == nil {
			err = tracestore.WalkSpans(t.Spans, visit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// SelectSpans implements tracestore.Reader.
func (d detailed) SelectSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, spans []otlpdata.SpanID,
) iter.Seq2[tracestore.Trace, error] {
	ids := make(map[otlpdata.SpanID]struct{})
	for _, id := range spans {
		ids[id] = struct{}{}
	}
	return func(yield func(tracestore.Trace, error) bool) {
		var selected distinctSpans
		err := d.spans(ctx, tenant, id, func(s tracestore.Span) error {
			if tracestore.SelectsSpan(s.Span, ids) {
				selected.add(s)
			}
			return nil
		})
		if err != nil {
			yield(tracestore.Trace{}, err)
		} else if selected.spans > 0 {
			selected.flush()
			yield(tracestore.Trace{ID: id, Spans: otlpdata.FromStored(selected.chunk, otlpdata.Meta{Tenant: tenant}, selected.counts...)}, nil)
		}
	}
}

// FindSpans implements tracestore.Reader.
func (d detailed) FindSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, c tracestore.SpanCondition,
) (found tracestore.FoundSpans, err error) {
	m := c.Matcher(ctx)
	err = d.spans(ctx, tenant, id, func(s tracestore.Span) error {
		if found.Spans++; m.Matches(s) {
			found.IDs = append(found.IDs, s.SpanID)
		}
		return nil
	})
	return found, err
}

// Outline implements tracestore.Reader.
func (d detailed) Outline(
	ctx context.Context, tenant string, id otlpdata.TraceID, _ int, hold func(spans, textBytes int) error,
	take func([]tracestore.SummarySpan) error,
) error {
	var hosts storequery.Hosts
	var outline []tracestore.SummarySpan
	texts := 0
	err := d.spans(ctx, tenant, id, func(s tracestore.Span) error {
		one := hosts.OutlineSpan(s)
		outline, texts = append(outline, one), texts+len(one.Name)+one.Extras.Size()
		return hold(len(outline), texts)
	})
	if err != nil || len(outline) == 0 {
		return err
	}
	return take(outline)
}

// TestTraceDetails runs the checks for answers about single traces, on distributed, duplicated and
// divided traces.
func TestTraceDetails(t *testing.T) {
	for name, route := range map[string]func(int, otlpdata.TraceID) []int{
		"distributed": byTrace(3, 1), "duplicated": byTrace(3, 2), "divided": byRequest(3),
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Checks(t, func(tb testing.TB) storetest.Subject { return newShopOf(tb, openDetailed, 3, route) },
				"outlines", "single spans of traces", "spans found in traces")
		})
	}
}
