package tracestore

import (
	"context"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Aggregator is implemented by stores that describe all spans for which a query holds without returning them.
//
// Duplicates count once; those that came in different requests a store may count once for each place where it has stored them.
type Aggregator interface {
	// Aggregate describes the spans that start within the window of q and on which q.Where holds. Limit and After are not looked at.
	// Budget.Spans bounds how many spans are examined one by one: where there are more, a store examines a part of them that does not
	// depend on their content and is spread over the window, and says which share that is. The same question to a store that has not
	// changed gets the same answer. An error says that nothing can be said, as where Aggregation.Check has one or ctx was cancelled; where
	// something could not be read or time ran out, Aggregate.Complete is false.
	Aggregate(ctx context.Context, q Query, a Aggregation) (Aggregate, error)
}

// Aggregation says what to find out. Zero parts are left out.
type Aggregation struct {
	Heatmap   HeatmapQuery
	Facets    FacetQuery
	Exemplars int // how many spans to return as examples; at most MaxExemplars. Fewer come where more are costly to find
}

// HeatmapQuery asks for the spans by start and duration.
type HeatmapQuery struct {
	// Step is the width of a column; 0: no heatmap. Columns begin at its multiples since the Unix epoch. There are at most MaxColumns:
	// longer windows are an error, also those without an end.
	Step time.Duration
}

// FacetQuery asks for the values of fields and how many spans have each.
type FacetQuery struct {
	// Values is how many values of each field to return, the most frequent ones (or, with a Selection, the most telling ones); 0: no
	// facets. At most MaxFacetValues.
	Values int
	// Fields to count, at most MaxFacets, none of them twice. Those of the trace have no values. None: Service, Name, Kind and Status, and
	// the keys of span and resource attributes that the most spans have (of those that as many have the first ones by place and key),
	// MaxFacets in all. Then a field that no span has is left out, and so is the key otlpdata.FlagsAttribute.
	Fields []Field
	// Selection compares: spans that it covers are counted a second time. nil: there is none.
	Selection *Selection
}

// Selection is a part of the spans that a query covers.
type Selection struct {
	From, To time.Time // as in Query
	Where    Expr
}

// Bounds of what an aggregation holds.
const (
	MaxColumns     = 2000 // of a heatmap
	MaxExemplars   = 1000
	MaxFacets      = 200
	MaxFacetValues = 1000
)

// Aggregate is what is known of the spans.
type Aggregate struct {
	// Spans and Errors (those with the status error) are counted as the heatmap is where one was asked for, else as the facets are, else
	// for themselves. Share is that of what they were counted in; see Heatmap.Share.
	Spans, Errors uint64
	Share         float64
	Heatmap       *Heatmap // nil unless asked for
	Facets        *Facets  // nil unless asked for
	Exemplars     []Exemplar
	// Scanned is the number of spans that were examined one by one.
	Scanned int
	// Complete: everything within the share that was examined could be read. Otherwise Reason says in the user's words what is missing.
	Complete bool
	Reason   string
}

// Heatmap counts spans by start and duration.
type Heatmap struct {
	Step  uint64     // nanoseconds
	Cells []HeatCell // sorted by start and bucket; none is empty
	// Share of the spans that was examined, above 0 and at most 1, which is all (or none). Counts divided by it estimate the whole.
	Share float64
}

// HeatCell is the spans of a column in a bucket of durations.
type HeatCell struct {
	Start         uint64 // of the column, nanoseconds since the Unix epoch
	Bucket        int    // see BucketOf
	Count, Errors uint64
}

// Facets are the values of fields.
type Facets struct {
	// Facets are in the order of FacetQuery.Fields; without those sorted by Score, which is 0 without a Selection, and by Spans, both
	// descending, then by place and key.
	Facets          []Facet
	Spans, Selected uint64  // that were examined and fit; Selected are those of the Selection
	Share           float64 // see Heatmap.Share
	// Omitted is how many further fields were counted.
	Omitted int
}

// Facet is the values of a field.
type Facet struct {
	Field Field
	// Spans have a value of the field; a span counts once for each of its distinct values, and once here.
	Spans, Selected uint64
	// Values are sorted by absolute Score, which is 0 without a Selection, then by Score and by Count, all descending, then by Text.
	Values []FacetValue
	// Distinct is how many values were told apart. Other is how often spans had other ones.
	Distinct int
	Other    uint64
	// Score is the greatest absolute Score of all values, those that are not returned included.
	Score float64
}

// FacetValue is one value of a field.
type FacetValue struct {
	Text            string // FacetText of otlpdata.Value.AsString
	Count, Selected uint64 // Count includes Selected
	// Score says how telling the value is of the selection; see FacetScore.
	Score float64
}

// Exemplar is a span that fits. Those of an answer are spread over starts and durations.
type Exemplar struct {
	TraceID         otlpdata.TraceID
	SpanID          otlpdata.SpanID
	Start, Duration uint64 // nanoseconds; Duration as otlpdata.Span.Duration mends it
	Service, Name   string // as otlpdata.ServiceName and otlpdata.Span.Operation mend them, cut by FacetText
	Failed          bool
}
