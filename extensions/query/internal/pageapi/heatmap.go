package pageapi

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	defaultColumns   = 120 // of a heatmap
	defaultExemplars = 100
)

// heatmapAnswer is the data of GET /api/ui/v1/heatmap. Counts are of the examined share of spans.
type heatmapAnswer struct {
	Of        string `json:"of"`    // what is counted: spans or traces
	Start     nanos  `json:"start"` // of the first column
	Step      int64  `json:"step"`
	Columns   int64  `json:"columns"`
	PerOctave int    `json:"bucketsPerOctave"` // bucket b begins at the duration 2^(b/bucketsPerOctave)
	Spans     uint64 `json:"spans"`
	Errors    uint64 `json:"errors"`
	sampleShare
	Cells     cellColumns     `json:"cells"`
	Exemplars exemplarColumns `json:"exemplars"`
}

// sampleShare says which share of the spans was examined, and estimates the totals.
type sampleShare struct {
	Share           float64 `json:"share"`
	Scanned         int     `json:"scanned"`
	EstimatedSpans  uint64  `json:"estimatedSpans"`
	EstimatedErrors uint64  `json:"estimatedErrors"`
	RelativeError   float64 `json:"relativeError,omitempty"` // of EstimatedSpans
}

func shareOf(a *tracestore.Aggregate, part float64) sampleShare {
	return sampleShare{Share: part, Scanned: a.Scanned, EstimatedSpans: estimate(a.Spans, part), EstimatedErrors: estimate(a.Errors, part),
		RelativeError: a.RelativeError}
}

// cellColumns are the cells that are not empty, sorted by column and bucket.
type cellColumns struct {
	Column []int64  `json:"column"`
	Bucket []int    `json:"bucket"`
	Count  []uint64 `json:"count"`
	Errors []uint64 `json:"errors"`
}

// exemplarColumns are examples of spans, or of traces, by their root spans.
type exemplarColumns struct {
	TraceID  []string `json:"traceID"`
	SpanID   []string `json:"spanID"`
	Start    []nanos  `json:"start"`
	Duration []uint64 `json:"duration"`
	Service  []string `json:"service"`
	Name     []string `json:"name"`
	Error    []bool   `json:"error"`
}

// aggregation parses the parameters that all aggregations share.
func (a *API) aggregation(ctx context.Context, v url.Values) (agg core.Aggregation, err error) {
	var ok bool
	if agg.Store, ok = core.StoreAs[tracestore.Aggregator](ctx, a.backend); !ok {
		return agg, fmt.Errorf("%w count spans by their values", errUnsupported)
	}
	if agg.Window, err = windowParams(v, a.backend.Now()); err != nil {
		return agg, err
	}
	set, err := httpapi.SetParam(v, "q")
	if err != nil {
		return agg, err
	}
	if agg.Where, err = httpapi.SpanCondition(set); err != nil {
		agg.Set = set // it depends on whole traces
	}
	return agg, nil
}

// dependOnTraces sets Set, also if the spans do not depend on whole traces.
func dependOnTraces(agg *core.Aggregation) {
	if agg.Set == nil {
		agg.Set, agg.Where = storequery.Select{Where: agg.Where}, nil
	}
}

// reasonOf returns why an answer is incomplete, or "".
func reasonOf(a *tracestore.Aggregate) string {
	if a.Complete {
		return ""
	}
	return a.Reason
}

// Values of `of`: what a heatmap counts.
const (
	ofSpans  = "spans"
	ofTraces = "traces"
)

var errOf = errors.New("must be spans or traces")

// heatmap parses GET /api/ui/v1/heatmap, which returns the numbers of spans or traces by start and
// duration, and some of them as examples.
func (a *API) heatmap(ctx context.Context, v url.Values) (query, error) {
	agg, err := a.aggregation(ctx, v)
	if err != nil {
		return nil, err
	}
	if agg.Spec.Heatmap.Step, err = stepParam(v, agg.Window); err != nil {
		return nil, err
	}
	if agg.Spec.Exemplars, err = countParam(v, "exemplars", defaultExemplars, tracestore.MaxExemplars); err != nil {
		return nil, err
	}
	if err := agg.Check(); err != nil {
		return nil, err
	}
	switch v.Get("of") {
	case "", ofSpans:
	case ofTraces:
		agg.Traces = true
		dependOnTraces(&agg)
	default:
		return nil, httpapi.ParamError("of", errOf)
	}
	return func(slot *core.Slot) (any, string, error) {
		found, err := slot.Aggregate(&agg)
		if err != nil {
			return nil, "", err
		}
		return heatmapOf(&agg, &found), reasonOf(&found), nil
	}, nil
}

