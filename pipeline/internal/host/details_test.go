package host_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// equation formats a balance.
func equation(b status.Balance) string {
	return fmt.Sprintf("%d = %d + %d + %d + %d + %d + %d, %s", b.Received, b.Stored, b.Sent, b.Refused, b.Dropped, b.Queued, b.Held, b.Verdict)
}

// The equation of a pipeline holds while spans are held, and when they were dropped and stored.
func TestDetailsOfHeldSpans(t *testing.T) {
	s := startShelves(t, "sieve, shelf", time.Minute)
	s.send(t, hosttest.Spans(9, "a"))
	d := s.Details(t.Context())
	if len(d.Balances) != 1 || d.Balances[0].Received != 10 || d.Balances[0].Held == 0 || d.Balances[0].Verdict != status.Balanced {
		t.Errorf("%+v", d.Balances)
	}
	held := d.Balances[0].Held
	s.shelf.Release(t.Context())
	if b := s.Details(t.Context()).Balances[0]; b.Stored != held || b.Held != 0 || b.Verdict != status.Balanced {
		t.Errorf("after the release of %d: %s", held, equation(b))
	}
	var processors []string
	for _, c := range s.Components() {
		if c.Kind == pipeline.KindProcessor {
			processors = append(processors, fmt.Sprint(c.ID, c.Pipelines))
		}
	}
	if len(processors) != 2 {
		t.Errorf("running processors %q", processors)
	}
}

// Queues are shown with their settings, and their spans are part of the equation.
func TestDetailsOfQueues(t *testing.T) {
	away := hosttest.NewNextHop(true)
	h := startHops(t, "to: away, "+fast+", sending_queue: {queue_size: 500, sizer: items, overflow: block}",
		map[string]*hosttest.NextHop{"away": away})
	h.send(t, "a")
	d := h.Details(t.Context())
	if got := equation(d.Balances[0]); got != "1 = 0 + 0 + 0 + 0 + 1 + 0, balanced" {
		t.Error(got)
	}
	if q := d.Queues; len(q) != 1 || q[0].Spans != 1 || q[0].MaxSize != 500 || q[0].Sizer != "items" || q[0].Overflow != "block" ||
		q[0].Storage != "memory" || q[0].MaxBytes != 64<<20 || q[0].Component != "net" {
		t.Errorf("queues %+v", q)
	}
	away.SetAway(false)
	away.Await(1)
	if err := h.End(); err != nil {
		t.Fatal(err)
	}
	if got := equation(h.Details(t.Context()).Balances[0]); got != "1 = 0 + 1 + 0 + 0 + 0 + 0, balanced" {
		t.Error(got)
	}
}
