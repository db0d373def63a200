package disk

import (
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/bench"
)

// TestUnknownService: a search does not load the vocabulary of segments that lack its service, also
// if some of their spans are deleted.
func TestUnknownService(t *testing.T) {
	e := newSetup(vfstest.NewMem()).open(t)
	n := newNumbers()
	n.send(t, e, 100)
	flushStore(t, e)
	h := e.handles()[0]
	services, _, err := e.Services(t.Context(), "", tracestore.NameQuery{})
	if err != nil || len(services) == 0 {
		t.Fatalf("services: %v, %v", services, err)
	}
	search := func(service string) (found int, memory int64) {
		h.segment.Drop()
		q := everything()
		q.Where = tracestore.Cond{Field: tracestore.Field{Place: tracestore.Service}, Value: tracestore.Literal{Text: service}}
		results, err := e.Find(t.Context(), q, tracestore.WantIDs)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range results.All {
			if err != nil {
				t.Fatal(err)
			}
			found++
		}
		if !results.Outcome().Complete() {
			t.Errorf("service %q: %+v, want a complete answer", service, results.Outcome())
		}
		return found, h.segment.Memory()
	}
	for range 2 {
		found, loaded := search(services[0])
		none, memory := search("unknown")
		if found == 0 || none > 0 || memory > loaded/2 {
			t.Errorf("service %q: %d traces, %d bytes loaded; unknown service: %d traces, %d bytes, want less than half",
				services[0], found, loaded, none, memory)
		}
		if _, err := e.Delete(t.Context(), "", tracestore.Deletion{To: startOf(4)}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDependenciesReadBlocksOnce: while a deletion is pending, the parents of many spans are
// hidden. They are searched block by block, not trace by trace.
func TestDependenciesReadBlocksOnce(t *testing.T) {
	disk := vfstest.Inject(vfstest.NewMem())
	s := newSetup(disk)
	s.config.Memtable.MaxBytes = 64 << 20
	e := s.open(t)
	for range 2 {
		for r := range bench.New(1, s.clock.now()).Requests(10_000, 500) {
			b, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{Received: s.clock.now()}, otlpdata.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Consume(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		flushStore(t, e)
	}
	blocks := 0
	for _, h := range e.handles() {
		blocks += h.info.Blocks
	}
	services, _, err := e.Services(t.Context(), "", tracestore.NameQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Delete(t.Context(), "", tracestore.Deletion{Service: services[0]}); err != nil {
		t.Fatal(err)
	}
	before := disk.Count(vfstest.OpRead)
	g, err := e.Dependencies(t.Context(), "", time.Time{}, time.Time{})
	if err != nil || len(g.Edges) == 0 {
		t.Fatalf("%+v, %v", g, err)
	}
	reads := disk.Count(vfstest.OpRead) - before
	t.Logf("%d blocks, %d reads", blocks, reads)
	if most := 10 * blocks; reads > most {
		t.Errorf("%d reads of %d blocks, want at most %d", reads, blocks, most)
	}
}
