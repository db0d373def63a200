package harness

import (
	"strings"
	"testing"
	"time"
)

// awaitBacklog waits until no more than so many spans are in the sending queue of a process.
func AwaitBacklog(t *testing.T, p *Process, spans float64) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); Queued(t, p) > spans; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%v spans are still queued", Queued(t, p))
		}
	}
}

// queued returns how many spans are in the sending queue of a process.
func Queued(t testing.TB, p *Process) float64 {
	t.Helper()
	for name, v := range Metrics(t, "http://"+p.Address("admin", "http")) {
		if strings.HasPrefix(name, "tracing_queue_spans{") {
			return v
		}
	}
	t.Fatal("there is no metric of the queue")
	return 0
}
