package batch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request returns a batch of n spans with the given name.
func request(t testing.TB, tenant, name string, n int) *otlpdata.Batch {
	t.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "s")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for range n {
		s := spans.AppendEmpty()
		s.SetName(name)
	}
	enc, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	b, err := otlpdata.FromOTLP(enc, otlpdata.Meta{Tenant: tenant}, otlpdata.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// names returns the number of spans of a batch by name.
func names(b *otlpdata.Batch) map[string]int {
	got := map[string]int{}
	td, err := b.Traces()
	if err != nil {
		panic(err)
	}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				got[s.Name()]++
			}
		}
	}
	return got
}

// sink is a consumer that records batches and returns the result of consume.
type sink struct {
	mu      sync.Mutex
	got     []*otlpdata.Batch
	consume func(ctx context.Context, b *otlpdata.Batch) error // nil accepts all batches
}

func (s *sink) Consume(ctx context.Context, b *otlpdata.Batch) error {
	s.mu.Lock()
	s.got = append(s.got, b)
	s.mu.Unlock()
	if s.consume == nil {
		return nil
	}
	return s.consume(ctx, b)
}

func build(t testing.TB, next pipeline.Consumer, change func(*Config)) *batcher {
	t.Helper()
	c := defaults()
	c.Concurrency = 1
	if change != nil {
		change(&c)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	p, err := newBatch(pipeline.Settings{}, c, next)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// An idle processor passes on the same batch without delay.
func TestIdlePassesThrough(t *testing.T) {
	s := &sink{}
	p := build(t, s, nil)
	b := request(t, "", "a", 2)
	if err := p.Consume(t.Context(), b); err != nil || len(s.got) != 1 || s.got[0] != b {
		t.Fatalf("%v %v", err, s.got)
	}
}

// Calls that arrive during a send are joined to one request per tenant.
func TestCallersAreJoinedByTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		first := true
		s := &sink{}
		s.consume = func(context.Context, *otlpdata.Batch) error {
			if first {
				first = false
				<-release
			}
			return nil
		}
		p := build(t, s, nil)
		var wg sync.WaitGroup
		consume := func(tenant, name string) {
			wg.Go(func() {
				if err := p.Consume(t.Context(), request(t, tenant, name, 1)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			synctest.Wait()
		}
		consume("", "running")
		for i := range 3 {
			consume("", fmt.Sprint("a", i))
			consume("other", fmt.Sprint("b", i))
		}
		close(release)
		wg.Wait()
		if len(s.got) != 3 {
			t.Fatalf("%d sends", len(s.got))
		}
		for i, want := range []string{"map[running:1]", "map[a0:1 a1:1 a2:1]", "map[b0:1 b1:1 b2:1]"} {
			if got := fmt.Sprint(names(s.got[i])); got != want {
				t.Errorf("send %d: %s, want %s", i, got, want)
			}
		}
	})
}

// A permanent error is returned only to the caller with the invalid spans.
func TestPermanentErrorIsIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		invalid := pipeline.Permanent(errors.New("invalid"))
		s := &sink{}
		s.consume = func(_ context.Context, b *otlpdata.Batch) error {
			time.Sleep(time.Second)
			if names(b)["invalid"] > 0 {
				return invalid
			}
			return nil
		}
		p := build(t, s, nil)
		got := map[string]error{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, name := range []string{"first", "good", "invalid", "fine"} {
			wg.Go(func() {
				err := p.Consume(t.Context(), request(t, "", name, 1))
				mu.Lock()
				got[name] = err
				mu.Unlock()
			})
			synctest.Wait()
		}
		wg.Wait()
		if got["first"] != nil || got["good"] != nil || got["fine"] != nil || got["invalid"] != invalid {
			t.Errorf("%v", got)
		}
		if len(s.got) != 1+1+1+1+2 { // first, all joined, good, invalid and fine joined, both separately
			t.Errorf("%d sends", len(s.got))
		}
	})
}

// Other errors are returned to all callers, and nothing is sent twice.
func TestOtherErrorsReachAllCallers(t *testing.T) {
	for _, fail := range []error{errors.New("down"), pipeline.Overloaded(errors.New("busy"), time.Minute)} {
		synctest.Test(t, func(t *testing.T) {
			s := &sink{consume: func(context.Context, *otlpdata.Batch) error {
				time.Sleep(time.Second)
				return fail
			}}
			p := build(t, s, nil)
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					if err := p.Consume(t.Context(), request(t, "", "x", 1)); err != fail {
						t.Errorf("%v", err)
					}
				})
				synctest.Wait()
			}
			wg.Wait()
			if len(s.got) != 2 {
				t.Errorf("%d sends", len(s.got))
			}
		})
	}
}

