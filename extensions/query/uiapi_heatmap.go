package query

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"

	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	defaultColumns   = 120 // of a heatmap
	defaultExemplars = 100
)

// heatmapAnswer is the data of GET /api/ui/v1/heatmap. Counts are of the share of spans that was examined.
type heatmapAnswer struct {
	Start     nanos  `json:"start"` // of the first column
	Step      int64  `json:"step"`
	Columns   int64  `json:"columns"`
	PerOctave int    `json:"bucketsPerOctave"` // bucket b begins at the duration 2^(b/bucketsPerOctave)
	Spans     uint64 `json:"spans"`
	Errors    uint64 `json:"errors"`
	share
	Cells     cellColumns     `json:"cells"`
	Exemplars exemplarColumns `json:"exemplars"`
}

// share says how much of everything was looked at, and how much there is by that.
type share struct {
	Share           float64 `json:"share"`
	Scanned         int     `json:"scanned"`
	EstimatedSpans  uint64  `json:"estimatedSpans"`
	EstimatedErrors uint64  `json:"estimatedErrors"`
}

func shareOf(a *tracestore.Aggregate, part float64) share {
	return share{Share: part, Scanned: a.Scanned, EstimatedSpans: estimate(a.Spans, part), EstimatedErrors: estimate(a.Errors, part)}
}

// cellColumns are the cells that are not empty, by column and bucket.
type cellColumns struct {
	Column []int64  `json:"column"`
	Bucket []int    `json:"bucket"`
	Count  []uint64 `json:"count"`
	Errors []uint64 `json:"errors"`
}

type exemplarColumns struct {
	TraceID  []string `json:"traceID"`
	SpanID   []string `json:"spanID"`
	Start    []nanos  `json:"start"`
	Duration []uint64 `json:"duration"`
	Service  []string `json:"service"`
	Name     []string `json:"name"`
	Error    []bool   `json:"error"`
}

// aggregated is a question to a store that describes spans without returning them.
type aggregated struct {
	store tracestore.Aggregator
	window
	where tracestore.Expr
	tracestore.Aggregation
}

// aggregation reads the parameters that all questions of this form have.
func (h *handler) aggregation(v url.Values) (a aggregated, err error) {
	var ok bool
	if a.store, ok = h.store.(tracestore.Aggregator); !ok {
		return a, fmt.Errorf("%w count spans by their values", errCannot)
	}
	if a.window, err = parseWindow(v, h.now()); err != nil {
		return a, err
	}
	a.where, err = parseCondition(v, "q")
	return a, err
}

func (a *aggregated) query() tracestore.Query {
	return tracestore.Query{From: a.from, To: a.to, Where: a.where}
}

// ask asks the store.
func (a *aggregated) ask(t *turn) (tracestore.Aggregate, error) {
	q := a.query()
	q.Tenant = server.Tenant(t)
	q.Budget.Spans = t.backend.limits.aggregated
	if err := t.holdBytes(t.held + t.share(a.memory())); err != nil {
		return tracestore.Aggregate{}, err
	}
	return a.store.Aggregate(t, q, a.Aggregation)
}

// fewAtOnce is how many questions of this form can be answered at once, however little memory there is for answers.
const fewAtOnce = 4

// share returns what a question that may take so many bytes accounts for.
func (t *turn) share(bytes int64) int64 { return min(bytes, t.backend.memory.Limit()/fewAtOnce) }

// memory returns how many bytes the answer, and what is counted for it, may take.
func (a *aggregated) memory() (bytes int64) {
	const cell, buckets, exemplar = 64, 64 * tracestore.BucketsPerOctave, 1 << 10
	if a.Heatmap.Step > 0 {
		bytes += (int64(a.to.Sub(a.from)/a.Heatmap.Step) + 2) * buckets * cell
	}
	if a.Facets.Values > 0 {
		bytes += storequery.MaxFacetMemory
	}
	return bytes + int64(a.Exemplars)*exemplar
}

// reasonOf says what is missing in an answer, "" for nothing.
func reasonOf(a *tracestore.Aggregate) string {
	if a.Complete {
		return ""
	}
	return a.Reason
}

// heatmap reads GET /api/ui/v1/heatmap: spans by start and duration, and some of them as examples.
func (h *handler) heatmap(v url.Values) (question, error) {
	a, err := h.aggregation(v)
	if err != nil {
		return nil, err
	}
	if a.Heatmap.Step, err = parseStep(v, a.window); err != nil {
		return nil, err
	}
	if a.Exemplars, err = countParam(v, "exemplars", defaultExemplars, tracestore.MaxExemplars); err != nil {
		return nil, err
	}
	if err := a.Check(a.query()); err != nil {
		return nil, err
	}
	return func(t *turn) (any, string, error) {
		found, err := a.ask(t)
		if err != nil {
			return nil, "", err
		}
		return heatmapOf(a.window, a.Heatmap.Step, &found), reasonOf(&found), nil
	}, nil
}

// parseStep reads the width of a column, or how many there should be at most.
func parseStep(v url.Values, w window) (time.Duration, error) {
	step, err := durationParam(v, "step")
	if err != nil {
		return 0, err
	}
	if step < 0 {
		return 0, paramError("step", errNegative)
	}
	columns, err := countParam(v, "columns", defaultColumns, tracestore.MaxColumns)
	if err != nil {
		return 0, err
	}
	if step > 0 && v.Has("columns") {
		return 0, errors.New("'step' and 'columns' cannot both be set")
	}
	if step == 0 {
		step = chooseStep(w.to.Sub(w.from), columns)
	}
	return step, nil
}

// minutesFrom is the length of windows from which on columns are whole minutes, of which stores know much without looking at spans.
const minutesFrom = 15 * time.Minute

// chooseStep returns a step that people can read, with which a window of a length has at most so many columns (two, where it is one), also
// if it begins and ends amid columns.
func chooseStep(length time.Duration, columns int) time.Duration {
	least := divideUp(length, max(time.Duration(columns)-1, 1))
	if length >= minutesFrom {
		least = max(least, time.Minute)
	}
	for unit := time.Nanosecond; unit < time.Second; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if n*unit >= least {
				return n * unit
			}
		}
	}
	for _, s := range []time.Duration{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200} {
		if s*time.Second >= least {
			return s * time.Second
		}
	}
	const day, longest = 24 * time.Hour, math.MaxInt64
	return min(divideUp(least, day), longest/day) * day // the longest window has two of them
}

func divideUp(a, b time.Duration) time.Duration {
	if a%b == 0 {
		return a / b
	}
	return a/b + 1
}

func heatmapOf(w window, step time.Duration, a *tracestore.Aggregate) *heatmapAnswer {
	first := int64(nanosOf(w.from)) / int64(step)
	out := &heatmapAnswer{
		Start: nanos(first * int64(step)), Step: int64(step), Columns: int64(nanosOf(w.to))/int64(step) - first + 1,
		PerOctave: tracestore.BucketsPerOctave, Spans: a.Spans, Errors: a.Errors, Exemplars: exemplarsOf(a.Exemplars),
	}
	var cells []tracestore.HeatCell
	part := 1.0
	if a.Heatmap != nil {
		cells, part = a.Heatmap.Cells, a.Heatmap.Share
	}
	out.share = shareOf(a, part)
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
