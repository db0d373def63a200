package storetest

import (
	"reflect"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// checkSampled checks that a sampling threshold in a tracestate changes only the counts of
// tracestore.Metrics: two tenants with the same spans, with and without thresholds, get the same
// heatmaps, facets and calls.
func checkSampled(s *suite) {
	const whole, sampled = "", "sampled"
	for i := range uint64(20) {
		for service, id := range map[string]uint64{"web": 1, "shop": 2} {
			for _, tenant := range []string{whole, sampled} {
				r := newRequest(service)
				sp := r.call(i, id, id-1, ptrace.SpanKindServer, firstMinute+i*minute/5+id)
				sp.SetEndTimestamp(sp.StartTimestamp() + pcommon.Timestamp(1000*i))
				sp.Status().SetCode(ptrace.StatusCode(i % 3))
				if tenant == sampled {
					sp.TraceState().FromRaw([]string{"ot=th:c;rv:ffffffffffffff", "ot=th:8;rv:ffffffffffffff", ""}[i%3])
				}
				s.send(tenant, r.traces)
			}
		}
	}
	if store, ok := optional[tracestore.Aggregator](s, s.store); ok {
		s.checkSampledAggregates(store, whole, sampled)
	}
	if store, ok := optional[tracestore.Edges](s, s.store); ok {
		want, err := store.Dependencies(s.ctx, whole, at(firstMinute), at(firstMinute+5*minute))
		if err != nil || len(want.Edges) != 1 || want.Edges[0].Calls != 20 {
			s.Fatalf("calls without thresholds: %+v %v", want, err)
		}
		got, err := store.Dependencies(s.ctx, sampled, at(firstMinute), at(firstMinute+5*minute))
		if err != nil || !reflect.DeepEqual(got, want) {
			s.Errorf("calls with thresholds: %+v %v, want %+v", got, err, want)
		}
	}
}

// checkSampledAggregates compares heatmaps, which are counted from statistics for whole minutes,
// and facets.
func (s *suite) checkSampledAggregates(store tracestore.Aggregator, whole, sampled string) {
	s.Helper()
	for _, step := range []time.Duration{time.Minute, 10 * time.Second} {
		a := tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: step}, Facets: tracestore.FacetQuery{Values: 10,
			Fields: []tracestore.Field{{Place: tracestore.Service}, {Place: tracestore.Status}}}}
		q := tracestore.Query{Tenant: whole, From: at(firstMinute), To: at(firstMinute + 5*minute)}
		want, err := store.Aggregate(s.ctx, q, a)
		if err != nil || want.Spans != 40 {
			s.Fatalf("%d spans without thresholds, want 40: %v", want.Spans, err)
		}
		q.Tenant = sampled
		if got, err := store.Aggregate(s.ctx, q, a); err != nil || !reflect.DeepEqual(got, want) {
			s.Errorf("step %s: with thresholds %+v %v, want %+v", step, got, err, want)
		}
	}
}
