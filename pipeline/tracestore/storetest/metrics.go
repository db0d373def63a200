package storetest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// quantileError is the maximum error of a quantile: the error of tracestore.Histogram with a margin
// for floating-point rounding. Quantiles must not be too high.
const quantileError = 0.0215

// pointKey identifies a point of a result.
type pointKey struct {
	service, operation string
	start              uint64
}

// expectedPoint holds the calls of a point: calls and errors count each span once, maxCalls and
// maxErrors once for each request that contains it.
type expectedPoint struct {
	calls, errors, maxCalls, maxErrors uint64
	durations                          []adjustedDuration // one for each span
}

// adjustedDuration is the duration of a span and its adjusted count.
type adjustedDuration struct{ duration, calls uint64 }

// metrics counts calls by their definition.
func (o *oracle) metrics(tenant string, q tracestore.MetricsQuery) map[pointKey]*expectedPoint {
	from, to, ok := q.Window()
	if !ok {
		return nil
	}
	t, points := o.tenant(tenant), make(map[pointKey]*expectedPoint)
	for _, s := range t.spans {
		switch {
		case s.Start < from || s.Start > to:
			continue
		case len(q.Services) > 0 && !slices.Contains(q.Services, s.Resource.Service):
			continue
		case len(q.Kinds) > 0 && !slices.Contains(q.Kinds, s.KindName()):
			continue
		}
		name := pointKey{service: s.Resource.Service, start: s.Start / q.StepLength() * q.StepLength()}
		if q.ByOperation {
			name.operation = s.Operation()
		}
		p := points[name]
		if p == nil {
			p = &expectedPoint{}
			points[name] = p
		}
		calls := s.AdjustedCount()
		upper := calls * uint64(t.requests[identity(s)])
		duration, _ := s.Duration()
		p.calls, p.maxCalls, p.durations = p.calls+calls, p.maxCalls+upper, append(p.durations, adjustedDuration{duration, calls})
		if s.StatusCode == otlpdata.StatusError {
			p.errors, p.maxErrors = p.errors+calls, p.maxErrors+upper
		}
	}
	return points
}

// checkMetricsOf compares the result of a query with the sent calls.
func (s *suite) checkMetricsOf(m tracestore.Metrics, tenant string, q tracestore.MetricsQuery) {
	s.Helper()
	got, err := m.Metrics(s.ctx, tenant, q)
	if err != nil {
		s.Fatalf("Metrics(%q, %+v): %v", tenant, q, err)
	}
	if err := diffMetrics(got, s.sent.metrics(tenant, q), q); err != nil {
		s.Errorf("Metrics(%q, %+v): %v", tenant, q, err)
	}
}

// diffMetrics describes the first difference between a result and the expected points.
func diffMetrics(got tracestore.MetricsAnswer, want map[pointKey]*expectedPoint, q tracestore.MetricsQuery) error {
	if !got.Complete() || got.Step != q.StepLength() {
		return fmt.Errorf("answer has reasons %v, step=%d; want no reasons, step=%d",
			got.Reasons, got.Step, q.StepLength())
	}
	points := 0
	for i := range got.Series {
		series := &got.Series[i]
		if i > 0 && !inOrder(&got.Series[i-1], series) || len(series.Points) == 0 {
			return fmt.Errorf("series %d, %q %q: out of order or no points; %d points",
				i, series.Service, series.Operation, len(series.Points))
		}
		for j := range series.Points {
			p := &series.Points[j]
			if j > 0 && p.Start <= series.Points[j-1].Start {
				return fmt.Errorf("%q %q: point %d out of order", series.Service, series.Operation, j)
			}
			name := pointKey{series.Service, series.Operation, p.Start}
			if err := diffPoint(p, want[name]); err != nil {
				return fmt.Errorf("%+v: %w", name, err)
			}
			points++
		}
	}
	if points != len(want) {
		return fmt.Errorf("%d points, want %d", points, len(want))
	}
	return nil
}

func inOrder(a, b *tracestore.MetricSeries) bool {
	return a.Service < b.Service || a.Service == b.Service && a.Operation < b.Operation
}

