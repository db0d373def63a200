package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// baselines counts the calls of all operations of a tenant by their definition.
func (o *oracle) baselines(tenant string, from, to uint64) map[tracestore.OperationKey]*expectedPoint {
	t, all := o.tenant(tenant), make(map[tracestore.OperationKey]*expectedPoint)
	for _, s := range t.spans {
		key := tracestore.OperationKey{Service: s.Resource.Service, Operation: s.Operation(), Kind: s.KindName()}
		p := all[key]
		if p == nil {
			p = &expectedPoint{}
			all[key] = p
		}
		if s.Start < from || s.Start > to {
			continue
		}
		calls := s.AdjustedCount()
		duration, _ := s.Duration()
		p.calls += calls
		p.maxCalls += calls * uint64(t.requests[identity(s)])
		p.durations = append(p.durations, adjustedDuration{duration, calls})
	}
	return all
}

// checkBaselinesOf compares the durations of all operations, except some if g is not nil, with the
// durations of the spans sent.
func (s *suite) checkBaselinesOf(g *generator, b tracestore.Metrics, tenant string, from, to time.Time) {
	s.Helper()
	q := tracestore.BaselineQuery{From: from, To: to}
	first, last, ok := q.Window()
	want := s.sent.baselines(tenant, first, last)
	for key := range want {
		if g == nil || g.IntN(4) > 0 {
			q.Operations = append(q.Operations, key)
		}
	}
	q.Operations = append(q.Operations, tracestore.OperationKey{Service: "a", Operation: "never called", Kind: "server"})
	got, err := b.Baselines(s.ctx, tenant, q)
	if err != nil || !got.Complete() || len(got.Durations) != len(q.Operations) {
		s.Fatalf("Baselines(%q, %+v): %+v, %v", tenant, q, got, err)
	}
	for i, key := range q.Operations {
		p := want[key]
		if p == nil || !ok {
			p = &expectedPoint{}
		}
		if err := diffDurations(&got.Durations[i], p); err != nil {
			s.Errorf("Baselines(%q, %s to %s): %+v: %v", tenant, from, to, key, err)
		}
	}
}

// diffDurations describes the first difference between a histogram and the expected durations.
func diffDurations(got *tracestore.Histogram, want *expectedPoint) error {
	n := got.Count()
	if want.calls == 0 {
		if n != 0 {
			return fmt.Errorf("%d calls, want none", n)
		}
		return nil
	}
	return diffPoint(&tracestore.MetricPoint{Calls: n, Errors: want.errors, Durations: *got}, want)
}

// checkBaselines compares the durations of random spans within windows of whole minutes and others.
func checkBaselines(s *suite) {
	b, ok := optional[tracestore.Metrics](s, s.store)
	if !ok {
		s.Skip("store does not implement tracestore.Metrics")
	}
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 31))}
	var c callGenerator
	var sent []*otlpdata.Batch
	for range rounds(6, 3) {
		for range 5 {
			td := c.request(&g)
			s.maybeResend(&g, sent)
			batch := s.encode(callsTenant, td)
			s.consume(batch)
			sent = append(sent, batch)
		}
		bounds := []time.Time{{}, at(firstMinute), at(firstMinute + 2*minute - 1), at(g.instant()), at(g.instant())}
		for i, from := range bounds {
			s.checkBaselinesOf(&g, b, callsTenant, from, bounds[(i*2+1)%len(bounds)])
		}
		s.checkBaselinesOf(nil, b, "unknown", time.Time{}, time.Time{})
		if s.Failed() {
			s.Fatalf("failed with %s=%d", seedVariable, seed)
		}
	}
	if got, err := b.Baselines(s.ctx, callsTenant, tracestore.BaselineQuery{}); err != nil || len(got.Durations) != 0 {
		s.Errorf("Baselines without operations: %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	q := tracestore.BaselineQuery{Operations: []tracestore.OperationKey{{Service: "a"}}}
	if _, err := b.Baselines(ctx, callsTenant, q); err == nil {
		s.Errorf("Baselines with a canceled context: no error")
	}
}
