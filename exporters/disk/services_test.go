package disk

import (
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
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
		if !results.Outcome().Complete {
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
