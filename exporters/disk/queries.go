package disk

import (
	"context"
	"iter"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/aggregate"
	"github.com/tracing-backend/tracing/exporters/disk/internal/find"
	"github.com/tracing-backend/tracing/exporters/disk/internal/graph"
	"github.com/tracing-backend/tracing/exporters/disk/internal/names"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// queries answers all queries of the store. A query takes this route:
//
//	queries        selects the package that answers
//	 ├─ find       Find, Traces, TraceSpans, Outline, SelectSpans,
//	 │             FindSpans, TraceVersion, ProfilePaths
//	 ├─ aggregate  Aggregate, Metrics, Baselines
//	 ├─ graph      Dependencies, Peers
//	 └─ names      Services, Operations, AttributeKeys, AttributeValues
//	      │
//	      ▼
//	scan.Store.Begin      takes a view of all memtables and segments (exporter.view)
//	scan.Compile          numbers the conditions of the query
//	scan.NewPlan          binds them to the columns and the vocabulary of one source
//	Plan.EnterBlock       rules out blocks by filters, shapes and durations, without reading them
//	Session.OpenBlock     waits for a free decoder and opens a block (memtable, segment, block)
//	Filter.Narrow         evaluates the conditions on rows, column by column, the cheapest first
//	Session.NoteDamage    skips what cannot be read; the answer says so
//	Session.Release       releases the view
//
// aggregate and graph use the statistics of segments and memtables (package stats) if these have
// the answer, and read rows for the rest only.
type queries struct {
	finder     *find.Finder
	aggregator *aggregate.Aggregator
	graphs     *graph.Builder
	catalog    *names.Catalog
}

func newQueries(view func() scan.View, o scan.Options) *queries {
	s := scan.NewStore(view, o)
	return &queries{finder: find.New(s), aggregator: aggregate.New(s), graphs: graph.New(s), catalog: names.New(s)}
}

// Find implements tracestore.Reader.
func (q *queries) Find(ctx context.Context, query tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	return q.finder.Find(ctx, query, want)
}

// Traces implements tracestore.Reader.
func (q *queries) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return q.finder.Traces(ctx, tenant, refs)
}

// TraceSpans implements tracestore.Sizer.
func (q *queries) TraceSpans(ctx context.Context, tenant string, id otlpdata.TraceID) (int, error) {
	return q.finder.TraceSpans(ctx, tenant, id)
}

// FindSpans implements tracestore.SpanFinder.
func (q *queries) FindSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, c tracestore.SpanCondition,
) (tracestore.FoundSpans, error) {
	return q.finder.FindSpans(ctx, tenant, id, c)
}

// TraceVersion implements tracestore.Versioner.
func (q *queries) TraceVersion(ctx context.Context, tenant string, id otlpdata.TraceID) (tracestore.TraceVersion, error) {
	return q.finder.TraceVersion(ctx, tenant, id)
}

// Outline implements tracestore.Outliner.
func (q *queries) Outline(
	ctx context.Context, tenant string, id otlpdata.TraceID, limit int,
	hold func(spans, names int) error, take func([]tracestore.SummarySpan) error,
) error {
	return q.finder.Outline(ctx, tenant, id, limit, hold, take)
}

// ProfilePaths implements tracestore.PathProfiler.
func (q *queries) ProfilePaths(
	ctx context.Context, query tracestore.Query, sel tracestore.Selection, o tracestore.PathOptions,
) (tracestore.PathProfile, error) {
	return q.finder.ProfilePaths(ctx, query, sel, o)
}

// SelectSpans implements tracestore.SpanSelector.
func (q *queries) SelectSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, spans []otlpdata.SpanID,
) iter.Seq2[tracestore.Trace, error] {
	return q.finder.SelectSpans(ctx, tenant, id, spans)
}

// Aggregate implements tracestore.Aggregator.
func (q *queries) Aggregate(ctx context.Context, query tracestore.Query, want tracestore.Aggregation) (tracestore.Aggregate, error) {
	return q.aggregator.Aggregate(ctx, query, want)
}

// AggregatesGroups implements tracestore.GroupAggregator.
func (*queries) AggregatesGroups() {}

// Baselines implements tracestore.Baselines.
func (q *queries) Baselines(ctx context.Context, tenant string, query tracestore.BaselineQuery) (tracestore.BaselineAnswer, error) {
	return q.aggregator.Baselines(ctx, tenant, query)
}

// Metrics implements tracestore.Metrics.
func (q *queries) Metrics(ctx context.Context, tenant string, query tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	return q.aggregator.Metrics(ctx, tenant, query)
}

// Dependencies implements tracestore.Dependencies.
func (q *queries) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	return q.graphs.Dependencies(ctx, tenant, from, to)
}

// Edges implements tracestore.Edges.
func (q *queries) Edges(ctx context.Context, tenant string, query tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
	return q.graphs.Edges(ctx, tenant, query)
}

// Peers implements tracestore.Peers.
func (q *queries) Peers(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	return q.graphs.Peers(ctx, tenant, from, to)
}

// Services implements tracestore.Catalog.
func (q *queries) Services(ctx context.Context, tenant string, want tracestore.NameQuery) (names []string, more bool, err error) {
	return q.catalog.Services(ctx, tenant, want)
}

// Operations implements tracestore.Catalog.
func (q *queries) Operations(
	ctx context.Context, tenant, service, kind string, want tracestore.NameQuery,
) (ops []tracestore.Operation, more bool, err error) {
	return q.catalog.Operations(ctx, tenant, service, kind, want)
}

// AttributeKeys implements tracestore.AttributeCatalog.
func (q *queries) AttributeKeys(ctx context.Context, tenant, prefix string, limit int) ([]string, error) {
	return q.catalog.AttributeKeys(ctx, tenant, prefix, limit)
}

// AttributeValues implements tracestore.AttributeCatalog.
func (q *queries) AttributeValues(ctx context.Context, tenant, key, prefix string, limit int) ([]string, error) {
	return q.catalog.AttributeValues(ctx, tenant, key, prefix, limit)
}
