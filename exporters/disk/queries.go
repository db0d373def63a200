package disk

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/aggregate"
	"github.com/tracing-backend/tracing/exporters/disk/internal/find"
	"github.com/tracing-backend/tracing/exporters/disk/internal/graph"
	"github.com/tracing-backend/tracing/exporters/disk/internal/names"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
)

// queries runs all queries of the store. A query takes this route:
//
//	queries        has the methods of the packages that answer
//	 ├─ find       Find, Traces, TraceSpans, Outline, SelectSpans,
//	 │             FindSpans, TraceVersion, ProfilePaths
//	 ├─ aggregate  Aggregate, Metrics, Baselines
//	 ├─ graph      Dependencies, Edges, Peers
//	 └─ names      Services, Operations, AttributeKeys, AttributeValues
//	      │
//	      ▼
//	scan.Store.Begin      takes a view of all memtables and segments (deletions.view)
//	scan.Compile          numbers the conditions of the query
//	scan.NewPlan          binds them to the columns and the vocabulary of one source
//	Plan.EnterBlock       rules out blocks by filters, shapes and durations, without reading them
//	Session.OpenBlock     waits for a free decoder and opens a block (memtable, segment, block)
//	Filter.Narrow         evaluates the conditions on rows, column by column, the cheapest first
//	Session.NoteDamage    skips what cannot be read; the result says so
//	Session.Release       releases the view
//
// aggregate and graph use the statistics of segments and memtables (package stats) where possible,
// and read rows only for the rest.
type queries struct {
	*find.Finder
	*aggregate.Aggregator
	*graph.Builder
	*names.Catalog
}

func newQueries(view func() scan.View, o scan.Options) *queries {
	s := scan.NewStore(view, o)
	return &queries{Finder: find.New(s), Aggregator: aggregate.New(s), Builder: graph.New(s), Catalog: names.New(s)}
}
