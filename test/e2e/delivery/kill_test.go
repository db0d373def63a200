package delivery_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
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
		loadAndKill(t, harness.RunAllInOne(t, dir, settings...), rnd, l)

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

// loadAndKill sends spans to a process and kills it at a random time after the first
// acknowledgement.
func loadAndKill(t *testing.T, p *harness.Process, rnd *rand.Rand, l *harness.SentSpans) {
	t.Helper()
	target := p.OTLPGRPC()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first := make(chan struct{})
	var once sync.Once
	done := make(chan error, 1)
	d := bench.New(rnd.Uint64(), time.Now())
	go func() {
		_, err := load.Run(ctx, load.Options{Target: target, Connections: 2, InFlight: 4, Acked: func(r bench.Request) {
			l.Record(t, r.Body, true)
			once.Do(func() { close(first) })
		}}, func(yield func(bench.Request) bool) {
			for r := range d.Requests(15_000, 20+rnd.IntN(100)) {
				l.Record(t, r.Body, false)
				if !yield(r) {
					return
				}
			}
		})
		done <- err
	}()
	select {
	case <-first:
	case <-ctx.Done():
		t.Fatalf("no request was acknowledged: %v", ctx.Err())
	}
	time.Sleep(time.Duration(rnd.IntN(400)) * time.Millisecond) // the time of the kill is random
	p.Kill()
	cancel()
	<-done
}
