package storetest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Model is for tests that do more to a store than the suite does, such as crash it or let spans expire: it writes random spans, remembers
// them, and compares the answers to random questions with its own. What it does depends on the seed only. Not for concurrent use.
//
//	m := storetest.NewModel(t, seed)
//	m.Write(store)        // and flush, crash, reopen ... as the test likes
//	m.Forget(n)           // the first n requests have expired
//	m.Ask(store, memory)  // both must answer as the model does
type Model struct {
	*suite
	g       generator
	calls   caller
	written []*otlpdata.Batch
	deleted []deletionAt
}

// NewModel returns a Model that knows of no spans. Mistakes of a store are reported to tb.
func NewModel(tb testing.TB, seed uint64) *Model {
	return &Model{suite: newSuite(tb, nil), g: generator{rand.New(rand.NewPCG(seed, 0))}}
}

// Rand returns the source of all randomness, for the test's own decisions.
func (m *Model) Rand() *rand.Rand { return m.g.Rand }

// Written returns how many requests are remembered.
func (m *Model) Written() int { return len(m.written) }

// Next returns a random request, in one of three cases joined with one that was written before, whose spans are thus sent once more.
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

// Remember tells the model that a request was acknowledged.
func (m *Model) Remember(b *otlpdata.Batch) {
	m.written = append(m.written, b)
	m.sent.add(b)
}

// Write gives the next request to all stores, which must take it.
func (m *Model) Write(stores ...Subject) {
	m.Helper()
	b := m.Next()
	for _, s := range stores {
		if err := s.Consume(m.ctx, b); err != nil {
			m.Fatalf("Consume: %v", err)
		}
	}
	m.Remember(b)
}

// Forget drops the first n requests, whose spans the stores must not show any more.
func (m *Model) Forget(n int) {
	m.written = m.written[n:]
	m.forgetDeletions(n)
	m.sent = newOracle()
	m.eachWritten(m.sent.add, func(tenant string, d tracestore.Deletion) { m.sent.delete(tenant, &d) })
}

// Replay gives all requests that are remembered to a store, as to one that forgot more than it should.
func (m *Model) Replay(s Subject) {
	m.Helper()
	m.eachWritten(func(b *otlpdata.Batch) {
		if err := s.Consume(m.ctx, b); err != nil {
			m.Fatalf("Consume: %v", err)
		}
	}, func(tenant string, d tracestore.Deletion) {
		if _, err := s.(tracestore.Deleter).Delete(m.ctx, tenant, d); err != nil {
			m.Fatalf("Delete: %v", err)
		}
	})
}

// Ask puts one random question to all stores and compares their answers with the model's.
func (m *Model) Ask(stores ...Subject) {
	m.Helper()
	seed := m.g.Uint64()
	for _, s := range stores {
		m.store = s
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		switch g.IntN(30) {
		case 0:
			m.checkCatalogOf(g.tenant())
		case 3:
			if c, ok := s.(tracestore.AttributeCatalog); ok {
				m.checkAttributesOf(c, "", g.key(), g.text())
			}
		case 8, 9, 10:
			if d, ok := s.(tracestore.Dependencies); ok {
				m.askCalls(&g, d)
			}
		case 11, 12, 13:
			if r, ok := s.(tracestore.Metrics); ok {
				m.askMetrics(&g, r)
			}
		case 16, 17, 18:
			m.askSet(&g)
		case 14, 15:
			if a, ok := s.(tracestore.Aggregator); ok {
				m.askAggregate(&g, a)
			}
		case 1, 2, 4, 5, 6, 7:
			m.checkSome(&g)
		default:
			m.ask(&g)
		}
	}
}

// checkSome compares a trace, which need not exist.
func (m *Model) checkSome(g *generator) {
	m.Helper()
	tenant, id := g.tenant(), traceID(g.Uint64N(randomTraces))
	if want := m.sent.trace(tenant, id); len(want) > 0 {
		m.checkTraces(tenant, id)
		return
	}
	if ids, spans := m.read(tenant, tracestore.TraceRef{ID: id}); len(ids) > 0 {
		m.Errorf("trace %s: has %d spans, and none was sent", id, len(spans[0]))
	}
}

// AskAll compares everything that can be asked for without a condition: all catalogs, traces, calls and metrics.
func (m *Model) AskAll(stores ...Subject) {
	m.Helper()
	for _, s := range stores {
		m.store = s
		for _, tenant := range allTenants() {
			m.checkCatalogOf(tenant)
			m.checkFind(tracestore.Query{Tenant: tenant}, tracestore.WantFull)
		}
		if d, ok := s.(tracestore.Dependencies); ok {
			m.checkCalls(d, callsTenant, time.Time{}, time.Time{})
		}
		if r, ok := s.(tracestore.Metrics); ok {
			for _, tenant := range allTenants() {
				m.checkMetricsOf(r, tenant, tracestore.MetricsQuery{ByOperation: true})
			}
		}
	}
}
