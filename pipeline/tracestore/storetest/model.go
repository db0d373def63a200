package storetest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Model is a model of a store for tests that go beyond the suite, such as crashing a store or
// expiring spans. It writes random spans, records them, and compares the results of random queries
// with its own. Its behavior depends only on the seed. A Model is not safe for concurrent use.
//
//	m := storetest.NewModel(t, seed)
//	m.Write(store)         // then flush, crash, reopen, ...
//	m.Forget(n)            // the first n requests have expired
//	m.Check(store, memory) // both must answer like the model
type Model struct {
	*suite
	g       generator
	calls   callGenerator
	written []*otlpdata.Batch
	deleted []deletionRecord
}

// NewModel returns a Model without spans. It reports failures to tb.
func NewModel(tb testing.TB, seed uint64) *Model {
	return &Model{suite: newSuite(tb, nil), g: generator{rand.New(rand.NewPCG(seed, 0))}}
}

// deleterOf returns a store as a tracestore.Deleter; the store must support it.
func (m *Model) deleterOf(store Subject) tracestore.Deleter {
	d, ok := optional[tracestore.Deleter](m.suite, store)
	if !ok {
		m.Fatalf("store does not support deletions")
	}
	return d
}

// Rand returns the model's source of randomness, for other random choices of the test.
func (m *Model) Rand() *rand.Rand { return m.g.Rand }

// Written returns the number of recorded requests.
func (m *Model) Written() int { return len(m.written) }

// Next returns a random request. One in three is joined with an earlier request, whose spans are
// thus resent.
func (m *Model) Next() *otlpdata.Batch {
	m.Helper()
	var b *otlpdata.Batch
	if m.g.IntN(4) == 0 {
		b = encodeRequest(m.TB, callsTenant, m.calls.request(&m.g))
	} else {
		b = encodeRequest(m.TB, m.g.tenant(), m.g.request())
	}
	if n := len(m.written); n > 0 && m.g.IntN(3) == 0 {
		if old := m.written[m.g.IntN(n)]; old.Meta().Tenant == b.Meta().Tenant {
			joined, err := otlpdata.Concat(old, b)
			if err != nil {
				m.Fatalf("Concat: %v", err)
			}
			return joined
		}
	}
	return b
}

// Record adds an acknowledged request to the model.
func (m *Model) Record(b *otlpdata.Batch) {
	m.written = append(m.written, b)
	m.sent.add(b)
}

// Write sends the next request to all stores, which must accept it, and records it.
func (m *Model) Write(stores ...Subject) {
	m.Helper()
	b := m.Next()
	for _, s := range stores {
		if err := s.Consume(m.ctx, b); err != nil {
			m.Fatalf("Consume: %v", err)
		}
	}
	m.Record(b)
}

// Forget removes the first n requests. Stores must no longer return their spans.
func (m *Model) Forget(n int) {
	m.written = m.written[n:]
	m.forgetDeletions(n)
	m.sent = newOracle()
	m.replayHistory(m.sent.add, func(tenant string, d tracestore.Deletion) { m.sent.delete(tenant, &d) })
}

// Replay repeats all recorded requests and deletions on a store that has lost them.
func (m *Model) Replay(s Subject) {
	m.Helper()
	m.replayHistory(func(b *otlpdata.Batch) {
		if err := s.Consume(m.ctx, b); err != nil {
			m.Fatalf("Consume: %v", err)
		}
	}, func(tenant string, d tracestore.Deletion) {
		if _, err := m.deleterOf(s).Delete(m.ctx, tenant, d); err != nil {
			m.Fatalf("Delete: %v", err)
		}
	})
}

// Check runs one random query on all stores and compares the results with the model.
func (m *Model) Check(stores ...Subject) {
	m.Helper()
	seed := m.g.Uint64()
	for _, s := range stores {
		m.store = s
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		switch g.IntN(30) {
		case 0:
			m.checkCatalogOf(g.tenant())
		case 3:
			if m.listsAttributes() {
				m.checkAttributesOf("", g.key(), g.text())
			}
		case 8, 9, 10:
			if d, ok := optional[tracestore.Edges](m.suite, s); ok {
				m.checkRandomCallQuery(&g, d)
			}
		case 11, 12, 13:
			if r, ok := optional[tracestore.Metrics](m.suite, s); ok {
				m.checkRandomMetricsQuery(&g, r)
			}
		case 16, 17, 18:
			m.checkRandomSet(&g)
		case 14, 15:
			if a, ok := optional[tracestore.Aggregator](m.suite, s); ok {
				m.checkRandomAggregate(&g, a)
			}
		case 1, 2, 4, 5, 6, 7:
			m.checkRandomTrace(&g)
		default:
			m.checkRandomQuery(&g)
		}
	}
}

// checkRandomTrace compares a trace, which may not exist.
func (m *Model) checkRandomTrace(g *generator) {
	m.Helper()
	tenant, id := g.tenant(), traceID(g.Uint64N(randomTraces))
	if want := m.sent.trace(tenant, id); len(want) > 0 {
		m.checkTraces(tenant, id)
		return
	}
	if ids, spans := m.read(tenant, tracestore.TraceRef{ID: id}); len(ids) > 0 {
		m.Errorf("trace %s: %d spans, want none", id, len(spans[0]))
	}
}

// CheckAll compares all catalogs, traces, calls and metrics of all stores with the model.
func (m *Model) CheckAll(stores ...Subject) {
	m.Helper()
	for _, s := range stores {
		m.store = s
		for _, tenant := range allTenants() {
			m.checkCatalogOf(tenant)
			m.checkFind(tracestore.Query{Tenant: tenant}, tracestore.WantFull)
		}
		if d, ok := optional[tracestore.Edges](m.suite, s); ok {
			m.checkCalls(d, callsTenant, time.Time{}, time.Time{})
		}
		if r, ok := optional[tracestore.Metrics](m.suite, s); ok {
			for _, tenant := range allTenants() {
				m.checkMetricsOf(r, tenant, tracestore.MetricsQuery{ByOperation: true})
			}
			m.checkBaselinesOf(nil, r, callsTenant, time.Time{}, time.Time{})
		}
	}
}
