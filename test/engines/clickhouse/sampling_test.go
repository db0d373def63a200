package clickhouse_test

import (
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/sampling/samplingtest"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

// openSampling returns an exporter with a clock.
func openSampling(tb testing.TB, database string, now func() time.Time) sampling.Store {
	tb.Helper()
	return openOn(tb, engine.Shared(tb), database, func(_ *clickhouse.Config, set *pipeline.Settings) { set.Env.Now = now }).(sampling.Store)
}

// TestSampling checks the state of adaptive sampling.
func TestSampling(t *testing.T) {
	s := engine.Shared(t)
	databases := make(map[sampling.Store]string)
	samplingtest.Run(t, samplingtest.Options{
		New: func(t *testing.T, now func() time.Time) sampling.Store {
			database := s.Database(t)
			store := openSampling(t, database, now)
			databases[store] = database
			return store
		},
		Reopen: func(t *testing.T, old sampling.Store) sampling.Store {
			return openSampling(t, databases[old], time.Now)
		},
	})
}

// TestLeaseOfManyCollectors checks that, if several collectors claim the same lease at the same
// time, all agree on one owner, again and again.
func TestLeaseOfManyCollectors(t *testing.T) {
	const collectors, terms = 4, 5
	database := engine.Shared(t).Database(t)
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	var stores []sampling.Store
	for range collectors {
		stores = append(stores, openSampling(t, database, clock))
	}
	for range terms {
		owners := make(chan string, collectors)
		for i, s := range stores {
			go func() {
				l, err := s.Lease(t.Context(), "lead", string(rune('a'+i)), time.Second)
				if err != nil {
					t.Error(err)
				}
				owners <- l.Owner
			}()
		}
		first := <-owners
		for range collectors - 1 {
			if o := <-owners; o != first {
				t.Errorf("collectors got the owners %q and %q", first, o)
			}
		}
		now = now.Add(2 * time.Second) // the lease has expired
	}
}
