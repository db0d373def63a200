package route

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// SampleShare holds the examined share of the spans, and estimates of the totals.
type SampleShare struct {
	Share           float64 `json:"share"`
	Scanned         int     `json:"scanned"`
	EstimatedSpans  uint64  `json:"estimatedSpans"`
	EstimatedErrors uint64  `json:"estimatedErrors"`
	RelativeError   float64 `json:"relativeError,omitempty"` // of EstimatedSpans
}

// ShareOf describes an aggregate for which a part of the spans was examined.
func ShareOf(a *tracestore.Aggregate, part float64) SampleShare {
	return SampleShare{Share: part, Scanned: a.Scanned, EstimatedSpans: Estimate(a.Spans, part), EstimatedErrors: Estimate(a.Errors, part),
		RelativeError: a.RelativeError}
}

// AggregationParams parses the parameters that all aggregations share.
func AggregationParams(ctx context.Context, b *core.Backend, v url.Values) (agg core.Aggregation, err error) {
	var ok bool
	if agg.Store, ok = core.StoreAs[tracestore.Aggregator](ctx, b); !ok {
		return agg, fmt.Errorf("%w count spans by their values", ErrUnsupported)
	}
	if agg.Window, err = WindowParams(v, b.Now()); err != nil {
		return agg, err
	}
	set, err := httpapi.SetParam(b.Language(ctx), v, "q")
	if err != nil {
		return agg, err
	}
	if agg.Where, err = httpapi.SpanCondition(set); err != nil {
		agg.Set = set // it depends on whole traces
	}
	return agg, nil
}

// DependOnTraces sets Set, even if the spans do not depend on whole traces.
func DependOnTraces(agg *core.Aggregation) {
	if agg.Set == nil {
		agg.Set, agg.Where = storequery.Select{Where: agg.Where}, nil
	}
}

// ErrNoSelection is the error of a request that needs a selection.
var ErrNoSelection = errors.New("no selection: set one of sel_start, sel_end, sel_min, sel_max and sel_q")

// HasSelection reports whether a request selects a part of the matching spans.
func HasSelection(v url.Values) bool {
	for _, name := range []string{"sel_start", "sel_end", "sel_min", "sel_max", "sel_q"} {
		if v.Get(name) != "" {
			return true
		}
	}
	return false
}

// SelectionParams parses the area of a heatmap of spans that a user selects, and a further
// condition.
func SelectionParams(l traceql.Language, v url.Values, agg *core.Aggregation) error {
	if !HasSelection(v) {
		return ErrNoSelection
	}
	var s tracestore.Selection
	var err error
	if s.From, err = NanosParam(v, "sel_start", agg.Window.From); err != nil {
		return err
	}
	if s.To, err = NanosParam(v, "sel_end", agg.Window.To); err != nil {
		return err
	}
	set, err := httpapi.SetParam(l, v, "sel_q")
	if err != nil {
		return err
	}
	all := tracestore.And{}
	if where, err := httpapi.SpanCondition(set); err != nil {
		agg.Selected = set
		DependOnTraces(agg)
	} else if where != nil {
		all = append(all, where)
	}
	if all, err = BoundDuration(all, v, "sel_min", tracestore.Duration, tracestore.Ge); err != nil {
		return err
	}
	if all, err = BoundDuration(all, v, "sel_max", tracestore.Duration, tracestore.Le); err != nil {
		return err
	}
	s.Where = all
	agg.Spec.Facets.Selection = &s
	return nil
}

// BoundDuration appends the condition on the duration of a span or a trace for a parameter, if it
// is set.
func BoundDuration(all tracestore.And, v url.Values, name string, of tracestore.Place, op tracestore.Op) (tracestore.And, error) {
	if v.Get(name) == "" {
		return all, nil
	}
	d, err := httpapi.DurationParam(v, name)
	if err != nil {
		return nil, err
	}
	return append(all, core.WhereDuration(of, op, d)), nil
}
