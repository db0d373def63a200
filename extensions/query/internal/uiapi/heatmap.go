package uiapi

import (
	"context"
	"encoding/hex"
	"errors"
	"math"
	"net/url"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	defaultColumns   = 120 // of a heatmap
	defaultExemplars = 100
)

// heatmapAnswer is the data of GET /api/ui/v1/heatmap. Counts cover the examined share of spans.
type heatmapAnswer struct {
	Of        string      `json:"of"`    // what is counted: spans or traces
	Start     route.Nanos `json:"start"` // of the first column
	Step      int64       `json:"step"`
	Columns   int64       `json:"columns"`
	PerOctave int         `json:"bucketsPerOctave"` // bucket b begins at the duration 2^(b/bucketsPerOctave)
	Spans     uint64      `json:"spans"`
	Errors    uint64      `json:"errors"`
	route.SampleShare
	Cells     cellColumns     `json:"cells"`
	Exemplars exemplarColumns `json:"exemplars"`
}

// cellColumns are the cells that are not empty, sorted by column and bucket.
type cellColumns struct {
	Column []int64  `json:"column"`
	Bucket []int    `json:"bucket"`
	Count  []uint64 `json:"count"`
	Errors []uint64 `json:"errors"`
}

// exemplarColumns are examples of spans, or of traces, which are described by their root spans.
type exemplarColumns struct {
	TraceID  []string      `json:"traceID"`
	SpanID   []string      `json:"spanID"`
	Start    []route.Nanos `json:"start"`
	Duration []uint64      `json:"duration"`
	Service  []string      `json:"service"`
	Name     []string      `json:"name"`
	Error    []bool        `json:"error"`
	// ErrorType says what failed in failed spans; only with the parameter errorTypes.
	ErrorType []string `json:"errorType,omitempty"`
}

// Values of `of`: what a heatmap counts.
const (
	ofSpans  = "spans"
	ofTraces = "traces"
)

var errOf = errors.New("must be spans or traces")

// heatmap parses GET /api/ui/v1/heatmap, which returns the numbers of spans or traces by start and
// duration, and some examples.
func (a *API) heatmap(ctx context.Context, v url.Values) (route.Query, error) {
	agg, err := route.AggregationParams(ctx, a.backend, v)
	if err != nil {
		return nil, err
	}
	if agg.Spec.Heatmap.Step, err = stepParam(v, agg.Window); err != nil {
		return nil, err
	}
	if agg.Spec.Exemplars, err = route.CountParam(v, "exemplars", defaultExemplars, tracestore.MaxExemplars); err != nil {
		return nil, err
	}
	if err := agg.Check(); err != nil {
		return nil, err
	}
	withTypes, err := route.BoolParam(v, "errorTypes")
	if err != nil {
		return nil, err
	}
	switch v.Get("of") {
	case "", ofSpans:
	case ofTraces:
		agg.Traces = true
		route.DependOnTraces(&agg)
	default:
		return nil, httpapi.ParamError("of", errOf)
	}
	return func(slot *core.Slot) (any, tracestore.Reasons, error) {
		found, err := slot.Aggregate(&agg)
		if err != nil {
			return nil, nil, err
		}
		out := heatmapOf(&agg, &found)
		if withTypes && !agg.Traces {
			out.Exemplars.ErrorType = errorTypes(slot, found.Exemplars)
		}
		return out, found.Reasons, nil
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
	columns, err := route.CountParam(v, "columns", defaultColumns, tracestore.MaxColumns)
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

// chooseStep returns a round step that divides a window into at most the given number of columns
// (two if the number is one). The window may begin and end within columns.
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
	first := int64(route.NanosOf(w.From)) / int64(step)
	out := &heatmapAnswer{
		Of: of, Start: route.Nanos(first * int64(step)), Step: int64(step), Columns: int64(route.NanosOf(w.To))/int64(step) - first + 1,
		PerOctave: tracestore.HeatBucketsPerOctave, Spans: a.Spans, Errors: a.Errors, Exemplars: exemplarsOf(a.Exemplars),
	}
	var cells []tracestore.HeatCell
	part := 1.0
	if a.Heatmap != nil {
		cells, part = a.Heatmap.Cells, a.Heatmap.Share
	}
	out.SampleShare = route.ShareOf(a, part)
	out.Cells = cellColumns{make([]int64, len(cells)), make([]int, len(cells)), make([]uint64, len(cells)), make([]uint64, len(cells))}
	for i, c := range cells {
		out.Cells.Column[i] = int64(c.Start)/int64(step) - first
		out.Cells.Bucket[i], out.Cells.Count[i], out.Cells.Errors[i] = c.Bucket, c.Count, c.Errors
	}
	return out
}

func exemplarsOf(list []tracestore.Exemplar) exemplarColumns {
	n := len(list)
	out := exemplarColumns{make([]string, n), make([]string, n), make([]route.Nanos, n), make([]uint64, n), make([]string, n),
		make([]string, n), make([]bool, n), nil}
	for i := range list {
		e := &list[i]
		out.TraceID[i], out.SpanID[i] = hex.EncodeToString(e.TraceID[:]), e.SpanID.String()
		out.Start[i], out.Duration[i] = route.Nanos(e.Start), e.Duration
		out.Service[i], out.Name[i], out.Error[i] = e.Service, e.Name, e.Failed
	}
	return out
}
