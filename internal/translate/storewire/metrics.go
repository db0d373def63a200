package storewire

import (
	"slices"
	"time"

	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// PutMetricsQuery converts a query for metrics.
func PutMetricsQuery(q *tracestore.MetricsQuery) *store_v1.MetricsRequest {
	return &store_v1.MetricsRequest{Services: putTexts(q.Services), Kinds: putTexts(q.Kinds), ByOperation: q.ByOperation,
		From: putTime(q.From), To: putTime(q.To), Step: int64(q.Step)}
}

// GetMetricsQuery returns a query for metrics.
func GetMetricsQuery(m *store_v1.MetricsRequest) tracestore.MetricsQuery {
	return tracestore.MetricsQuery{Services: GetTexts(m.GetServices()), Kinds: GetTexts(m.GetKinds()), ByOperation: m.GetByOperation(),
		From: getTime(m.GetFrom()), To: getTime(m.GetTo()), Step: time.Duration(m.GetStep())}
}

// pointsPerPart is the number of points in one MetricSeries message, so that an answer can be
// split.
const pointsPerPart = 256

// PutMetrics converts the answer of a store.
func PutMetrics(a *tracestore.MetricsAnswer) *store_v1.MetricsResponse {
	out := &store_v1.MetricsResponse{Step: a.Step, Reasons: putReasons(a.Reasons)}
	for i := range a.Series {
		s := &a.Series[i]
		for points := range slices.Chunk(s.Points, pointsPerPart) {
			out.Series = append(out.Series, putPoints(s, points))
		}
	}
	return out
}

func putPoints(s *tracestore.MetricSeries, points []tracestore.MetricPoint) *store_v1.MetricSeries {
	out := &store_v1.MetricSeries{Service: []byte(s.Service), Operation: []byte(s.Operation)}
	for i := range points {
		p := &points[i]
		first, counts := p.Durations.Counts()
		out.Start = append(out.Start, p.Start)
		out.Calls = append(out.Calls, p.Calls)
		out.Errors = append(out.Errors, p.Errors)
		out.Duration = append(out.Duration, p.Durations.Sum)
		out.FirstBucket = append(out.FirstBucket, uint32(first))
		out.Buckets = append(out.Buckets, uint32(len(counts)))
		out.Counts = append(out.Counts, counts...)
	}
	return out
}

// GetMetrics returns the answer of a store.
func GetMetrics(m *store_v1.MetricsResponse) (a tracestore.MetricsAnswer, err error) {
	a = tracestore.MetricsAnswer{Step: m.GetStep(), Reasons: getReasons(m.GetReasons())}
	for _, part := range m.GetSeries() {
		service, operation := string(part.GetService()), string(part.GetOperation())
		n := len(a.Series)
		if n == 0 || a.Series[n-1].Service != service || a.Series[n-1].Operation != operation {
			a.Series = append(a.Series, tracestore.MetricSeries{Service: service, Operation: operation})
			n++
		}
		if a.Series[n-1].Points, err = getPoints(a.Series[n-1].Points, part); err != nil {
			return a, err
		}
	}
	return a, nil
}

func getPoints(points []tracestore.MetricPoint, m *store_v1.MetricSeries) ([]tracestore.MetricPoint, error) {
	n := len(m.GetStart())
	for _, l := range []int{len(m.GetCalls()), len(m.GetErrors()), len(m.GetDuration()), len(m.GetFirstBucket()), len(m.GetBuckets())} {
		if l != n {
			return nil, invalid("columns of a metric series differ in length")
		}
	}
	counts := m.GetCounts()
	for i := range n {
		buckets := int(m.Buckets[i])
		if buckets > len(counts) {
			return nil, invalid("metric series lacks counts")
		}
		h, err := tracestore.HistogramOf(m.Duration[i], int(m.FirstBucket[i]), counts[:buckets:buckets])
		if err != nil {
			return nil, invalid("%w", err)
		}
		counts = counts[buckets:]
		points = append(points, tracestore.MetricPoint{Start: m.Start[i], Calls: m.Calls[i], Errors: m.Errors[i], Durations: h})
	}
	return points, nil
}
