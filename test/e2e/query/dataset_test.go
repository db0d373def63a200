package query_test

import (
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// storeSettings are settings that select a store, by name of the test: the memory store, and the
// disk store with one memtable or with several segments.
var storeSettings = map[string][]string{
	"memory": {"exporters::memory::max_bytes=256MiB",
		"service::pipelines::traces::exporters=[memory]", "extensions::query::storage=memory"},
	"disk":     nil,
	"segments": {"exporters::disk::memtable::max_spans=3000"},
}

// withEachStore runs a test with the settings of each store. In `make race`, the disk store with
// one memtable is enough. Queries have time on a busy machine.
func withEachStore(t *testing.T, test func(t *testing.T, store string, settings []string)) {
	for name, settings := range storeSettings {
		t.Run(name, func(t *testing.T) {
			if name != "disk" {
				soak.SkipIfRaced(t)
			}
			test(t, name, append([]string{"extensions::query::query_timeout=2m"}, settings...))
		})
	}
}

// testDataset sends at least the given number of spans of the data set to every store, in random
// order, and runs check. The disk store is checked again after a restart.
func testDataset(t *testing.T, data *bench.Dataset, spans int, check func(p *inprocess.Program)) {
	withEachStore(t, func(t *testing.T, store string, settings []string) {
		settings = append(settings, "service::data_dir="+t.TempDir())
		p := inprocess.Start(t, settings...)
		r, err := load.Run(t.Context(), load.Options{Target: p.OTLPGRPC(), Connections: 2, InFlight: 2, Retry: time.Minute},
			harness.Shuffled(data.Requests(spans, 100)))
		if err != nil || r.Acked < spans {
			t.Fatalf("%d spans were acknowledged: %v", r.Acked, err)
		}
		check(p)
		if store == "memory" {
			return
		}
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		check(inprocess.Start(t, settings...))
	})
}