// stepParam parses the width of a column, or the maximum number of columns.
func stepParam(v url.Values, w core.Window) (time.Duration, error) {
	step, err := httpapi.DurationParam(v, "step")
	if err != nil {
		return 0, err
	}
	if step < 0 {
		return 0, httpapi.ParamError("step", httpapi.ErrNegative)
	}
	columns, err := countParam(v, "columns", defaultColumns, tracestore.MaxColumns)
	if err != nil {
		return 0, err
	}
	if step > 0 && v.Has("columns") {
		return 0, errors.New("'step' and 'columns' cannot both be set")
	}
	if step == 0 {
		step = chooseStep(w.To.Sub(w.From), columns)
	}
	return step, nil
}

// wholeMinutes is the minimum length of windows whose columns are whole minutes. For these, stores
// have counts that do not require reading spans.
const wholeMinutes = 15 * time.Minute

// chooseStep returns a round step for which a window has at most the given number of columns, or
// two if that is one. The window may begin and end within columns.
func chooseStep(length time.Duration, columns int) time.Duration {
	minimum := divideUp(length, max(time.Duration(columns)-1, 1))
	if length >= wholeMinutes {
		minimum = max(minimum, time.Minute)
	}
	for unit := time.Nanosecond; unit < time.Second; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if n*unit >= minimum {
				return n * unit
			}
		}
	}
	for _, s := range []time.Duration{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200} {
		if s*time.Second >= minimum {
			return s * time.Second
		}
	}
	const day, longest = 24 * time.Hour, math.MaxInt64
	return min(divideUp(minimum, day), longest/day) * day // the longest window has two columns
}

func divideUp(a, b time.Duration) time.Duration {
	if a%b == 0 {
		return a / b
	}
	return a/b + 1
}

func heatmapOf(agg *core.Aggregation, a *tracestore.Aggregate) *heatmapAnswer {
	w, step, of := agg.Window, agg.Spec.Heatmap.Step, ofSpans
	if agg.Traces {
		of = ofTraces
	}
	first := int64(nanosOf(w.From)) / int64(step)
	out := &heatmapAnswer{
		Of: of, Start: nanos(first * int64(step)), Step: int64(step), Columns: int64(nanosOf(w.To))/int64(step) - first + 1,
		PerOctave: tracestore.BucketsPerOctave, Spans: a.Spans, Errors: a.Errors, Exemplars: exemplarsOf(a.Exemplars),
	}
	var cells []tracestore.HeatCell
	part := 1.0
	if a.Heatmap != nil {
		cells, part = a.Heatmap.Cells, a.Heatmap.Share
	}
	out.sampleShare = shareOf(a, part)
	out.Cells = cellColumns{make([]int64, len(cells)), make([]int, len(cells)), make([]uint64, len(cells)), make([]uint64, len(cells))}
	for i, c := range cells {
		out.Cells.Column[i] = int64(c.Start)/int64(step) - first
		out.Cells.Bucket[i], out.Cells.Count[i], out.Cells.Errors[i] = c.Bucket, c.Count, c.Errors
	}
	return out
}

func exemplarsOf(list []tracestore.Exemplar) exemplarColumns {
	n := len(list)
	out := exemplarColumns{make([]string, n), make([]string, n), make([]nanos, n), make([]uint64, n), make([]string, n), make([]string, n),
		make([]bool, n)}
	for i := range list {
		e := &list[i]
		out.TraceID[i], out.SpanID[i] = hex.EncodeToString(e.TraceID[:]), e.SpanID.String()
		out.Start[i], out.Duration[i] = nanos(e.Start), e.Duration
		out.Service[i], out.Name[i], out.Error[i] = e.Service, e.Name, e.Failed
	}
	return out
}
