package metricsquery

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Query is a metrics query over a time range.
type Query struct {
	traceql.MetricsQuery
	// From and To are the time range. Without a Step there is one sample, of the spans that start
	// after From and not after To. With a Step they are multiples of it: there is a sample at each
	// multiple from From to To, of the spans that start after the preceding multiple and not after
	// this one.
	From, To  time.Time
	Step      time.Duration
	Exemplars int // maximum number
}

// Result is the result of a Query.
type Result struct {
	Times  []time.Time // of the samples
	Series []Series    // sorted by labels
	// Partial says why the samples are estimates or some are missing; "" if they are exact.
	Partial string
	Scanned int // number of spans that were examined one by one
}

// MaxExemplars is the maximum of Query.Exemplars.
const MaxExemplars = 100

// errNoStore is the error for a store that cannot count spans by their values.
var errNoStore = fmt.Errorf("metrics queries: %w", tracestore.ErrUnsupported)

// Times returns the times of the samples.
func (q *Query) Times() []time.Time {
	if q.Step == 0 {
		return []time.Time{q.To}
	}
	var out []time.Time
	for t := q.From; !t.After(q.To); t = t.Add(q.Step) {
		out = append(out, t)
	}
	return out
}

// window returns the start times of the counted spans.
func (q *Query) window() core.Window {
	return core.Window{From: q.From.Add(1 - q.Step), To: q.To}
}

// Check returns an error for users if the query cannot be evaluated.
func (q *Query) Check() error {
	return q.check(q.Expr, true)
}

// check reports functions that cannot be used where they are. alone means that no operator is
// applied to the expression.
func (q *Query) check(e traceql.MetricsExpr, alone bool) error {
	switch e := e.(type) {
	case traceql.MetricsMath:
		return errors.Join(q.check(e.Left, false), q.check(e.Right, false))
	case traceql.MetricsFilter:
		return q.check(e.Expr, false)
	case traceql.MetricsTop:
		return q.check(e.Expr, false)
	case traceql.MetricsStage:
		if e.Function == traceql.MetricsComparing && !alone {
			return errors.New("compare(...) cannot be combined with operators, topk or bottomk")
		}
		if n := len(q.Times()); e.Function == traceql.MetricsComparing && n > maxCompareSteps {
			return fmt.Errorf("compare(...) has at most %d samples, not %d; use a step as long as the time range", maxCompareSteps, n)
		}
		if e.Function == traceql.MetricsComparing && q.Hint("extrapolate") == "true" {
			return errors.New("compare(...) counts spans as stored; leave out extrapolate=true")
		}
	}
	return nil
}

// run is a running Query.
type run struct {
	*Query
	slot      *core.Slot
	store     tracestore.Aggregator
	times     []time.Time
	exemplars int // maximum number for one function
	partial   []string
	share     float64 // the smallest share of the spans that was examined for samples
	scanned   int
}

// Run evaluates a query.
func Run(slot *core.Slot, q *Query) (Result, error) {
	store, ok := core.SlotAs[tracestore.Aggregator](slot)
	if !ok {
		return Result{}, errNoStore
	}
	r := run{Query: q, slot: slot, store: store, times: q.Times(), exemplars: min(q.Exemplars, MaxExemplars) / max(stages(q.Expr), 1),
		share: 1}
	list, err := r.eval(q.Expr)
	if err != nil {
		return Result{}, err
	}
	limit := slot.Limits().MetricsSeries
	if len(list) > limit {
		r.note(fmt.Sprintf("%d of %d series are returned (max_metrics_series); use topk or more conditions", limit, len(list)))
		list = list[:limit]
	}
	if r.share < 1 {
		r.note("samples are estimates from " + strconv.FormatFloat(100*r.share, 'g', 3, 64) +
			" % of the spans (max_aggregated_spans); use a shorter time range or more conditions")
	}
	sortSeries(list)
	return Result{Times: r.times, Series: list, Partial: strings.Join(r.partial, "; "), Scanned: r.scanned}, nil
}

// stages returns the number of functions in an expression.
func stages(e traceql.MetricsExpr) int {
	switch e := e.(type) {
	case traceql.MetricsStage:
		return 1
	case traceql.MetricsFilter:
		return stages(e.Expr)
	case traceql.MetricsTop:
		return stages(e.Expr)
	case traceql.MetricsMath:
		return stages(e.Left) + stages(e.Right)
	}
	return 0
}

// note adds a reason why the result is not exact.
func (r *run) note(text string) {
	if text != "" && !slices.Contains(r.partial, text) {
		r.partial = append(r.partial, text)
	}
}

// eval returns the series of an expression.
func (r *run) eval(e traceql.MetricsExpr) ([]Series, error) {
	switch e := e.(type) {
	case traceql.MetricsStage:
		if e.Function == traceql.MetricsComparing {
			return r.compare(&e)
		}
		return r.stage(&e)
	case traceql.MetricsFilter:
		list, err := r.eval(e.Expr)
		return filter(list, e.Op, e.Value.Value), err
	case traceql.MetricsTop:
		list, err := r.eval(e.Expr)
		return top(list, e.N, e.Bottom), err
	case traceql.MetricsMath:
		return r.math(&e)
	}
	return nil, fmt.Errorf("unknown expression %T", e)
}

func (r *run) math(e *traceql.MetricsMath) ([]Series, error) {
	left, numberFirst := e.Left.(traceql.MetricsNumber)
	right, numberLast := e.Right.(traceql.MetricsNumber)
	switch {
	case numberFirst:
		list, err := r.eval(e.Right)
		return calculateWith(e.Op, list, left.Value, true), err
	case numberLast:
		list, err := r.eval(e.Left)
		return calculateWith(e.Op, list, right.Value, false), err
	}
	a, err := r.eval(e.Left)
	if err != nil {
		return nil, err
	}
	b, err := r.eval(e.Right)
	return calculate(e.Op, a, b), err
}

// estimate notes which share of the spans was examined, and why others were not.
func (r *run) estimate(share float64, reasons tracestore.Reasons) {
	r.share = min(r.share, share)
	r.note(core.IncompleteMessage(reasons))
}
