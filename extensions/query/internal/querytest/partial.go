package querytest

import (
	"context"
	"iter"
	"time"

	"github.com/tracing-backend/tracing/internal/multistore"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
)

// PartialReason is why the results of a partial store are incomplete.
const PartialReason = "store b: disk on fire"

// Partial returns a store over two others: one that works, and one whose calls all fail.
func Partial(works core.Store) core.Store {
	return multistore.New(multistore.Named{Name: "a", Store: works}, multistore.Named{Name: "b", Store: failing{}})
}

// failing is a store that supports everything but whose calls all fail.
type failing struct{}

func (failing) Traces(context.Context, string, []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) { yield(tracestore.Trace{}, ErrStore) }
}

func (failing) Find(context.Context, tracestore.Query, tracestore.Want) (*tracestore.Results, error) {
	return nil, ErrStore
}

func (failing) Services(context.Context, string, tracestore.NameQuery) ([]string, bool, error) {
	return nil, false, ErrStore
}

func (failing) Operations(context.Context, string, string, string, tracestore.NameQuery) ([]tracestore.Operation, bool, error) {
	return nil, false, ErrStore
}

func (failing) AttributeKeys(context.Context, string, string, int) ([]string, error) {
	return nil, ErrStore
}

func (failing) AttributeValues(context.Context, string, string, string, int) ([]string, error) {
	return nil, ErrStore
}

func (failing) Aggregate(context.Context, tracestore.Query, tracestore.Aggregation) (a tracestore.Aggregate, _ error) {
	return a, ErrStore
}

func (failing) Dependencies(context.Context, string, time.Time, time.Time) (g tracestore.Graph, _ error) {
	return g, ErrStore
}

func (failing) Peers(context.Context, string, time.Time, time.Time) (g tracestore.Graph, _ error) {
	return g, ErrStore
}

func (failing) Edges(context.Context, string, tracestore.EdgeQuery) (g tracestore.EdgeGraph, _ error) {
	return g, ErrStore
}

func (failing) Metrics(context.Context, string, tracestore.MetricsQuery) (a tracestore.MetricsAnswer, _ error) {
	return a, ErrStore
}

func (failing) Baselines(context.Context, string, tracestore.BaselineQuery) (a tracestore.BaselineAnswer, _ error) {
	return a, ErrStore
}

func (failing) ProfilePaths(
	context.Context, tracestore.Query, tracestore.Selection, tracestore.PathOptions,
) (p tracestore.PathProfile, _ error) {
	return p, ErrStore
}

func (failing) Usage(context.Context, string) (u tracestore.Usage, _ error) { return u, ErrStore }

func (failing) TraceSpans(context.Context, string, otlpdata.TraceID) (int, error) {
	return 0, ErrStore
}

func (failing) TraceVersion(context.Context, string, otlpdata.TraceID) (v tracestore.TraceVersion, _ error) {
	return v, ErrStore
}

func (failing) FindSpans(context.Context, string, otlpdata.TraceID, tracestore.SpanCondition) (f tracestore.FoundSpans, _ error) {
	return f, ErrStore
}

func (f failing) SelectSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, _ []otlpdata.SpanID,
) iter.Seq2[tracestore.Trace, error] {
	return f.Traces(ctx, tenant, []tracestore.TraceRef{{ID: id}})
}

func (failing) Outline(
	context.Context, string, otlpdata.TraceID, int, func(int, int) error, func([]tracestore.SummarySpan) error,
) error {
	return ErrStore
}
