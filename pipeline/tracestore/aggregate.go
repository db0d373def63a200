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
	// depend on their content and is spread over the window, and says which share that is. An error says that nothing can be said;
	// where something could not be read or time ran out, Aggregate.Complete is false.
	Aggregate(ctx context.Context, q Query, a Aggregation) (Aggregate, error)
}

// Aggregation says what to find out. Zero parts are left out.
type Aggregation struct {
	Heatmap   HeatmapQuery
	Facets    FacetQuery
	Exemplars int // how many spans to return as examples; at most MaxExemplars
}

// HeatmapQuery asks for the spans by start and duration.
type HeatmapQuery struct {
	// Step is the width of a column; 0: no heatmap. Columns begin at its multiples since the Unix epoch. There are at most MaxColumns:
	// longer windows are an error.
	Step time.Duration
}

// FacetQuery asks for the values of fields and how many spans have each.
type FacetQuery struct {
	// Values is how many values of each field to return, the most frequent ones (or, with a Selection, the most telling ones); 0: no
	// facets. At most MaxFacetValues.
	Values int
	// Fields to count; none: Service, Name, Kind and Status, and every key of span and resource attributes, the most frequent ones first,
	// MaxFacets in all. Fields of the trace have no values.
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
	// MaxDistinct is how many values of a field are counted; those that are met later count as FacetCount.Other. Values are told apart by
	// the first MaxFacetText bytes of their text form.
	MaxDistinct  = 10_000
	MaxFacetText = 256
)

// Aggregate is what is known of the spans.
type Aggregate struct {
	// Spans and Errors (those with the status error) are counted as the heatmap is where one was asked for, else as the facets are.
	Spans, Errors uint64
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
	Share float64    // of the spans that was examined, above 0 and at most 1, which is all; divide counts by it to estimate the whole
}

// HeatCell is the spans of a column in a bucket of durations.
type HeatCell struct {
	Start         uint64 // of the column, nanoseconds since the Unix epoch
	Bucket        int    // see BucketOf
	Count, Errors uint64
}

// Facets are the values of fields.
type Facets struct {
	// Facets are in the order of FacetQuery.Fields; without those sorted by the number of spans that have the field, or by Score where
	// there is a Selection, descending; then by place and key.
	Facets          []Facet
	Spans, Selected uint64  // that were examined and fit; Selected are those of the Selection
	Share           float64 // see Heatmap.Share
	// Omitted is how many further fields there were.
	Omitted int
}

// Facet is the values of a field.
type Facet struct {
	Field Field
	// Spans have a value of the field; a span counts once for each of its distinct values, and once here.
	Spans, Selected uint64
	Values          []FacetValue // by Count, or by the greatest absolute Score where there is a Selection, descending; then by text
	// Distinct is how many values there are, at most MaxDistinct. Other counts the spans whose values are not told apart.
	Distinct int
	Other    uint64
	// Score is the greatest absolute Score of all values, those that are not returned included.
	Score float64
}

// FacetValue is one value of a field.
type FacetValue struct {
	Text            string // otlpdata.Value.AsString, cut to MaxFacetText bytes
	Count, Selected uint64 // Count includes Selected
	// Score says how telling the value is of the selection: the share of the selected spans that have it less that of the others, from -1
	// to 1; 0 without a Selection, or where one of the two is empty.
	Score float64
}

// Exemplar is a span that fits. Those of an answer are spread over starts and durations.
type Exemplar struct {
	TraceID         otlpdata.TraceID
	SpanID          otlpdata.SpanID
	Start, Duration uint64 // nanoseconds; Duration as otlpdata.Span.Duration mends it
	Service, Name   string // as otlpdata.ServiceName and otlpdata.Span.Operation mend them
	Failed          bool
}
