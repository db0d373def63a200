//go:build unix

package disk

import (
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/bench"
)

// BenchmarkDependenciesWithDeletion measures the map of services of a store, before and after a
// deletion that is still pending.
func BenchmarkDependenciesWithDeletion(b *testing.B) {
	const spans = 2_000_000
	s := newSetup(vfs.OS())
	s.config = defaults()
	s.config.Directory, s.config.Reserve, s.config.MaxWait = b.TempDir(), 0, pipeline.Duration(time.Minute)
	s.config.Merge.Enabled, s.config.AllowDelete = false, true
	e := s.build(b)
	e.logStep = 0
	if err := e.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer stopStore(b, e)
	w := newWorkload(b, bench.New(1, newClock().now()).Requests(spans, usualRequest))
	w.send(b, e)
	flushStore(b, e)
	mergeAll(b, e)
	ask := func(b *testing.B) {
		for b.Loop() {
			g, err := e.Dependencies(b.Context(), "", time.Time{}, time.Time{})
			if err != nil || !g.Complete() || len(g.Edges) == 0 {
				b.Fatalf("%+v, %v", g, err)
			}
		}
	}
	b.Logf("%d segments", len(e.handles()))
	b.Run("before", ask)
	services, _, err := e.Services(b.Context(), "", tracestore.NameQuery{})
	if err != nil {
		b.Fatal(err)
	}
	d := tracestore.Deletion{Service: services[0]}
	if _, err := e.Delete(b.Context(), "", d); err != nil {
		b.Fatal(err)
	}
	b.Run("pending", ask)
}
