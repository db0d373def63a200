package legacy_test

import (
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

// TestRouting checks that the spans of a trace are on the shard that the hash of its id selects,
// that both replicas of a shard are equal, and that spans which are resent are stored once, in
// the tables and in those that views fill.
func TestRouting(t *testing.T) {
	harness.SkipIfShort(t)
	i := install(t)
	collectors := []string{i.collector("").OTLPGRPC(), i.collector("").OTLPGRPC()}
	requests := joined(bench.New(1, time.Now()).Requests(3_000, 100), 10)
	sent := 0
	for round := range 2 { // the second collector gets the same spans again
		r, err := load.Run(t.Context(), load.Options{Target: collectors[round], Retry: time.Minute}, requests)
		if err != nil || r.Acked != r.Spans {
			t.Fatalf("sent %+v: %v", r, err)
		}
		sent = r.Spans
	}
	i.waitSynced()

	for shard := 1; shard <= 2; shard++ {
		counts := make(map[string]bool)
		for _, n := range i.Shard(shard) {
			for _, table := range []string{"spans_local", "payload_local"} {
				if got := i.ask(n, "SELECT countIf(cityHash64(trace_id) % 2 != "+string('0'+rune(shard-1))+") FROM tracing."+table); got != "0" {
					t.Errorf("%s: %s rows of %s belong to another shard", n.Name(), got, table)
				}
			}
			counts[i.ask(n, "SELECT count(), sum(cityHash64(trace_id, ids, start)) FROM tracing.payload_local")] = true
		}
		if len(counts) != 1 {
			t.Errorf("replicas of shard %d differ: %v", shard, counts)
		}
	}
	for table, count := range map[string]string{"spans": "count()", "payload": "count()", "bounds": "sum(spans)", "minutes": "sum(spans)",
		"hours": "sum(spans)"} {
		var got int
		if err := scan(i.ask(i.Node(0), "SELECT "+count+" FROM tracing."+table), &got); err != nil || got != sent {
			t.Errorf("%s counts %d spans, %d were sent: %v", table, got, sent, err)
		}
	}
}
