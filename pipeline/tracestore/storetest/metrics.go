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

// quantileError is how far a quantile may be off: what tracestore.Histogram promises, and a little.
const quantileError = 0.06

// pointName says which point of an answer a call belongs to.
type pointName struct {
	service, operation string
	start              uint64
}

// calledPoint is the calls of a point: those of spans that are counted once, and with each counted once for every request it came in.
type calledPoint struct {
	calls, errors, mostCalls, mostErrors uint64
	durations                            []calledDuration // each span's once
}

// calledDuration is how long so many calls took.
type calledDuration struct{ duration, calls uint64 }

// metrics answers from the definition.
func (o *oracle) metrics(tenant string, q tracestore.MetricsQuery) map[pointName]*calledPoint {
	from, to, ok := q.Window()
	if !ok {
		return nil
	}
	t, points := o.tenant(tenant), make(map[pointName]*calledPoint)
	for _, s := range t.spans {
		switch {
		case s.Start < from || s.Start > to:
			continue
		case len(q.Services) > 0 && !slices.Contains(q.Services, s.Resource.Service):
			continue
		case len(q.Kinds) > 0 && !slices.Contains(q.Kinds, s.KindName()):
			continue
		}
		name := pointName{service: s.Resource.Service, start: s.Start / q.StepLength() * q.StepLength()}
		if q.ByOperation {
			name.operation = s.Operation()
		}
		p := points[name]
		if p == nil {
			p = &calledPoint{}
			points[name] = p
		}
		calls := s.AdjustedCount()
		most := calls * uint64(t.requests[content(s)])
		duration, _ := s.Duration()
		p.calls, p.mostCalls, p.durations = p.calls+calls, p.mostCalls+most, append(p.durations, calledDuration{duration, calls})
		if s.StatusCode == otlpdata.StatusError {
			p.errors, p.mostErrors = p.errors+calls, p.mostErrors+most
		}
	}
	return points
}

// checkMetricsOf compares the answer to a query with what was sent.
func (s *suite) checkMetricsOf(m tracestore.Metrics, tenant string, q tracestore.MetricsQuery) {
	s.Helper()
	got, err := m.Metrics(s.ctx, tenant, q)
	if err != nil {
		s.Fatalf("Metrics(%q, %+v): %v", tenant, q, err)
	}
	if err := wrongMetrics(got, s.sent.metrics(tenant, q), q); err != nil {
		s.Errorf("Metrics(%q, %+v): %v", tenant, q, err)
	}
}

