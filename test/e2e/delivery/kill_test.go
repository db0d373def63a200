package delivery_test

import (
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/harness"
)

// TestKill kills the program under load and restarts it with the same data directory, several
// times. After each restart every acknowledged span is found exactly once, and no span is found
// that was not sent. Rounds differ in the time of the kill and in the size of the memtable. `make
// soak` runs many rounds.
func TestKill(t *testing.T) {
	rounds, seed := soak.Rounds(t, 5, 2), soak.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	for round := range rounds {
		l := harness.NewSentSpans()
		settings := []string{"exporters::disk::reserve=0",
			"exporters::disk::memtable::max_spans=" + []string{"1000", "4000", "500000"}[rnd.IntN(3)]}
		harness.LoadAndKill(t, harness.RunAllInOne(t, dir, settings...), rnd, l)

		p := harness.RunAllInOne(t, dir, settings...)
		acked, found := l.Check(t, p.QueryURL())
		if t.Failed() {
			t.Fatalf("round %d failed with TRACING_SEED=%d", round, seed)
		}
		if round%2 == 0 {
			p.Terminate()
		} else {
			p.Kill()
		}
		t.Logf("round %d: %d spans acknowledged, %d found", round, acked, found)
	}
	http.DefaultClient.CloseIdleConnections()
}
