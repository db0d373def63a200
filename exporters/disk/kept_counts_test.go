package disk

import (
	"reflect"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

// TestKeptCounts compares counts that are kept of segments with direct counts, after random
// operations: flushes, merges, deletions, crashes.
func TestKeptCounts(t *testing.T) {
	seed := soak.Seed(t)
	m := &machine{model: storetest.NewModel(t, seed), t: t, mem: vfstest.NewMem(), clock: newClock(), counts: map[string]int{}}
	m.open()
	m.memory = openMemory(t)
	failed := tracestore.Cond{Field: tracestore.Field{Place: tracestore.Status}, Value: tracestore.Text("error")}
	wants := []tracestore.Aggregation{
		{Facets: tracestore.FacetQuery{Values: 20}},
		{Facets: tracestore.FacetQuery{Values: 20, Selection: &tracestore.Selection{Where: failed}}},
		{Groups: tracestore.GroupQuery{Limit: 30, By: []tracestore.Field{{Place: tracestore.AnyAttribute, Key: "k"}}}},
	}
	const times = 60 // starts of spans of the model
	scanned, direct := 0, 0
	for range soak.Rounds(t, 300, 100) {
		m.step()
		rng := m.model.Rand()
		within := func() time.Time { return time.Unix(1_700_000_000, rng.Int64N(times)) }
		var q tracestore.Query
		if rng.IntN(2) == 0 {
			q.From = within()
		}
		if rng.IntN(2) == 0 {
			q.To = within()
		}
		a := wants[rng.IntN(len(wants))]
		got, err := m.store.Aggregate(t.Context(), q, a)
		if err != nil {
			t.Fatal(err)
		}
		a.Exemplars = 1 // so that counts are not kept
		want, err := m.store.Aggregate(t.Context(), q, a)
		if err != nil {
			t.Fatal(err)
		}
		scanned, direct = scanned+got.Scanned, direct+want.Scanned
		if got.Scanned, got.Exemplars = want.Scanned, want.Exemplars; !reflect.DeepEqual(got, want) {
			t.Fatalf("%s=%d, after %v: %+v, %+v:\n got %+v %+v\nwant %+v %+v",
				soak.SeedVariable, seed, m.counts, q, a, got, got.Facets, want, want.Facets)
		}
	}
	if scanned >= direct {
		t.Errorf("examined %d spans, and %d without kept counts", scanned, direct)
	}
	t.Logf("%v; examined %d spans instead of %d", m.counts, scanned, direct)
	stopStore(t, m.store)
}
