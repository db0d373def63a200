package delivery_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
	"github.com/tracing-backend/tracing/test/harness"
)

// TestServerKilled kills ClickHouse under load, again and again, and cuts connections after inserts
// that it has executed. Every span that the collector has acknowledged is stored exactly once.
func TestServerKilled(t *testing.T) { eachProtocol(t, testServerKilled) }

func testServerKilled(t *testing.T, protocol string) {
	rounds, seed := soak.Rounds(t, 20, 2), soak.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	s := engine.Start(t, engine.Options{})
	collector := runCollector(t, s, protocol, t.TempDir())
	sent := harness.NewSentSpans()
	load := harness.StartSteadyLoad(t, collector.OTLPGRPC(), seed, sent)
	for round := range rounds {
		s.Inject(t, engine.Fault{Match: `^INSERT\s+INTO\s+\S*(spans|payload)`, Count: 1 + rnd.IntN(3), Cut: true, After: true})
		load.Await(20 * (round + 1))
		time.Sleep(time.Duration(rnd.IntN(400)) * time.Millisecond) // the time of the kill is random
		s.Kill()
		time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
		s.Restart(t)
	}
	load.End()
	harness.AwaitQueue(t, collector, 0)
	collector.Terminate()
	collector.Accounting()
	checkStored(t, s, sent)
	if t.Failed() {
		t.Logf("TRACING_SEED=%d", seed)
	}
}

// TestCollectorKilled kills the collector under load, again and again. Every span that one of the
// processes has acknowledged is stored exactly once.
func TestCollectorKilled(t *testing.T) { eachProtocol(t, testCollectorKilled) }

func testCollectorKilled(t *testing.T, protocol string) {
	rounds, seed := soak.Rounds(t, 10, 2), soak.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	s := engine.Start(t, engine.Options{})
	sent, dir := harness.NewSentSpans(), t.TempDir()
	for range rounds {
		harness.LoadAndKill(t, runCollector(t, s, protocol, dir), rnd, sent)
	}
	collector := runCollector(t, s, protocol, dir)
	harness.AwaitQueue(t, collector, 0)
	collector.Terminate()
	collector.Accounting()
	checkStored(t, s, sent)
	if t.Failed() {
		t.Logf("TRACING_SEED=%d", seed)
	}
}
