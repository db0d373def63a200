package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// metric returns the value of a metric without labels.
func metric(tb testing.TB, reg *prometheus.Registry, name string) float64 {
	tb.Helper()
	families, err := reg.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "tracing_memory_"+name {
			m := f.GetMetric()[0]
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	tb.Fatalf("no metric %q", name)
	return 0
}

// find returns the ids that a query finds, newest first, and the number of spans examined.
func find(tb testing.TB, e *exporter, q tracestore.Query) ([]otlpdata.TraceID, int) {
	tb.Helper()
	res, err := e.Find(tb.Context(), q, tracestore.WantIDs)
	if err != nil {
		tb.Fatal(err)
	}
	var ids []otlpdata.TraceID
	for r, err := range res.All {
		if err != nil {
			tb.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	return ids, res.Outcome().Scanned
}

// TestEviction checks that the oldest traces are dropped first.
func TestEviction(t *testing.T) {
	e, reg := open(t, 2<<20)
	const traces = 500
	for i := range traces {
		consume(t, e, batch(t, "", ordinary(i, 1)))
		if e.usage.bytes > e.maxBytes {
			t.Fatalf("%d bytes after request %d, want at most %d", e.usage.bytes, i, e.maxBytes)
		}
	}
	ids, _ := find(t, e, tracestore.Query{})
	if len(ids) == 0 || len(ids) == traces {
		t.Fatalf("%d of %d traces are left, want some", len(ids), traces)
	}
	for i, id := range ids {
		n := traces - 1 - i
		if want := (otlpdata.TraceID{0: byte(n), 1: byte(n >> 8), 15: 1}); id != want {
			t.Fatalf("trace %d from the newest is %s, want %s", i, id, want)
		}
	}
	evicted := float64(traces - len(ids))
	for name, want := range map[string]float64{
		"evicted_traces_total": evicted, "evicted_spans_total": evicted * spansPerTrace, "bytes": float64(e.usage.bytes),
		"traces": float64(len(ids)), "spans": float64(len(ids) * spansPerTrace),
	} {
		if got := metric(t, reg, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// TestEmptyStoreUsesNoMemory checks that the estimate returns to 0 when all traces are dropped.
func TestEmptyStoreUsesNoMemory(t *testing.T) {
	e, _ := open(t, 0)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		td := ordinary(rnd.IntN(20), 1+rnd.IntN(4)) // overlapping traces, many duplicates
		td.ResourceSpans().At(0).Resource().Attributes().PutInt("round", int64(i%7))
		td.ResourceSpans().At(0).ScopeSpans().At(0).Scope().Attributes().PutInt("round", int64(i%7))
		for _, s := range td.ResourceSpans().At(1).ScopeSpans().At(0).Spans().All() {
			s.Status().SetCode(ptrace.StatusCode(i % 3))
			s.Attributes().PutStr("twice", "x")
			s.Events().AppendEmpty().Attributes().PutStr("twice", "x")
			s.Links().AppendEmpty().Attributes().PutStr("linked", fmt.Sprint(i))
		}
		consume(t, e, batch(t, fmt.Sprint("tenant ", i%3), td))
	}
	e.maxBytes = 0
	e.evict()
	if e.usage != (usage{}) {
		t.Errorf("usage after all traces were dropped: %+v", e.usage)
	}
	if len(e.tenants) != 0 || e.oldest != nil || e.newest != nil {
		t.Errorf("%d tenants left, traces from %v to %v", len(e.tenants), e.oldest, e.newest)
	}
}

// TestCatalogAfterEviction checks that catalogs do not list names of evicted spans.
func TestCatalogAfterEviction(t *testing.T) {
	e, _ := open(t, 0)
	first := ptrace.NewTraces()
	rs := first.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "short-lived")
	rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().Attributes().PutStr("only.here", "v")
	consume(t, e, batch(t, "", first))
	consume(t, e, batch(t, "", ordinary(1, 1)))
	e.maxBytes = e.usage.bytes - 1
	e.evict()
	services, _, _ := e.Services(t.Context(), "", tracestore.NameQuery{})
	if want := []string{"service-0", "service-1", "service-2", "service-3"}; !slices.Equal(services, want) {
		t.Errorf("services %q, want %q", services, want)
	}
	if ops, _, _ := e.Operations(t.Context(), "", "short-lived", "", tracestore.NameQuery{}); len(ops) != 0 {
		t.Errorf("operations of an evicted service: %v", ops)
	}
	if keys, _ := e.AttributeKeys(t.Context(), "", "only.here", 0); len(keys) != 0 {
		t.Errorf("evicted attribute keys: %q", keys)
	}
}

// TestRequestTooLarge checks that a request larger than the store is refused and evicts nothing.
func TestRequestTooLarge(t *testing.T) {
	e, reg := open(t, minBytes)
	consume(t, e, batch(t, "", ordinary(0, 1)))
	err := e.Consume(t.Context(), batch(t, "", ordinary(1, 200)))
	if err == nil || !pipeline.IsPermanent(err) || !strings.Contains(err.Error(), "max_bytes") {
		t.Errorf("error %v, want a permanent error that names max_bytes", err)
	}
	if got := metric(t, reg, "spans"); got != spansPerTrace {
		t.Errorf("%v spans stored after the request was refused, want %d", got, spansPerTrace)
	}
	if got := metric(t, reg, "evicted_spans_total"); got != 0 {
		t.Errorf("%v spans evicted for a request that was refused", got)
	}
}

// TestTraceTooLarge checks that a trace that grows beyond the store is dropped as a whole and
// counted.
func TestTraceTooLarge(t *testing.T) {
	e, reg := open(t, minBytes)
	sent := 0.0
	for i := range 100 {
		td := ordinary(i, 2)
		for _, rs := range td.ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				s.SetTraceID([16]byte{9})
				s.Attributes().PutInt("round", int64(i))
				sent++
			}
		}
		consume(t, e, batch(t, "", td))
		if got := metric(t, reg, "spans") + metric(t, reg, "evicted_spans_total"); got != sent {
			t.Fatalf("%v spans stored or evicted, want %v", got, sent)
		}
	}
	if metric(t, reg, "evicted_traces_total") == 0 {
		t.Error("nothing was evicted")
	}
}

// TestMemoryEstimate compares the estimate with the heap.
func TestMemoryEstimate(t *testing.T) {
	const spans = 8_000
	for name, c := range map[string]struct {
		maxBytes pipeline.ByteSize
		request  func(i int) ptrace.Traces
	}{
		"large":               {1 << 30, func(i int) ptrace.Traces { return ordinary(i*100, 100) }},
		"full and evicting":   {4 << 20, func(i int) ptrace.Traces { return ordinary(i*10, 10) }},
		"one span a request":  {1 << 30, singles()},
		"evicting one by one": {4 << 20, singles()},
		"new resources": {1 << 30, func(i int) ptrace.Traces {
			td := ordinary(i, 1)
			for _, rs := range td.ResourceSpans().All() {
				rs.Resource().Attributes().PutInt("instance", int64(i))
			}
			return td
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e, reg := open(t, c.maxBytes)
			before := liveHeap()
			for i, sent := 0, 0; sent < spans; i++ {
				b := batch(t, "", c.request(i))
				sent += b.Len()
				consume(t, e, b)
			}
			e.stages.Get() // scratch memory does not count
			used, estimate := liveHeap()-before, e.usage.bytes
			t.Logf("%d spans: %d bytes each, estimated %d", e.usage.spans, used/int64(e.usage.spans), estimate/int64(e.usage.spans))
			if used > estimate*14/10 || estimate > used*14/10 {
				t.Errorf("heap grew by %d bytes, estimate is %d", used, estimate)
			}
			if got := metric(t, reg, "bytes"); got != float64(estimate) {
				t.Errorf("metric is %v, want %d", got, estimate)
			}
		})
	}
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// singles returns a function that returns the spans of ordinary traces, one in each request.
func singles() func(i int) ptrace.Traces {
	var all ptrace.Traces
	return func(i int) ptrace.Traces {
		k := i % spansPerTrace
		if k == 0 {
			all = ordinary(i/spansPerTrace, 1)
		}
		from := all.ResourceSpans().At(k % 4)
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		from.Resource().CopyTo(rs.Resource())
		ss := rs.ScopeSpans().AppendEmpty()
		from.ScopeSpans().At(0).Scope().CopyTo(ss.Scope())
		from.ScopeSpans().At(0).Spans().At(k / 4).CopyTo(ss.Spans().AppendEmpty())
		return td
	}
}

// TestCostIsUpperBound checks that stage.cost is an upper bound of the memory for a request.
func TestCostIsUpperBound(t *testing.T) {
	mixed := ordinary(5, 3)
	mixed.ResourceSpans().At(0).Resource().Attributes().Clear()
	mixed.ResourceSpans().At(1).ScopeSpans().At(0).Spans().AppendEmpty()
	arrays := ordinary(0, 1)
	for _, rs := range arrays.ResourceSpans().All() {
		list := rs.Resource().Attributes().PutEmptySlice("array")
		for i := range 100 {
			list.AppendEmpty().SetInt(int64(i))
		}
	}
	for i, td := range []ptrace.Traces{ordinary(0, 1), ordinary(0, 50), singles()(0), mixed, arrays} {
		e, _ := open(t, 0)
		b := batch(t, "", td)
		st := newStage(e.seed)
		if err := b.Walk(st); err != nil {
			t.Fatal(err)
		}
		consume(t, e, b)
		if e.usage.bytes > st.cost() {
			t.Errorf("request %d uses %d bytes, upper bound is %d", i, e.usage.bytes, st.cost())
		}
	}
}

// TestFindScannedSpans checks that searches use indexes.
func TestFindScannedSpans(t *testing.T) {
	e, _ := open(t, 0)
	const traces = 1000
	consume(t, e, batch(t, "", ordinary(0, traces)))
	eq := func(p tracestore.Place, key, text string) tracestore.Cond {
		return tracestore.Cond{Field: tracestore.Field{Place: p, Key: key}, Value: tracestore.Text(text)}
	}
	service, user := eq(tracestore.Service, "", "service-1"), eq(tracestore.AnyAttribute, "user.id", "user-77")
	request := eq(tracestore.SpanAttribute, "request.id", "request-555")
	host := eq(tracestore.ResourceAttribute, "host.name", "host.name of service 2")
	number := tracestore.Cond{Field: tracestore.Field{Place: tracestore.SpanAttribute, Key: "bucket"}, Value: tracestore.Number(7)}
	for name, c := range map[string]struct {
		q                 tracestore.Query
		found, maxScanned int
	}{
		"newest":           {tracestore.Query{Limit: 5}, 5, 5},
		"service":          {tracestore.Query{Where: service, Limit: 5}, 5, 5},
		"old window":       {tracestore.Query{Where: service, Limit: 5, To: at(benchBase + 100*1_000_000)}, 5, 5},
		"operation":        {tracestore.Query{Where: tracestore.And{service, eq(tracestore.Name, "", "GET /path/5")}, Limit: 5}, 5, 5},
		"absent operation": {tracestore.Query{Where: tracestore.And{service, eq(tracestore.Name, "", "GET /path/4")}}, 0, 0},
		"operation only":   {tracestore.Query{Where: eq(tracestore.Name, "", "GET /path/4"), Limit: 5}, 5, 5},
		"attribute":        {tracestore.Query{Where: tracestore.And{service, user}}, 1, spansPerTrace},
		"or":               {tracestore.Query{Where: tracestore.Or{request, user}}, 2, spansPerTrace + 1},
		"unique attribute": {tracestore.Query{Where: tracestore.And{service, user, tracestore.Not{Expr: request}}}, 1, spansPerTrace},
		"absent value":     {tracestore.Query{Where: eq(tracestore.AnyAttribute, "user.id", "unknown")}, 0, 0},
		"absent key":       {tracestore.Query{Where: eq(tracestore.AnyAttribute, "nothing", "")}, 0, 0},
		"absent service":   {tracestore.Query{Where: eq(tracestore.Service, "", "nothing")}, 0, 0},
		"number":           {tracestore.Query{Where: number, Limit: 5}, 5, 5},
		"errors":           {tracestore.Query{Where: eq(tracestore.Status, "", "error")}, 0, 0},
		"resource":         {tracestore.Query{Where: host, Limit: 5}, 5, 5},
		"not of resources": {tracestore.Query{Where: eq(tracestore.ResourceAttribute, "user.id", "user-77")}, 0, 0},
	} {
		ids, examined := find(t, e, c.q)
		if len(ids) != c.found || examined > c.maxScanned {
			t.Errorf("%s: %d traces, %d spans scanned; want %d, at most %d", name, len(ids), examined, c.found, c.maxScanned)
		}
	}
}

// TestFindSnapshot checks that a search sees the requests that were stored before it started,
// including traces that are evicted meanwhile.
func TestFindSnapshot(t *testing.T) {
	e, _ := open(t, 0)
	consume(t, e, batch(t, "", ordinary(0, 50)))
	res, err := e.Find(t.Context(), tracestore.Query{}, tracestore.WantFull)
	if err != nil {
		t.Fatal(err)
	}
	limit := e.maxBytes
	n := 0
	for r, err := range res.All {
		if err != nil {
			t.Fatal(err)
		}
		if n++; r.Spans.Len() != spansPerTrace {
			t.Errorf("trace %s has %d spans, want %d", r.ID, r.Spans.Len(), spansPerTrace)
		}
		if n == 1 { // store other traces and late spans of the existing ones; later, drop everything
			late := ordinary(0, 60)
			late.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
				rs.Resource().Attributes().PutStr("late", "yes")
				return false
			})
			consume(t, e, batch(t, "", late))
		}
		if n == 40 {
			e.maxBytes = 0
			dropAll(t, e)
			e.maxBytes = limit
		}
	}
	if n < 40 || n > 50 {
		t.Errorf("%d traces, want the 50 stored before, or at least the 40 read before eviction", n)
	}
}

func dropAll(t *testing.T, e *exporter) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.evict()
	if e.usage.spans != 0 {
		t.Fatalf("%d spans left", e.usage.spans)
	}
}

func TestConsumeCanceled(t *testing.T) {
	e, _ := open(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Consume(ctx, batch(t, "", ordinary(0, 1))); err == nil {
		t.Error("no error")
	}
	if e.usage.spans != 0 {
		t.Errorf("%d spans stored, want none", e.usage.spans)
	}
}

func TestConfig(t *testing.T) {
	c := defaults()
	if err := c.Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	c.MaxBytes = minBytes - 1
	if err := c.Validate(); err == nil {
		t.Errorf("no error for max_bytes %d", c.MaxBytes)
	}
	if f := Factory(); f.Type() != "memory" || f.Kind() != pipeline.KindExporter || f.Summary() == "" {
		t.Errorf("factory %q of kind %s: %q", f.Type(), f.Kind(), f.Summary())
	}
	if e, _ := open(t, 0); e.Durability() != pipeline.DurabilityMemory {
		t.Errorf("durability %s, want in memory", e.Durability())
	}
}

func at(ns int64) time.Time { return time.Unix(0, ns) }
