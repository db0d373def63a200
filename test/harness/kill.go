package harness

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
)

// LoadAndKill sends spans to a process, records them in l, and kills the process at a random time
// after the first acknowledgement. It sends no request twice.
func LoadAndKill(t *testing.T, p *Process, rnd *rand.Rand, l *SentSpans) {
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