// wrongMetrics tells the first difference between an answer and the definition's.
func wrongMetrics(got tracestore.MetricsAnswer, want map[pointName]*calledPoint, q tracestore.MetricsQuery) error {
	if !got.Complete || got.Reason != "" || got.Step != q.StepLength() {
		return fmt.Errorf("complete is %t %q, step is %d", got.Complete, got.Reason, got.Step)
	}
	points := 0
	for i := range got.Series {
		series := &got.Series[i]
		if i > 0 && !inOrder(&got.Series[i-1], series) || len(series.Points) == 0 {
			return fmt.Errorf("series %d, %q %q, has %d points, or is not in order", i, series.Service, series.Operation, len(series.Points))
		}
		for j := range series.Points {
			p := &series.Points[j]
			if j > 0 && p.Start <= series.Points[j-1].Start {
				return fmt.Errorf("%q %q: point %d is not in order", series.Service, series.Operation, j)
			}
			name := pointName{series.Service, series.Operation, p.Start}
			if err := wrongPoint(p, want[name]); err != nil {
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

func wrongPoint(got *tracestore.MetricPoint, want *calledPoint) error {
	if want == nil {
		return fmt.Errorf("%d calls where there are none", got.Calls)
	}
	if got.Calls < want.calls || got.Calls > want.mostCalls || got.Errors < want.errors || got.Errors > want.mostErrors ||
		got.Durations.Count() != got.Calls {
		return fmt.Errorf("%d calls, %d errors, %d durations; want %d to %d calls, %d to %d errors", got.Calls, got.Errors,
			got.Durations.Count(), want.calls, want.mostCalls, want.errors, want.mostErrors)
	}
	if sum := want.sum(); got.Calls == want.calls && got.Durations.Sum != sum {
		return fmt.Errorf("the durations of %d calls add up to %d, want %d", got.Calls, got.Durations.Sum, sum)
	}
	slices.SortFunc(want.durations, func(a, b calledDuration) int { return cmp.Compare(a.duration, b.duration) })
	for _, share := range []float64{0, 0.5, 0.9, 0.99, 1} {
		least, most := want.durations[0].duration, want.durations[len(want.durations)-1].duration
		if got.Calls == want.calls {
			least = want.duration(max(uint64(math.Ceil(share*float64(want.calls))), 1))
			most = least
		}
		if v := got.Durations.Quantile(share); v < (1-quantileError)*float64(least) || v > (1+quantileError)*float64(most) {
			return fmt.Errorf("quantile %g of %d is %f, want %d to %d", share, got.Calls, v, least, most)
		}
	}
	return nil
}

// sum returns the sum of all durations, or the greatest number where it exceeds that.
func (p *calledPoint) sum() uint64 {
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

// duration returns that of the call at a place of all, counted from 1; durations are sorted.
func (p *calledPoint) duration(place uint64) uint64 {
	for _, d := range p.durations {
		if d.calls >= place {
			return d.duration
		}
		place -= d.calls
	}
	return p.durations[len(p.durations)-1].duration
}

// tracestates are what spans say of their sampling: nothing, all, some share of the traces, beside what others say, and what is not to be
// believed.
func tracestates() []string {
	const most = ";rv:ffffffffffffff"
	return []string{"", "ot=th:0", "ot=th:8" + most, "ot=th:e666" + most, "ot=th:b333" + most, "a=b,ot=rv:c2345678901234;th:b333;x:y, c=d",
		"ot=th:4" + most + ",ot=th:f", "ot=th:fffff" + most, "ot=th:fffffffffffff8" + most, "ot=th:8;rv:7fffffffffffff", "ot=th:8",
		"ot=th:E666" + most, "ot=th:" + most, "a=th:8", "rojo=00f067aa0ba902b7"}
}

func checkMetrics(s *suite) {
	m, ok := s.store.(tracestore.Metrics)
	if !ok {
		s.Skip("the store is no tracestore.Metrics")
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
		again := newRequest(service) // differs from the others in its status only
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
		s.Errorf("Metrics answers although the context has ended")
	}
}

// checkAllMetrics compares windows with bounds on, beside and between the ends of minutes, and a few of everything else.
func (s *suite) checkAllMetrics(m tracestore.Metrics) {
	s.Helper()
	bounds := []time.Time{{}}
	for _, ns := range []uint64{0, minute / 2, minute, 3 * minute} {
		bounds = append(bounds, at(firstMinute+ns-1), at(firstMinute+ns), at(firstMinute+ns+1))
	}
	for i, from := range bounds {
		for j, to := range bounds {
			q := tracestore.MetricsQuery{From: from, To: to, ByOperation: (i+j)%2 == 0, Step: time.Duration(i) * 20 * time.Second}
			s.checkMetricsOf(m, []string{"", "", "other", "nobody"}[(i+2*j)%4], q)
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

// askMetrics compares the answer to one random query.
func (s *suite) askMetrics(g *generator, m tracestore.Metrics) {
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
}

func checkRandomMetrics(s *suite) {
	m, ok := s.store.(tracestore.Metrics)
	if !ok {
		s.Skip("the store is no tracestore.Metrics")
	}
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 3))}
	var c caller
	var sent []*otlpdata.Batch
	for range 12 {
		for range 5 {
			tenant, td := callsTenant, c.request(&g)
			if g.IntN(2) == 0 {
				tenant, td = g.tenant(), g.request()
			}
			b := s.encode(tenant, td)
			s.sometimesAgain(&g, sent)
			s.consume(b)
			sent = append(sent, b)
		}
		for range 20 {
			s.askMetrics(&g, m)
		}
		if s.Failed() {
			s.Fatalf("failed with %s=%d", seedVariable, seed)
		}
	}
}
