package legacy_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/cluster"
	"github.com/tracing-backend/tracing/test/harness"
)

// requestsPerKill is the number of requests that are acknowledged before the next kill.
const requestsPerKill = 8

// TestReplicaKilled kills replicas with SIGKILL while two collectors store spans without a queue,
// restarts them, and checks that they catch up: every acknowledged span is stored exactly once on
// both replicas of its shard, and views count none twice.
func TestReplicaKilled(t *testing.T) {
	harness.SkipIfShort(t)
	i := install(t)
	kills, rnd := soak.Rounds(t, 10, 2), rand.New(rand.NewPCG(soak.Seed(t), 0))
	sent := harness.NewSentSpans()
	var loads []*harness.SteadyLoad
	for seed := range uint64(2) {
		loads = append(loads, harness.StartSteadyLoad(t, i.collector("").OTLPGRPC(), seed, sent))
	}
	for n := range kills {
		killed := i.Node(rnd.IntN(len(i.Nodes())))
		for _, l := range loads {
			l.Await((2*n + 1) * requestsPerKill)
		}
		if err := killed.Kill(); err != nil {
			t.Fatal(err)
		}
		for _, l := range loads { // with one replica less
			l.Await((2*n + 2) * requestsPerKill)
		}
		i.restart(killed)
		t.Logf("kill %d: %s", n+1, killed.Name())
	}
	acked, refused := 0, 0
	for _, l := range loads {
		r := l.End()
		acked, refused = acked+r.Acked, refused+r.Refused
	}
	i.waitSynced()

	stored := make(map[string]int)
	for shard := 1; shard <= 2; shard++ {
		replicas := i.Shard(shard)
		first, second := i.spansOf(replicas[0]), i.spansOf(replicas[1])
		if first != second {
			t.Errorf("replicas of shard %d differ: %d and %d bytes", shard, len(first), len(second))
		}
		for line := range strings.Lines(first) {
			stored[strings.TrimSpace(line)]++
		}
	}
	lost, duplicates := sent.Compare(stored)
	if lost > 0 || duplicates > 0 {
		t.Errorf("%d acknowledged spans are lost, %d are stored more than once", lost, duplicates)
	}
	t.Logf("%d kills: %d spans acknowledged, %d refused, %d stored, %d lost, %d duplicates",
		kills, acked, refused, len(stored), lost, duplicates)
	i.checkViews()
}

// restart restarts a server and waits until it accepts writes.
func (i *installation) restart(n *cluster.Node) {
	i.t.Helper()
	if err := n.Restart(); err != nil {
		i.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(i.t.Context(), 2*time.Minute)
	defer cancel()
	if err := n.WaitReady(ctx); err != nil {
		i.t.Fatal(err)
	}
}

// spansOf returns the ids of the spans of a server, "trace span" in each line, in order.
func (i *installation) spansOf(n *cluster.Node) string {
	return i.ask(n, "SELECT concat(lower(hex(trace_id)), ' ', lower(hex(substring(ids, 1, 8)))) AS line "+
		"FROM tracing.payload_local ORDER BY line")
}

// checkViews checks that the table of spans has the same spans as payload, and that the tables that
// views fill count none of them twice. They may count fewer: if a server is killed between an
// insert and its views, 18.16 recognizes the repeated insert and does not fill the views, because
// it does not have deduplicate_blocks_in_dependent_materialized_views.
func (i *installation) checkViews() {
	i.t.Helper()
	count := func(sql string) (n int) {
		if err := scan(i.ask(i.Node(0), sql), &n); err != nil {
			i.t.Fatal(err)
		}
		return n
	}
	payload := count("SELECT count() FROM tracing.payload")
	if n := count("SELECT count() FROM tracing.spans"); n != payload {
		i.t.Errorf("spans has %d spans, payload has %d", n, payload)
	}
	for _, table := range []string{"bounds", "minutes", "hours"} {
		n := count("SELECT sum(spans) FROM tracing." + table)
		if n > payload {
			i.t.Errorf("%s counts %d spans, payload has %d", table, n, payload)
		}
		i.t.Logf("%s counts %d of %d spans", table, n, payload)
	}
}
