package tracestore

import (
	"context"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Aggregator is implemented by stores that compute aggregates of all spans that match a query
// without returning the spans.
//
// Counts are numbers of stored spans. They are not adjusted for sampling. A store counts duplicates
// once, but duplicates that arrived in different requests may count once for each place where they
// are stored.
type Aggregator interface {
	// Aggregate describes the spans that start within the window of q and for which q.Where holds.
	// Limit and After are ignored. The fields of a have no Names: package aggregates counts those.
	//
	// Budget.Spans limits the number of spans examined one by one. If there are more, the store
	// examines a sample that is spread over the window and independent of the content of spans, and
	// reports the sampled share. Repeated calls have the same result if the store has not changed.
	// If several stores are read as one, each may examine this many spans.
	//
	// It returns an error if there is no result at all, for example if Aggregation.Check fails or
	// ctx was canceled. If some spans could not be read or time ran out, the result is incomplete.
	Aggregate(ctx context.Context, q Query, a Aggregation) (Aggregate, error)
}

// Aggregation selects what to compute. Parts that are zero are omitted.
type Aggregation struct {
	Heatmap HeatmapQuery
	Facets  FacetQuery
	// Exemplars is the maximum number of exemplars to return, at most MaxExemplars. A store may
	// return fewer if more are expensive to find.
	Exemplars int
	Groups    GroupQuery
}

// HeatmapQuery requests the number of spans by start and duration.
type HeatmapQuery struct {
	// Step is the width of a column. 0 requests no heatmap. Columns begin at multiples of Step
	// since the Unix epoch. A window with more than MaxColumns columns, for example one without an
	// end, is an error.
	Step time.Duration
}

// FacetQuery requests the values of fields and the number of spans with each value.
type FacetQuery struct {
	// Values is the number of values to return for each field, at most MaxFacetValues: the most
	// frequent ones, or with a Selection those with the highest scores. 0 requests no facets.
	Values int
	// Fields lists the fields to count, at most MaxFacets, without duplicates. Fields of the trace
	// have no values.
	//
	// If it is empty, MaxFacets fields are counted: Service, Name, Kind and Status, and the most
	// frequent keys of span and resource attributes (ties by place and key). Fields that no span
	// has and the key otlpdata.FlagsAttribute are omitted.
	Fields []Field
	// All requests everything that was counted, so that the results of several stores can be added
	// up: all values of each field and, if Fields is empty, all keys, in any order and without
	// scores. Values must be above 0 but is otherwise ignored.
	All bool
	// Selection, if not nil, is the part of the spans to compare with the rest. Its spans are
	// counted separately as well.
	Selection *Selection
}

// Selection is a subset of the spans that a query covers.
type Selection struct {
	From, To time.Time // as in Query
	Where    Expr
}

// Limits of an aggregation.
const (
	MaxColumns     = 2000 // of a heatmap
	MaxExemplars   = 1000
	MaxFacets      = 200
	MaxFacetValues = 1000
)

// Aggregate is the result of an Aggregator.
type Aggregate struct {
	// Spans and Errors (spans with the status error) are the totals of the first requested part:
	// the heatmap, the facets, or the groups. If none was requested, they are counted on their own.
	// Share is the share of spans examined for them; see Heatmap.Share.
	Spans, Errors uint64
	Share         float64
	// RelativeError is the relative standard error of Spans / Share, the estimate of the number of
	// matching spans. It is 0 if Share is 1, and 1 if the examined spans allow no estimate, for
	// example because none of them matches. The counts of single values and cells have higher
	// errors.
	RelativeError float64
	Heatmap       *Heatmap // nil unless requested
	Facets        *Facets  // nil unless requested
	Groups        *Groups  // nil unless requested
	Exemplars     []Exemplar
	// Scanned is the number of spans that were examined one by one.
	Scanned int
	// Reasons says why some spans within the examined share could not be read.
	Reasons
}

// Heatmap counts spans by start and duration.
type Heatmap struct {
	Step  uint64     // nanoseconds
	Cells []HeatCell // sorted by start and bucket; each has at least one span
	// Share is the share of the spans that was examined: above 0 and at most 1. It is 1 if all
	// spans were examined or there are none. A count divided by Share is an estimate for all spans.
	Share float64
}

// HeatCell counts the spans of one column in one duration bucket.
type HeatCell struct {
	Start         uint64 // of the column, nanoseconds since the Unix epoch
	Bucket        int    // duration bucket, see HeatBucketOf
	Count, Errors uint64
}

// Facets holds the values of several fields.
type Facets struct {
	// Facets are in the order of FacetQuery.Fields. If Fields is empty, they are sorted by Score (0
	// without a Selection) and Spans, both descending, then by place and key.
	Facets          []Facet
	Spans, Selected uint64  // matching spans that were examined; Selected counts the ones in the Selection
	Share           float64 // see Heatmap.Share
	// Omitted is the number of other fields that were counted.
	Omitted int
}

// Facet holds the values of one field.
type Facet struct {
	Field Field
	// Spans is the number of spans with a value of the field. A span with several distinct values
	// counts once here and once for each value.
	Spans, Selected uint64
	// Values are sorted by absolute Score (0 without a Selection), then by Score and Count, all
	// descending, then by Text.
	Values []FacetValue
	// Distinct is the number of distinct values that were counted. Other counts the occurrences of
	// all other values.
	Distinct int
	Other    uint64
	// Score is the highest absolute Score of all values, including values that are not returned.
	Score float64
}

// FacetValue counts one value of a field.
type FacetValue struct {
	Text            string // otlpdata.Value.AsString, shortened by storequery.FacetText
	Count, Selected uint64 // Count includes Selected
	// Score is the difference between the frequencies of the value in the selection and in the
	// rest; see storequery.FacetScore.
	Score float64
}

// Exemplar is an example of the matching spans. The exemplars of a result are spread over start
// times and durations.
type Exemplar struct {
	TraceID         otlpdata.TraceID
	SpanID          otlpdata.SpanID
	Start, Duration uint64 // nanoseconds; Duration as corrected by otlpdata.Span.Duration
	// Service and Name are as corrected by otlpdata.ServiceName and otlpdata.Span.Operation, and
	// shortened by storequery.FacetText.
	Service, Name string
	Failed        bool
}