func diffPoint(got *tracestore.MetricPoint, want *expectedPoint) error {
	if want == nil {
		return fmt.Errorf("%d calls, want none", got.Calls)
	}
	if got.Calls < want.calls || got.Calls > want.maxCalls || got.Errors < want.errors || got.Errors > want.maxErrors ||
		got.Durations.Count() != got.Calls {
		return fmt.Errorf("%d calls, %d errors, %d durations; want %d to %d calls, %d to %d errors", got.Calls, got.Errors,
			got.Durations.Count(), want.calls, want.maxCalls, want.errors, want.maxErrors)
	}
	if sum := want.sum(); got.Calls == want.calls && got.Durations.Sum != sum {
		return fmt.Errorf("sum of the durations of %d calls is %d, want %d", got.Calls, got.Durations.Sum, sum)
	}
	slices.SortFunc(want.durations, func(a, b adjustedDuration) int { return cmp.Compare(a.duration, b.duration) })
	for _, share := range []float64{0, 0.5, 0.9, 0.99, 1} {
		lower, upper := want.durations[0].duration, want.durations[len(want.durations)-1].duration
		if got.Calls == want.calls {
			lower = want.duration(max(uint64(math.Ceil(share*float64(want.calls))), 1))
			upper = lower
		}
		if v := got.Durations.Quantile(share); v < (1-quantileError)*float64(lower) || v > (1+1e-9)*float64(upper) {
			return fmt.Errorf("quantile %g of %d is %f, want %d to %d", share, got.Calls, v, lower, upper)
		}
	}
	return nil
}

// sum returns the sum of all durations, or the maximum uint64 if the sum overflows.
func (p *expectedPoint) sum() uint64 {
	sum := new(big.Int)
	for _, d := range p.durations {
		product := new(big.Int).SetUint64(d.duration)
		sum.Add(sum, product.Mul(product, new(big.Int).SetUint64(d.calls)))
	}
	if !sum.IsUint64() {
		return math.MaxUint64
	}
	return sum.Uint64()
}

// duration returns the duration of the call with a rank, counted from 1. The durations must be
// sorted.
func (p *expectedPoint) duration(rank uint64) uint64 {
	for _, d := range p.durations {
		if d.calls >= rank {
			return d.duration
		}
		rank -= d.calls
	}
	return p.durations[len(p.durations)-1].duration
}

// tracestates returns tracestates of spans: without a threshold, with various thresholds, with
// thresholds of other vendors, and with invalid and implausible thresholds.
func tracestates() []string {
	const rv = ";rv:ffffffffffffff" // the maximum random value, which is above all thresholds
	return []string{"", "ot=th:0", "ot=th:8" + rv, "ot=th:e666" + rv, "ot=th:b333" + rv,
		"a=b,ot=rv:c2345678901234;th:b333;x:y, c=d", "ot=th:4" + rv + ",ot=th:f", "ot=th:fffff" + rv,
		"ot=th:fffffffffffff8" + rv, "ot=th:8;rv:7fffffffffffff", "ot=th:8", "ot=th:E666" + rv, "ot=th:" + rv, "a=th:8",
		"rojo=00f067aa0ba902b7"}
}

func checkMetrics(s *suite) {
	m, ok := optional[tracestore.Metrics](s, s.store)
	if !ok {
		s.Skip("store does not implement tracestore.Metrics")
	}
	s.checkMetricsOf(m, "", tracestore.MetricsQuery{})
	n := uint64(0)
	for i, service := range []string{"a", "b", ""} {
		r := newRequest(service)
		for kind := range ptrace.SpanKind(7) {
			for minutes := range uint64(4) {
				n++
				one := r.span(n/3, n, []string{"read", "", "write"}[n%3], firstMinute+minutes*minute+n%3*(minute/3))
				one.SetKind(kind)
				one.SetEndTimestamp(one.StartTimestamp() + pcommon.Timestamp(n*n*n*uint64(i)))
				one.Status().SetCode(ptrace.StatusCode(n % 3))
				one.TraceState().FromRaw(tracestates()[n%uint64(len(tracestates()))])
			}
		}
		again := newRequest(service) // two spans with the same id
		for range 2 {
			again.span(n/3, n, "read", firstMinute+minute).SetKind(ptrace.SpanKindServer)
			again.span(n/3, n, "read", firstMinute+minute).Status().SetCode(ptrace.StatusCodeError)
		}
		s.send("", r.traces)
		s.send("", again.traces)
		s.send(pick(&generator{rand.New(rand.NewPCG(n, 0))}, "", "other"), again.traces)
	}
	ends := newRequest("a")
	for i, start := range []uint64{0, 1, minute - 1, minute, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64 - 1, math.MaxUint64} {
		span := ends.span(1, uint64(i), "read", start)
		span.SetEndTimestamp(pcommon.Timestamp([]uint64{0, math.MaxUint64, start, start + 1}[i%4]))
	}
	s.checkAllMetrics(m)
	s.send("", ends.traces)
	s.checkAllMetrics(m)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := m.Metrics(ctx, "", tracestore.MetricsQuery{}); err == nil {
		s.Errorf("Metrics with a canceled context: no error")
	}
}

