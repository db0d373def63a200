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

// delete forgets the spans that d covers, and returns how many there were, and how often they had come.
func (o *oracle) delete(tenant string, d *tracestore.Deletion) (spans, sent int) {
	t := o.tenant(tenant)
	left := &sentSpans{dedup: storequery.NewDedup(), traces: make(map[otlpdata.TraceID][]tracestore.Span), requests: make(map[string]int)}
	for _, s := range t.spans {
		c := content(s)
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

// deleter returns the store as a Deleter, if it is one.
func (s *suite) deleter() tracestore.Deleter {
	d, ok := s.store.(tracestore.Deleter)
	if !ok {
		s.Skip("the store is no tracestore.Deleter")
	}
	return d
}

// delete deletes from the store and from what is remembered.
func (s *suite) delete(tenant string, d tracestore.Deletion) {
	s.Helper()
	least, most := s.sent.delete(tenant, &d)
	s.deleteFrom(s.deleter(), tenant, d, least, most)
}

// deleteFrom deletes from a store which has least distinct spans that are covered, and was sent most.
func (s *suite) deleteFrom(store tracestore.Deleter, tenant string, d tracestore.Deletion, least, most int) {
	s.Helper()
	got, err := store.Delete(s.ctx, tenant, d)
	if err != nil {
		s.Fatalf("Delete(%q, %+v): %v", tenant, d, err)
	}
	if got.Spans < least || got.Spans > most {
		s.Errorf("Delete(%q, %+v): %d spans, want %d, or up to %d if it counts duplicates", tenant, d, got.Spans, least, most)
	}
}

// checkStored compares everything that can be asked for without a condition; calls only where no two spans share an id.
func (s *suite) checkStored(calls bool, tenants ...string) {
	s.Helper()
	for _, tenant := range tenants {
		s.checkCatalogOf(tenant)
		s.checkFind(tracestore.Query{Tenant: tenant}, tracestore.WantFull)
		if d, ok := s.store.(tracestore.Dependencies); ok && calls {
			s.checkCalls(d, tenant, time.Time{}, time.Time{})
		}
		if m, ok := s.store.(tracestore.Metrics); ok {
			s.checkMetricsOf(m, tenant, tracestore.MetricsQuery{ByOperation: true})
		}
	}
}

// shop sends four traces of three services, a minute apart, with names and attributes of their own.
func (s *suite) shop(tenant string) {
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
	both := []string{"", "other"}
	for _, tenant := range both {
		s.shop(tenant)
	}
	s.delete("", tracestore.Deletion{Traces: []otlpdata.TraceID{traceID(1), traceID(1), traceID(99)}})
	s.checkStored(true, both...)
	if ids, _ := s.read("", tracestore.TraceRef{ID: traceID(1)}); len(ids) > 0 {
		s.Errorf("a deleted trace is still there")
	}
	s.delete("", tracestore.Deletion{Service: "cart", From: at(firstMinute + minute), To: at(firstMinute + 2*minute + 1)})
	s.checkStored(true, both...)
	s.delete("", tracestore.Deletion{Service: "cart"})
	s.delete("", tracestore.Deletion{Service: "unknown"})
	s.checkStored(true, both...)
	s.delete("other", tracestore.Deletion{From: at(firstMinute + 2*minute)})
	s.delete("other", tracestore.Deletion{To: at(firstMinute)})
	s.delete("nobody", tracestore.Deletion{To: at(firstMinute)})
	s.checkStored(true, both...)
	s.shop("") // what was deleted and comes again is there again
	s.checkStored(true, both...)
	if c, ok := s.store.(tracestore.AttributeCatalog); ok {
		s.delete("", tracestore.Deletion{Service: "db", To: at(firstMinute + 2*minute)})
		for _, key := range []string{"db.key", "cart.key", "host"} {
			s.checkAttributesOf(c, "", key, "")
		}
	}
	for _, tenant := range both {
		s.delete(tenant, tracestore.Deletion{To: at(firstMinute + 10*minute)})
	}
	s.checkStored(true, both...)
	s.checkBadDeletions()
}

func (s *suite) checkBadDeletions() {
	s.Helper()
	d := s.deleter()
	id := []otlpdata.TraceID{traceID(1)}
	for _, bad := range []tracestore.Deletion{{}, {Traces: id, Service: "shop"}, {Traces: id, To: at(base)}, {From: at(base + 1), To: at(base)},
		{Traces: make([]otlpdata.TraceID, tracestore.MaxDeletedTraces+1)}} {
		if _, err := d.Delete(s.ctx, "", bad); !errors.Is(err, tracestore.ErrBadDeletion) {
			s.Errorf("Delete of %d traces, service %q, from %s to %s: error %v", len(bad.Traces), bad.Service, bad.From, bad.To, err)
		}
	}
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := d.Delete(ctx, "", tracestore.Deletion{Traces: id}); err == nil {
		s.Errorf("Delete answers although the context has ended")
	}
}

// checkRandomDeletes deletes at random between random requests.
func checkRandomDeletes(s *suite) {
	s.deleter()
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 4))}
	var c caller
	var sent []*otlpdata.Batch
	for range 15 {
		for range 4 {
			s.sometimesAgain(&g, sent)
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
			s.ask(&g)
			if a, ok := s.store.(tracestore.AttributeCatalog); ok {
				s.checkAttributesOf(a, "", g.key(), "")
			}
		}
		s.checkStored(false, tenants()...)
		s.checkStored(true, callsTenant)
		if s.Failed() {
			s.Fatalf("failed with %s=%d", seedVariable, seed)
		}
	}
}

// deletion returns a random deletion, and a tenant that has spans which it may cover.
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

// deletionAt is a deletion that was made when so many requests had been written.
type deletionAt struct {
	written int
	tenant  string
	d       tracestore.Deletion
}

// Delete deletes something random from all stores, which must be of the kind tracestore.Deleter, and from the model.
func (m *Model) Delete(stores ...Subject) {
	m.Helper()
	tenant, d := m.g.deletion()
	least, most := m.sent.delete(tenant, &d)
	for _, s := range stores {
		m.deleteFrom(s.(tracestore.Deleter), tenant, d, least, most)
	}
	m.deleted = append(m.deleted, deletionAt{len(m.written), tenant, d})
}

// forgetDeletions drops what was deleted from the first n requests only.
func (m *Model) forgetDeletions(n int) {
	m.deleted = slices.DeleteFunc(m.deleted, func(d deletionAt) bool { return d.written <= n })
	for i := range m.deleted {
		m.deleted[i].written -= n
	}
}

// eachWritten calls write and del in the order in which requests were written and spans deleted.
func (m *Model) eachWritten(write func(*otlpdata.Batch), del func(tenant string, d tracestore.Deletion)) {
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