// The rejected spans of a partial success are distributed over the callers.
func TestPartialSuccessIsDistributed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		s := &sink{consume: func(context.Context, *otlpdata.Batch) error {
			time.Sleep(time.Second)
			if calls++; calls == 1 {
				return nil
			}
			return &pipeline.Partial{Rejected: 3, Err: errors.New("too old")}
		}}
		p := build(t, s, nil)
		var rejected atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				err := p.Consume(t.Context(), request(t, "", "x", 2))
				var partial *pipeline.Partial
				if errors.As(err, &partial) {
					if partial.Rejected > 2 || !strings.Contains(err.Error(), "too old") {
						t.Errorf("%v", err)
					}
					rejected.Add(int64(partial.Rejected))
				} else if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if rejected.Load() != 3 {
			t.Errorf("%d rejected spans reported, want 3", rejected.Load())
		}
	})
}

// Joined requests stay within the limits. A larger single request is sent alone.
func TestSizeLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{consume: func(context.Context, *otlpdata.Batch) error {
			time.Sleep(time.Second)
			return nil
		}}
		p := build(t, s, func(c *Config) { c.SendBatchSize, c.SendBatchMaxSize = 5, 5 })
		var wg sync.WaitGroup
		for _, n := range []int{1, 2, 3, 1, 9, 4, 1} {
			wg.Go(func() {
				if err := p.Consume(t.Context(), request(t, "", "x", n)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		var sizes []int
		for _, b := range s.got {
			sizes = append(sizes, b.Len())
		}
		if fmt.Sprint(sizes) != "[1 5 1 9 5]" {
			t.Errorf("%v", sizes)
		}
	})
}

// Canceling a waiting caller removes its spans but not the spans of others.
func TestCanceledCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		s.consume = func(ctx context.Context, _ *otlpdata.Batch) error {
			select {
			case <-time.After(time.Minute):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		p := build(t, s, nil)
		leaving, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		consume := func(ctx context.Context, name string, want error) {
			wg.Go(func() {
				if err := p.Consume(ctx, request(t, "", name, 1)); !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", name, err, want)
				}
			})
			synctest.Wait()
		}
		consume(t.Context(), "running", nil)
		consume(t.Context(), "stays", nil)
		consume(leaving, "leaves", context.Canceled)
		leave()
		wg.Wait()
		if len(s.got) != 2 || fmt.Sprint(names(s.got[1])) != "map[stays:1]" {
			t.Errorf("%d sends", len(s.got))
		}

		// When all callers of a send have left, it is canceled.
		leaving, leave = context.WithCancel(t.Context())
		consume(t.Context(), "running", nil)
		consume(leaving, "a", context.Canceled)
		consume(leaving, "b", context.Canceled)
		time.Sleep(90 * time.Second) // a and b are being sent
		leave()
		wg.Wait()
		synctest.Wait()
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// blockUntilCanceled is a consumer that blocks until its context ends.
func blockUntilCanceled(ctx context.Context, _ *otlpdata.Batch) error {
	<-ctx.Done()
	return ctx.Err()
}

// If the outcome and the end of the context are both ready, Consume returns the outcome: the spans
// may be stored.
func TestOutcomeIsPreferredOverCancellation(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	p := build(t, &sink{}, nil)
	for range 50 { // select chooses at random
		c := &call{batch: request(t, "", "x", 1), caller: ended, outcome: make(chan error, 1)}
		g := newGroup(p.ctx, []*call{c})
		g.send(p.next)
		if err := p.await(ended, c); err != nil {
			t.Fatalf("stored, but got %v", err)
		}
	}
}

// The context of a joined send has the latest deadline of its callers, and none if one caller has
// none: the next Consumer can tell which retries come too late for all of them.
func TestDeadlineOfGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var deadlines []time.Duration
		start := time.Now()
		s := &sink{consume: func(ctx context.Context, _ *otlpdata.Batch) error {
			left := time.Duration(-1)
			if d, ok := ctx.Deadline(); ok {
				left = d.Sub(start)
			}
			deadlines = append(deadlines, left)
			<-ctx.Done()
			return ctx.Err()
		}}
		p := build(t, s, nil)
		cause := errors.New("waited long enough")
		var wg sync.WaitGroup
		consume := func(limit time.Duration) {
			ctx, cancel := context.WithCancel(t.Context())
			if limit > 0 {
				ctx, cancel = context.WithTimeoutCause(t.Context(), limit, cause)
			}
			wg.Go(func() {
				defer cancel()
				time.AfterFunc(time.Hour, cancel)
				err := p.Consume(ctx, request(t, "", "x", 1))
				if limit > time.Second && !errors.Is(err, cause) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v, want the cause of the end of the context", err)
				}
			})
			synctest.Wait()
		}
		consume(time.Second) // alone
		consume(5 * time.Second)
		consume(7 * time.Second)
		time.Sleep(6 * time.Second)
		consume(time.Second)
		consume(0)
		wg.Wait()
		if got := fmt.Sprint(deadlines); got != "[1s 7s -1ns]" {
			t.Errorf("deadlines %s", got)
		}
	})
}

