package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// joinedHop records the requests that it accepts, each as its tenant and the services of its spans.
type joinedHop struct {
	mu       sync.Mutex
	accept   func(*otlpdata.Batch) error // nil accepts everything; called with mu held
	requests []string
	spans    map[string]int // by service
	calls    int
}

func (h *joinedHop) Send(_ context.Context, b *otlpdata.Batch) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	if h.accept != nil {
		if err := h.accept(b); err != nil {
			return err
		}
	}
	request := b.Meta().Tenant + ":"
	for _, s := range b.Services() {
		request += fmt.Sprint(" ", s.Service, "x", s.Spans)
		if h.spans == nil {
			h.spans = map[string]int{}
		}
		h.spans[s.Service] += s.Spans
	}
	h.requests = append(h.requests, request)
	return nil
}

func (h *joinedHop) sent() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// consumeAll queues batches and fails the test if one is refused.
func consumeAll(t *testing.T, source pipeline.Consumer, batches ...*otlpdata.Batch) {
	t.Helper()
	for _, b := range batches {
		if err := source.Consume(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// Batches of one tenant are joined until the size or the time is reached.
func TestQueueJoins(t *testing.T) {
	for _, storage := range []string{"", "storage: disk, "} {
		synctest.Test(t, func(t *testing.T) {
			h := &joinedHop{}
			p, source := hosttest.StartNetOn(t, vfstest.NewMem(),
				"sending_queue: {"+storage+"num_consumers: 1, batch: {min_size: 3, flush_timeout: 10s}}", "data_dir: data", h.Send)
			for i := range 4 {
				consumeAll(t, source, hosttest.BatchFor("a", fmt.Sprint("a", i)), hosttest.BatchFor("b", fmt.Sprint("b", i)))
			}
			synctest.Wait()
			want := []string{"a: a0x1 a1x1 a2x1", "b: b0x1 b1x1 b2x1"}
			if got := h.sent(); !slices.Equal(got, want) {
				t.Errorf("%q at once, want %q", got, want)
			}
			p.CheckNet(t, "dropped:0 in:8 queued:2 sent:6")
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if got := h.sent(); !slices.Equal(got, append(want, "a: a3x1", "b: b3x1")) {
				t.Errorf("%q after the timeout", got)
			}
			if err := p.End(); err != nil {
				t.Error(err)
			}
			p.CheckNet(t, "dropped:0 in:8 queued:0 sent:8")
		})
	}
}

// A queue that is too small for min_size is sent when it is almost full, or when a batch does not
// fit: its callers do not wait until flush_timeout, and are not refused.
func TestSmallQueueDoesNotWaitForMore(t *testing.T) {
	for _, settings := range []string{"queue_size: 4", "queue_size: 4, overflow: block", "queue_size: 4, storage: disk",
		"sizer: bytes, queue_size: 60, overflow: block"} {
		synctest.Test(t, func(t *testing.T) {
			h := &joinedHop{}
			p, source := hosttest.StartNetOn(t, vfstest.NewMem(),
				"sending_queue: {"+settings+", batch: {sizer: items, min_size: 100, flush_timeout: 1h}}", "data_dir: data", h.Send)
			start := time.Now()
			for range 40 {
				consumeAll(t, source, hosttest.OneSpan("a"))
				synctest.Wait()
			}
			if sent := len(h.sent()); sent < 8 || sent > 20 || time.Since(start) != 0 {
				t.Errorf("%s: %d requests for 40 batches after %s", settings, sent, time.Since(start))
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			p.CheckNet(t, "in:40 queued:0 sent:40")
			if err := p.End(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Requests are not larger than the maximum: batches are sent in parts, and each span once.
func TestQueueSplits(t *testing.T) {
	for _, sizes := range []string{"min_size: 10, max_size: 10", "sizer: bytes, min_size: 100, max_size: 250"} {
		synctest.Test(t, func(t *testing.T) {
			h := &joinedHop{accept: func(b *otlpdata.Batch) error {
				if strings.Contains(sizes, "bytes") && b.Size() > 250 || !strings.Contains(sizes, "bytes") && b.Len() > 10 {
					t.Errorf("%s: request of %d spans and %d bytes", sizes, b.Len(), b.Size())
				}
				return nil
			}}
			p, source := hosttest.StartNet(t, "sending_queue: {num_consumers: 3, batch: {"+sizes+"}}", h.Send)
			consumeAll(t, source, hosttest.Spans(2, "small"), hosttest.Spans(24, "large"), hosttest.Spans(8, "last"))
			if err := p.End(); err != nil {
				t.Error(err)
			}
			if h.spans["small"] != 3 || h.spans["large"] != 25 || h.spans["last"] != 9 {
				t.Errorf("%s: sent %v", sizes, h.spans)
			}
			p.CheckNet(t, "dropped:0 in:37 queued:0 sent:37")
		})
	}
}

// If a joined request is refused, only the batches that cause it are dropped.
func TestQueueJoinsWithInvalidBatch(t *testing.T) {
	for _, storage := range []string{"", "storage: disk, "} {
		synctest.Test(t, func(t *testing.T) {
			h := &joinedHop{accept: func(b *otlpdata.Batch) error {
				if slices.ContainsFunc(b.Services(), func(s otlpdata.ServiceCount) bool { return s.Service == "s3" }) {
					return pipeline.Permanent(errors.New("poison"))
				}
				return nil
			}}
			p, source := hosttest.StartNetOn(t, vfstest.NewMem(), "sending_queue: {"+storage+"batch: {min_size: 8}}", "data_dir: data", h.Send)
			for i := range 8 {
				consumeAll(t, source, hosttest.BatchFor("", fmt.Sprint("s", i)))
			}
			synctest.Wait()
			if err := p.End(); err != nil {
				t.Error(err)
			}
			if got, want := h.sent(), []string{": s0x1 s1x1", ": s2x1", ": s4x1 s5x1 s6x1 s7x1"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			p.CheckNet(t, "dropped:1 in:8 queued:0 sent:7")
		})
	}
}

// Spans that were accepted before a request was given up are counted as sent, each once.
func TestQueueJoinsWithProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, source := hosttest.StartNet(t, "retry_on_failure: {initial_interval: 1s, max_elapsed_time: 2s}, sending_queue: {batch: {min_size: 9}}",
			func(ctx context.Context, _ *otlpdata.Batch) error {
				pipeline.ProgressOf(ctx).Taken = 5
				return errors.New("down")
			})
		consumeAll(t, source, hosttest.Spans(2, "a"), hosttest.Spans(2, "b"), hosttest.Spans(2, "c"))
		if err := p.End(); err != nil {
			t.Error(err)
		}
		p.CheckNet(t, "dropped:4 in:9 queued:0 retries:1 sent:5")
	})
}

// When the program stops, a queue in memory sends what is being joined, and a queue on disk keeps
// it, also if only a part of a batch was sent.
func TestQueueStopsWhileJoining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &joinedHop{}
		p, source := hosttest.StartNet(t, "sending_queue: {batch: {min_size: 100, flush_timeout: 1h}}", h.Send)
		consumeAll(t, source, hosttest.BatchFor("", "a"), hosttest.BatchFor("", "b"))
		synctest.Wait()
		start := time.Now()
		if err := p.End(); err != nil || time.Since(start) > 0 {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if got := h.sent(); len(got) != 1 || got[0] != ": ax1 bx1" {
			t.Errorf("%q", got)
		}
		p.CheckNet(t, "dropped:0 in:2 queued:0 sent:2")
	})
	synctest.Test(t, func(t *testing.T) {
		mem := vfstest.NewMem()
		const settings = "sending_queue: {storage: disk, num_consumers: 1, batch: {min_size: 10, max_size: 10, flush_timeout: 1h}}"
		h := &joinedHop{}
		h.accept = func(*otlpdata.Batch) error {
			if h.calls > 1 {
				return errors.New("away")
			}
			return nil
		}
		p, source := hosttest.StartNetOn(t, mem, settings, "data_dir: data", h.Send)
		consumeAll(t, source, hosttest.Spans(24, "large"), hosttest.BatchFor("", "small"))
		synctest.Wait()
		if err := p.End(); err != nil {
			t.Error(err)
		}
		p.CheckNet(t, "dropped:0 in:26 queued:26 sent:0")
		again := &joinedHop{}
		p, source = hosttest.StartNetOn(t, mem, settings, "data_dir: data", again.Send)
		consumeAll(t, source, hosttest.Spans(3, "new")) // completes the last request
		synctest.Wait()
		if again.spans["large"] != 25 || again.spans["small"] != 1 {
			t.Errorf("resent: %v", again.spans)
		}
		if err := p.End(); err != nil {
			t.Error(err)
		}
		p.CheckNet(t, "dropped:0 in:30 queued:0 sent:30")
	})
}

// Acknowledged batches that were being joined are sent by the next process after a kill.
func TestQueueIsKilledWhileJoining(t *testing.T) {
	mem := vfstest.NewMem()
	const settings = "sending_queue: {storage: disk, batch: {min_size: 50, flush_timeout: 1h}}"
	p, source := hosttest.StartNetOn(t, mem, settings, "data_dir: data", (&joinedHop{}).Send)
	for i := range 49 {
		consumeAll(t, source, hosttest.BatchFor("", fmt.Sprint("s", i)))
	}
	p.CheckNet(t, "dropped:0 in:49 queued:49 sent:0")
	killed := mem.Crash(rand.New(rand.NewPCG(1, 2)))
	p.End() //nolint:errcheck // its files are gone
	h := &joinedHop{}
	p, source = hosttest.StartNetOn(t, killed, settings, "data_dir: data", h.Send)
	consumeAll(t, source, hosttest.BatchFor("", "s49"))
	for start := time.Now(); p.NetCounts(t)["sent"] != 50 && time.Since(start) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	if err := p.End(); err != nil {
		t.Error(err)
	}
	p.CheckNet(t, "dropped:0 in:50 queued:0 sent:50")
	if len(h.spans) != 50 || h.calls != 1 {
		t.Errorf("%d services in %d requests", len(h.spans), h.calls)
	}
}

// With random sizes, tenants and refusals, every span is accepted once or counted as dropped.
func TestQueueJoinsUnderLoad(t *testing.T) {
	for _, storage := range []string{"", "storage: disk, "} {
		rnd, ofHop := rand.New(rand.NewPCG(3, 4)), rand.New(rand.NewPCG(5, 6))
		h := &joinedHop{accept: func(*otlpdata.Batch) error {
			switch ofHop.IntN(10) {
			case 0:
				return errors.New("busy")
			case 1:
				return pipeline.Permanent(errors.New("invalid"))
			}
			return nil
		}}
		p, source := hosttest.StartNetOn(t, vfstest.NewMem(), "retry_on_failure: {initial_interval: 1ms, max_interval: 1ms}, sending_queue: {"+
			storage+"num_consumers: 4, batch: {min_size: 20, max_size: 30, flush_timeout: 1ms}}", "data_dir: data", h.Send)
		var callers sync.WaitGroup
		total := 0
		for c := range 4 {
			sizes := make([]int, 50)
			for i := range sizes {
				sizes[i] = rnd.IntN(60)
				total += sizes[i] + 1
			}
			callers.Go(func() {
				for i, n := range sizes {
					if err := source.Consume(t.Context(), hosttest.Spans(n, fmt.Sprint("s", c, " ", i))); err != nil {
						t.Error(err)
					}
				}
			})
		}
		callers.Wait()
		for start := time.Now(); p.NetCounts(t)["queued"] != 0 && time.Since(start) < 10*time.Second; {
			time.Sleep(time.Millisecond)
		}
		if err := p.End(); err != nil {
			t.Error(err)
		}
		accepted := 0
		for _, n := range h.spans {
			accepted += n
		}
		counts := p.NetCounts(t)
		if int(counts["in"]) != total || int(counts["sent"]) != accepted || int(counts["sent"]+counts["dropped"]) != total || accepted == 0 {
			t.Errorf("%s: %d spans, %d accepted, counted %v", storage, total, accepted, counts)
		}
	}
}