// checkAllMetrics compares windows with bounds at, next to and between full minutes, and several
// services, kinds and steps.
func (s *suite) checkAllMetrics(m tracestore.Metrics) {
	s.Helper()
	bounds := []time.Time{{}}
	for _, ns := range []uint64{0, minute / 2, minute, 3 * minute} {
		bounds = append(bounds, at(firstMinute+ns-1), at(firstMinute+ns), at(firstMinute+ns+1))
	}
	for i, from := range bounds {
		for j, to := range bounds {
			q := tracestore.MetricsQuery{From: from, To: to, ByOperation: (i+j)%2 == 0, Step: time.Duration(i) * 20 * time.Second}
			s.checkMetricsOf(m, []string{"", "", "other", "unknown"}[(i+2*j)%4], q)
		}
	}
	for _, services := range [][]string{nil, {"a"}, {"b", otlpdata.EmptyServiceName}, {"c"}} {
		for _, kinds := range [][]string{nil, {""}, {"server"}, {"client", "internal", "producer"}, {"c"}} {
			for _, step := range []time.Duration{-1, 0, 1, time.Minute, time.Minute + 1, 7 * time.Minute, 24 * time.Hour, math.MaxInt64} {
				s.checkMetricsOf(m, "", tracestore.MetricsQuery{Services: services, Kinds: kinds, ByOperation: step%2 == 0, Step: step})
			}
		}
	}
}

// checkRandomMetricsQuery compares the result of a random query.
func (s *suite) checkRandomMetricsQuery(g *generator, m tracestore.Metrics) {
	s.Helper()
	tenant := pick(g, allTenants()...)
	q := tracestore.MetricsQuery{ByOperation: g.IntN(2) == 0, Step: time.Duration(g.IntN(5)) * 30 * time.Second}
	instant := func() time.Time {
		if tenant == callsTenant {
			return at(g.instant())
		}
		return at(base + g.Uint64N(randomTimes))
	}
	if g.IntN(3) > 0 {
		q.From = instant()
	}
	if g.IntN(3) > 0 {
		q.To = instant()
	}
	for range g.IntN(3) {
		q.Services = append(q.Services, pick(g, "a", "b", "cart", otlpdata.EmptyServiceName))
		q.Kinds = append(q.Kinds, pick(g, "", "server", "client", "internal", "consumer"))
	}
	s.checkMetricsOf(m, tenant, q)
	s.checkBaselinesOf(g, m, tenant, q.From, q.To)
}

func checkRandomMetrics(s *suite) {
	m, ok := optional[tracestore.Metrics](s, s.store)
	if !ok {
		s.Skip("store does not implement tracestore.Metrics")
	}
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 3))}
	var c callGenerator
	var sent []*otlpdata.Batch
	for range rounds(6, 3) {
		for range 5 {
			tenant, td := callsTenant, c.request(&g)
			if g.IntN(2) == 0 {
				tenant, td = g.tenant(), g.request()
			}
			b := s.encode(tenant, td)
			s.maybeResend(&g, sent)
			s.consume(b)
			sent = append(sent, b)
		}
		for range 20 {
			s.checkRandomMetricsQuery(&g, m)
		}
		if s.Failed() {
			s.Fatalf("failed with %s=%d", seedVariable, seed)
		}
	}
}
