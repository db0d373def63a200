package delivery_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

// Environment variables of TestKill: how often, and from which seed.
const (
	killRounds = "TRACING_KILLS"
	killSeed   = "TRACING_KILL_SEED"
)

// TestKill kills the real program under load, again and again on one folder, and starts it again: every acknowledged span is readable, each
// once, and nothing appears that was not sent. Rounds differ in when they are killed and in how often memtables become segments.
func TestKill(t *testing.T) {
	rounds, seed := harness.FromEnv(t, killRounds, 10), harness.FromEnv(t, killSeed, uint64(time.Now().UnixNano()))
	t.Logf("%s=%d", killSeed, seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	for round := range rounds {
		l := harness.NewLedger()
		memtable := []string{"1000", "4000", "500000"}[rnd.IntN(3)]
		loadAndKill(t, dir, memtable, rnd, l)

		began := time.Now()
		p := startOnDisk(t, dir, memtable)
		p.Await("msg", "Health Check state change", "status", "ready")
		ready := time.Since(began)
		acked, found := l.Check(t, "http://"+p.Address("query", "http"))
		if t.Failed() {
			t.Fatalf("round %d, %s=%d", round, killSeed, seed)
		}
		if round%2 == 0 {
			p.Terminate()
		} else {
			p.Kill()
		}
		t.Logf("round %d: %d spans acknowledged, %d found, ready after %v", round, acked, found, ready.Round(time.Millisecond))
	}
	http.DefaultClient.CloseIdleConnections()
}

func startOnDisk(t *testing.T, dir, maxSpans string) *harness.Process {
	t.Helper()
	args := []string{"all-in-one", "--set", "service::data_dir=" + dir, "--set", "exporters::disk::memtable::max_spans=" + maxSpans,
		"--set", "exporters::disk::reserve=0"}
	for _, s := range harness.FreePorts {
		args = append(args, "--set", s)
	}
	return harness.Run(t, args...)
}

func loadAndKill(t *testing.T, dir, maxSpans string, rnd *rand.Rand, l *harness.Ledger) {
	t.Helper()
	p := startOnDisk(t, dir, maxSpans)
	target := p.Address("otlp", "protocols.grpc")
	p.Await("msg", "Health Check state change", "status", "ready")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first := make(chan struct{})
	var once sync.Once
	done := make(chan error, 1)
	d := bench.New(rnd.Uint64(), time.Now())
	go func() {
		_, err := load.Run(ctx, load.Options{Target: target, Connections: 2, InFlight: 4, Acked: func(r bench.Request) {
			l.Note(t, r.Body, true)
			once.Do(func() { close(first) })
		}}, func(yield func(bench.Request) bool) {
			for r := range d.Requests(15_000, 20+rnd.IntN(100)) {
				l.Note(t, r.Body, false)
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
		t.Fatal(fmt.Errorf("nothing was acknowledged: %w", ctx.Err()))
	}
	time.Sleep(time.Duration(rnd.IntN(400)) * time.Millisecond) // the moment of the kill is what is random here
	p.Kill()
	cancel()
	<-done
}