// Stop also waits for callers that are queued behind a send of a single request.
func TestStopWaitsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{consume: func(context.Context, *otlpdata.Batch) error { time.Sleep(time.Second); return nil }}
		p := build(t, s, nil)
		var succeeded atomic.Int64
		for range 2 {
			go func() {
				if p.Consume(t.Context(), request(t, "", "x", 1)) == nil {
					succeeded.Add(1)
				}
			}()
			synctest.Wait()
		}
		start := time.Now()
		err := p.Stop(t.Context())
		synctest.Wait()
		if err != nil || succeeded.Load() != 2 || time.Since(start) != 2*time.Second {
			t.Errorf("%v, %d callers succeeded, after %s", err, succeeded.Load(), time.Since(start))
		}
	})
}

// At the deadline, Stop cancels joined sends, and their callers get an error.
func TestStopAtDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{consume: blockUntilCanceled}
		p := build(t, s, func(c *Config) { c.Timeout = pipeline.Duration(time.Second) })
		outcome := make(chan error, 1)
		go func() { outcome <- p.Consume(context.Background(), request(t, "", "x", 1)) }()
		time.Sleep(2 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if err := <-outcome; !errors.Is(err, context.Canceled) {
			t.Errorf("caller got %v", err)
		}
	})
}

// Stop sends waiting requests.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		s.consume = func(context.Context, *otlpdata.Batch) error { time.Sleep(time.Minute); return nil }
		p := build(t, s, func(c *Config) { c.Timeout, c.Concurrency = pipeline.Duration(time.Hour), 2 })
		start := time.Now()
		done := make(chan error, 2)
		for range 2 {
			go func() { done <- p.Consume(t.Context(), request(t, "", "x", 1)) }()
			synctest.Wait()
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := <-done; err != nil || len(s.got) != 2 || time.Since(start) != time.Minute {
				t.Errorf("%v, %d sends after %s", err, len(s.got), time.Since(start))
			}
		}
	})
}

// With random outcomes, every caller gets the outcome of its own spans.
func TestRandomOutcomes(t *testing.T) {
	const callers, rounds = 64, 20
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		stored := map[string]int{}
		rng := rand.New(rand.NewPCG(seed, 1))
		s := &sink{}
		s.consume = func(_ context.Context, b *otlpdata.Batch) error {
			mu.Lock()
			wait, outcome := time.Duration(rng.IntN(1000))*time.Millisecond, rng.IntN(3)
			mu.Unlock()
			time.Sleep(wait)
			mu.Lock()
			defer mu.Unlock()
			in := names(b)
			for name := range in {
				if strings.HasPrefix(name, "invalid") {
					return pipeline.Permanent(errors.New("invalid"))
				}
			}
			if outcome == 0 {
				return errors.New("down")
			}
			for name, n := range in {
				stored[name] += n
			}
			return nil
		}
		p := build(t, s, func(c *Config) { c.Concurrency = 4 })
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for r := range rounds {
					name := fmt.Sprintf("c%d.%d", c, r)
					if c%16 == 0 {
						name = "invalid" + name
					}
					err := p.Consume(t.Context(), request(t, fmt.Sprint(c%3), name, 1+c%4))
					mu.Lock()
					n := stored[name]
					mu.Unlock()
					if err == nil && n != 1+c%4 || err != nil && n != 0 {
						t.Errorf("%s: %v, but %d spans stored", name, err, n)
					}
					if c%16 == 0 && err == nil {
						t.Errorf("%s was accepted", name)
					}
				}
			})
		}
		wg.Wait()
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestValidate(t *testing.T) {
	c := Config{MinInterval: pipeline.Duration(time.Minute), SendBatchSize: 0, SendBatchMaxSize: -1, Concurrency: -1}
	if err := c.Validate(); err == nil || strings.Count(err.Error(), "\n") != 4 {
		t.Errorf("%v", err)
	}
}

// BenchmarkBatch measures the cost of the processor per request.
func BenchmarkBatch(b *testing.B) {
	s := consumer(func(context.Context, *otlpdata.Batch) error { return nil })
	r := request(b, "", "x", 512)
	r.Size()
	for _, c := range []struct {
		name string
		next pipeline.Consumer
	}{{"without", s}, {"with", build(b, s, func(c *Config) { c.Concurrency = runtime.GOMAXPROCS(0) })}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := c.next.Consume(b.Context(), r); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

type consumer func(context.Context, *otlpdata.Batch) error

func (c consumer) Consume(ctx context.Context, b *otlpdata.Batch) error { return c(ctx, b) }
