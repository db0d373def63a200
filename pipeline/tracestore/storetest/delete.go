package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// delete removes the spans that d covers. It returns their number, and the number of times they
// were sent.
func (o *oracle) delete(tenant string, d *tracestore.Deletion) (spans, sent int) {
	t := o.tenant(tenant)
	left := &sentSpans{dedup: storequery.NewDedup(), traces: make(map[otlpdata.TraceID][]tracestore.Span), requests: make(map[string]int)}
	for _, s := range t.spans {
		c := identity(s)
		if d.Covers(s) {
			spans++
			sent += t.requests[c]
			continue
		}
		left.dedup.First(s)
		left.spans = append(left.spans, s)
		left.traces[s.TraceID] = append(left.traces[s.TraceID], s)
		left.requests[c] = t.requests[c]
	}
	o.tenants[tenant] = left
	return spans, sent
}

// deleter returns the store as a Deleter, if it implements it.
func (s *suite) deleter() tracestore.Deleter {
	d, ok := optional[tracestore.Deleter](s, s.store)
	if !ok {
		s.Skip("store does not implement tracestore.Deleter")
	}
	return d
}

// delete deletes spans from the store and from the oracle.
func (s *suite) delete(tenant string, d tracestore.Deletion) {
	s.Helper()
	lower, upper := s.sent.delete(tenant, &d)
	dry := d
	dry.DryRun = true
	s.deleteFrom(s.deleter(), tenant, dry, lower, upper) // the next count shows that it deleted nothing
	s.deleteFrom(s.deleter(), tenant, d, lower, upper)
}

// deleteFrom deletes spans from a store and checks their number, which may count duplicates: lower
// to upper.
func (s *suite) deleteFrom(store tracestore.Deleter, tenant string, d tracestore.Deletion, lower, upper int) {
	s.Helper()
	got, err := store.Delete(s.ctx, tenant, d)
	if err != nil {
		s.Fatalf("Delete(%q, %+v): %v", tenant, d, err)
	}
	if got.Spans < lower || got.Spans > upper {
		s.Errorf("Delete(%q, %+v): %d spans, want %d, or up to %d if duplicates count", tenant, d, got.Spans, lower, upper)
	}
}

// checkStored compares all traces, catalogs and metrics of tenants, and calls if no two spans share
// an id.
func (s *suite) checkStored(calls bool, tenants ...string) {
	s.Helper()
	for _, tenant := range tenants {
		s.checkCatalogOf(tenant)
		s.checkFind(tracestore.Query{Tenant: tenant}, tracestore.WantFull)
		if d, ok := optional[tracestore.Edges](s, s.store); ok && calls {
			s.checkCalls(d, tenant, time.Time{}, time.Time{})
		}
		if m, ok := optional[tracestore.Metrics](s, s.store); ok {
			s.checkMetricsOf(m, tenant, tracestore.MetricsQuery{ByOperation: true})
		}
	}
}

// sendShop sends four traces of three services, one minute apart, with distinct names and
// attributes.
func (s *suite) sendShop(tenant string) {
	s.Helper()
	for trace := range uint64(4) {
		for i, service := range []string{"shop", "cart", "db"} {
			r := newRequest(service)
			start := firstMinute + trace*minute + uint64(i)
			sp := r.call(trace, uint64(i+1), uint64(i), 1, start)
			sp.SetName(service + " of " + string(rune('a'+trace)))
			sp.Attributes().PutStr(service+".key", string(rune('a'+trace)))
			r.traces.ResourceSpans().At(0).Resource().Attributes().PutStr("host", service+string(rune('a'+trace)))
			s.send(tenant, r.traces)
		}
	}
}

func checkDelete(s *suite) {
	s.deleter()
	tenantNames := []string{"", "other"}
	for _, tenant := range tenantNames {
		s.sendShop(tenant)
	}
	s.delete("", tracestore.Deletion{Traces: []otlpdata.TraceID{traceID(1), traceID(1), traceID(99)}})
	s.checkStored(true, tenantNames...)
	if ids, _ := s.read("", tracestore.TraceRef{ID: traceID(1)}); len(ids) > 0 {
		s.Errorf("a deleted trace is returned")
	}
	s.delete("", tracestore.Deletion{Service: "cart", From: at(firstMinute + minute), To: at(firstMinute + 2*minute + 1)})
	s.checkStored(true, tenantNames...)
	s.delete("", tracestore.Deletion{Service: "cart"})
	s.delete("", tracestore.Deletion{Service: "unknown"})
	s.checkStored(true, tenantNames...)
	s.delete("other", tracestore.Deletion{From: at(firstMinute + 2*minute)})
	s.delete("other", tracestore.Deletion{To: at(firstMinute)})
	s.delete("unknown", tracestore.Deletion{To: at(firstMinute)})
	s.checkStored(true, tenantNames...)
	s.sendShop("") // resent spans are visible again
	s.checkStored(true, tenantNames...)
	if s.listsAttributes() {
		s.delete("", tracestore.Deletion{Service: "db", To: at(firstMinute + 2*minute)})
		for _, key := range []string{"db.key", "cart.key", "host"} {
			s.checkAttributesOf("", key, "")
		}
	}
	for _, tenant := range tenantNames {
		s.delete(tenant, tracestore.Deletion{To: at(firstMinute + 10*minute)})
	}
	s.checkStored(true, tenantNames...)
	s.checkBadDeletions()
}

