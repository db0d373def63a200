package spanmetrics

import (
	"fmt"
	"iter"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Answer is the result of a query. It has a series for each service, or each operation, that was
// called. Each series has at least one point.
type Answer struct {
	Name, Help string
	Incomplete tracestore.Reasons // why data may be missing

	byOperation bool
	grid        Grid
	series      []tracestore.MetricSeries
	value       func(*window) float64
}

// Fetch queries the store. The error is ErrUnsupported if the store does not count calls.
func Fetch(s *core.Slot, m *Metric, q *Query, g Grid) (*Answer, error) {
	store, ok := core.SlotAs[tracestore.Metrics](s)
	if !ok {
		return nil, ErrUnsupported
	}
	a := &Answer{Name: "service_" + m.name, Help: m.help, byOperation: q.ByOperation, grid: g, value: m.value}
	if q.ByOperation {
		a.Name = "service_operation_" + m.name
		a.Help += " & operation"
	}
	if g.points() == 0 {
		return a, nil
	}
	from, to := g.times()
	got, err := store.Metrics(s.Context(), s.Tenant(), tracestore.MetricsQuery{
		Services: q.Services, Kinds: q.Kinds, ByOperation: q.ByOperation, From: from, To: to, Step: g.unitLength()})
	if err == nil {
		err = s.HoldMore(int64(sizeOf(got.Series)))
	}
	if err != nil {
		return nil, err
	}
	a.Incomplete = got.Reasons
	a.limit(got.Series, maxPoints)
	return a, nil
}

// sizeOf returns the approximate size of series in bytes.
func sizeOf(all []tracestore.MetricSeries) int {
	const perSeries, perPoint, perBucket = 128, 64, 8
	n := 0
	for i := range all {
		n += perSeries
		for j := range all[i].Points {
			_, counts := all[i].Points[j].Durations.Counts()
			n += perPoint + perBucket*len(counts)
		}
	}
	return n
}

// limit returns the first series, in order, that have at most maxPoints points together.
func (a *Answer) limit(all []tracestore.MetricSeries, maxPoints int64) {
	a.series = make([]tracestore.MetricSeries, 0, len(all))
	points := int64(0)
	for i := range all {
		n := a.grid.pointsOf(&all[i])
		if points += n; points > maxPoints {
			a.Incomplete.Add(tracestore.Reason{Kind: tracestore.ReasonLimit, Text: fmt.Sprintf("a response has at most %d points; "+
				"narrow the time range, or request longer steps or fewer services", maxPoints)})
			return
		}
		if n > 0 {
			a.series = append(a.series, all[i])
		}
	}
}

// Label is a name and a value that identify a series.
type Label struct{ Name, Value string }

// Series holds the points of one service or operation.
type Series struct {
	Labels []Label
	answer *Answer
	counts *tracestore.MetricSeries
}

// Len returns the number of series.
func (a *Answer) Len() int { return len(a.series) }

// Series returns series i.
func (a *Answer) Series(i int) Series {
	counts := &a.series[i]
	labels := []Label{{"service_name", counts.Service}, {"operation", counts.Operation}}
	if !a.byOperation {
		labels = labels[:1]
	}
	return Series{labels, a, counts}
}

// Len returns the number of points.
func (s *Series) Len() int { return int(s.answer.grid.pointsOf(s.counts)) }

// Points returns the points in order: Unix time in seconds and value. Undefined values, such as the
// error rate without calls, are NaN.
func (s *Series) Points() iter.Seq2[int64, float64] {
	return func(yield func(int64, float64) bool) {
		g := &s.answer.grid
		points := s.counts.Points
		w := window{seconds: float64(g.window) * g.unitLength().Seconds()}
		added, removed := 0, 0
		for at := g.beginSeries(s.counts); at <= g.last; at += g.step {
			for ; added < len(points) && g.unitOf(&points[added]) < at; added++ {
				w.addPoint(&points[added])
			}
			for ; removed < added && g.unitOf(&points[removed]) < at-g.window; removed++ {
				w.remove(&points[removed])
			}
			if !yield(at*g.unit*60, s.answer.value(&w)) {
				return
			}
		}
	}
}
