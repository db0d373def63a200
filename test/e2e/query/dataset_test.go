package query_test

import (
	"testing"
	"time"

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

// testDataset sends at least the given number of spans of the data set to every store, in random
// order, and runs check. The disk store is checked again after a restart.
func testDataset(t *testing.T, data *bench.Dataset, spans int, check func(p *inprocess.Program)) {
	for name, settings := range storeSettings {
		t.Run(name, func(t *testing.T) {
			settings := append([]string{"service::data_dir=" + t.TempDir()}, settings...)
			p := inprocess.Start(t, settings...)
			r, err := load.Run(t.Context(), load.Options{Target: p.OTLPGRPC(), Connections: 2, InFlight: 2, Retry: time.Minute},
				harness.Shuffled(data.Requests(spans, 100)))
			if err != nil || r.Acked < spans {
				t.Fatalf("%d spans were acknowledged: %v", r.Acked, err)
			}
			check(p)
			if name == "memory" {
				return
			}
			if err := p.Stop(); err != nil {
				t.Fatal(err)
			}
			check(inprocess.Start(t, settings...))
		})
	}
}