func (s *suite) checkBadDeletions() {
	s.Helper()
	d := s.deleter()
	id := []otlpdata.TraceID{traceID(1)}
	for _, bad := range []tracestore.Deletion{
		{}, {Traces: id, Service: "shop"}, {Traces: id, To: at(base)}, {From: at(base + 1), To: at(base)},
		{Traces: make([]otlpdata.TraceID, tracestore.MaxDeletedTraces+1)},
	} {
		if _, err := d.Delete(s.ctx, "", bad); !errors.Is(err, tracestore.ErrBadDeletion) {
			s.Errorf("Delete of %d traces, service %q, from %s to %s: error %v, want ErrBadDeletion",
				len(bad.Traces), bad.Service, bad.From, bad.To, err)
		}
	}
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := d.Delete(ctx, "", tracestore.Deletion{Traces: id}); err == nil {
		s.Errorf("Delete with a canceled context: no error")
	}
}

// checkRandomDeletes alternates between random requests, deletions and queries.
func checkRandomDeletes(s *suite) {
	s.deleter()
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 4))}
	var c callGenerator
	var sent []*otlpdata.Batch
	for range rounds(8, 4) {
		for range 4 {
			s.maybeResend(&g, sent)
			b := s.encode(g.tenant(), g.request())
			s.consume(b)
			sent = append(sent, b)
			s.consume(s.encode(callsTenant, c.request(&g)))
		}
		for range 1 + g.IntN(2) {
			tenant, d := g.deletion()
			s.delete(tenant, d)
		}
		for range 5 {
			s.checkRandomQuery(&g)
			if s.listsAttributes() {
				s.checkAttributesOf("", g.key(), "")
			}
		}
		s.checkStored(false, tenants()...)
		s.checkStored(true, callsTenant)
		if s.Failed() {
			s.Fatalf("failed with %s=%d", seedVariable, seed)
		}
	}
}

// deletion returns a random deletion and its tenant.
func (g *generator) deletion() (string, tracestore.Deletion) {
	tenant := pick(g, allTenants()...)
	instant := func() time.Time {
		if tenant == callsTenant {
			return at(g.instant())
		}
		return at(base + g.Uint64N(randomTimes))
	}
	switch kind := g.IntN(4); {
	case kind == 0 || tenant == callsTenant && kind == 1:
		var d tracestore.Deletion
		for range 1 + g.IntN(3) {
			d.Traces = append(d.Traces, traceID(g.Uint64N(randomTraces)))
		}
		return tenant, d
	case kind == 1:
		service := g.text()
		if service == "" {
			service = "cart"
		}
		return tenant, tracestore.Deletion{Service: service}
	case kind == 2:
		d := tracestore.Deletion{Service: pick(g, "a", "b", "cart"), From: instant()}
		d.To = d.From.Add(time.Duration(g.IntN(10)))
		return tenant, d
	}
	d := tracestore.Deletion{From: instant()}
	d.To = d.From.Add(time.Duration(g.IntN(3)))
	return tenant, d
}

// deletionRecord is a deletion after a number of written requests.
type deletionRecord struct {
	written int
	tenant  string
	d       tracestore.Deletion
}

// Delete deletes random spans from the model and from all stores, which must implement
// tracestore.Deleter.
func (m *Model) Delete(stores ...Subject) {
	m.Helper()
	tenant, d := m.g.deletion()
	lower, upper := m.sent.delete(tenant, &d)
	for _, s := range stores {
		m.deleteFrom(m.deleterOf(s), tenant, d, lower, upper)
	}
	m.deleted = append(m.deleted, deletionRecord{len(m.written), tenant, d})
}

// forgetDeletions drops the deletions that affect only the first n requests.
func (m *Model) forgetDeletions(n int) {
	m.deleted = slices.DeleteFunc(m.deleted, func(d deletionRecord) bool { return d.written <= n })
	for i := range m.deleted {
		m.deleted[i].written -= n
	}
}

// replayHistory calls write and del for the recorded requests and deletions, in their order.
func (m *Model) replayHistory(write func(*otlpdata.Batch), del func(tenant string, d tracestore.Deletion)) {
	next := 0
	for i := range len(m.written) + 1 {
		for ; next < len(m.deleted) && m.deleted[next].written == i; next++ {
			del(m.deleted[next].tenant, m.deleted[next].d)
		}
		if i < len(m.written) {
			write(m.written[i])
		}
	}
}
