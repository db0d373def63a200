package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Without a queue, the caller waits for the outcome. Temporary errors are retried with growing
// delays.
func TestRetryWithoutQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		p, source := hosttest.StartNet(t, "retry_on_failure: {initial_interval: 1s, multiplier: 2, max_interval: 3s}",
			func(context.Context, *otlpdata.Batch) error {
				at = append(at, time.Since(start))
				if len(at) < 5 {
					return errors.New("down")
				}
				return nil
			})
		if err := source.Consume(t.Context(), hosttest.OneSpan("a")); err != nil {
			t.Error(err)
		}
		if fmt.Sprint(at) != "[0s 1s 3s 6s 9s]" {
			t.Errorf("attempts at %v", at)
		}
		hosttest.Expect(t, p.NetCounts(t), "in:1 retries:4 sent:1")
	})
}

func TestRetryEnds(t *testing.T) {
	overloaded, err := status.New(codes.ResourceExhausted,
		"busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(20 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		settings string
		fail     error
		attempts int
		after    time.Duration
		message  string
	}{
		{"permanent", "", pipeline.Permanent(errors.New("bad")), 1, 0, "bad"},
		{"partial", "", &pipeline.Partial{Rejected: 1, Err: errors.New("some")}, 1, 0, "1 items rejected: some"},
		{"without retry hint", "", status.Error(codes.ResourceExhausted, "quota"), 1, 0, "rpc error: code = ResourceExhausted desc = quota"},
		{"switched off", "retry_on_failure: {enabled: false}", errors.New("down"), 1, 0, "down"},
		{"max_elapsed_time", "retry_on_failure: {max_elapsed_time: 12s}", errors.New("down"), 2, 5 * time.Second, "gave up after 12s: down"},
		{"asked to wait", "retry_on_failure: {max_elapsed_time: 30s}", overloaded.Err(), 2, 20 * time.Second,
			"gave up after 30s: rpc error: code = ResourceExhausted desc = busy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts, start := 0, time.Now()
				p, source := hosttest.StartNet(t, c.settings, func(context.Context, *otlpdata.Batch) error {
					attempts++
					return c.fail
				})
				err := source.Consume(t.Context(), hosttest.OneSpan("a"))
				if err == nil || err.Error() != c.message || attempts != c.attempts || time.Since(start) != c.after {
					t.Errorf("%v after %d attempts and %s", err, attempts, time.Since(start))
				}
				if got := p.NetCounts(t); got["in"] != 1 || got["refused"] != 1 {
					t.Errorf("%v", got)
				}
			})
		})
	}
}

// An attempt ends after the timeout. Retries end when the next one would begin after the deadline
// of the caller.
func TestTimeoutAndCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, _ *otlpdata.Batch) error {
			<-ctx.Done()
			return ctx.Err()
		}
		_, source := hosttest.StartNet(t, "timeout: 2s, retry_on_failure: {enabled: false}", hang)
		start := time.Now()
		err := source.Consume(t.Context(), hosttest.OneSpan("a"))
		if code := pipeline.GRPCStatus(err).Code(); code != codes.Unavailable || time.Since(start) != 2*time.Second ||
			pipeline.IsPermanent(err) {
			t.Errorf("%v (%s) after %s", err, code, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, source = hosttest.StartNet(t, "timeout: 2s", hang)
		start = time.Now()
		if err := source.Consume(ctx, hosttest.OneSpan("a")); err == nil || time.Since(start) != 9*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// With a queue, the batch is acknowledged immediately, and its outcome is counted later.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := make(chan struct{})
		var sent []string
		p, source := hosttest.StartNet(t, "sending_queue: {num_consumers: 1, queue_size: 3}", func(ctx context.Context, b *otlpdata.Batch) error {
			select {
			case <-up:
				sent = append(sent, hosttest.NameOf(b))
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		for _, name := range []string{"a", "b", "c"} {
			if err := source.Consume(t.Context(), hosttest.OneSpan(name)); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		err := source.Consume(t.Context(), hosttest.OneSpan("d"))
		if code, after := pipeline.HTTPStatus(err); code != 429 || after <= 0 {
			t.Errorf("queue full: %v, %d", err, code)
		}
		hosttest.Expect(t, p.NetCounts(t), "in:4 queued:3 refused:1 retries:0 sent:0")
		close(up)
		synctest.Wait()
		hosttest.Expect(t, p.NetCounts(t), "in:4 queued:0 refused:1 retries:0 sent:3")
		if fmt.Sprint(sent) != "[a b c]" {
			t.Errorf("sent %v", sent)
		}
		if !strings.Contains(p.Log.String(), `"acknowledged-spans-are":"net: queued"`) {
			t.Errorf("the log does not have the durability: %s", p.Log)
		}
	})
}

func TestQueueBlocksOnOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, source := hosttest.StartNet(t, "sending_queue: {num_consumers: 1, queue_size: 1, block_on_overflow: true}",
			func(context.Context, *otlpdata.Batch) error {
				time.Sleep(time.Second)
				return nil
			})
		start := time.Now()
		for range 3 {
			if err := source.Consume(t.Context(), hosttest.OneSpan("a")); err != nil {
				t.Error(err)
			}
		}
		if time.Since(start) != 2*time.Second {
			t.Errorf("waited %s", time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if code, _ := pipeline.HTTPStatus(source.Consume(ctx, hosttest.OneSpan("a"))); code != 429 {
			t.Errorf("status %d", code)
		}
		synctest.Wait()
		if got := p.NetCounts(t); got["in"] != got["sent"]+got["refused"]+got["queued"] {
			t.Errorf("%v", got)
		}
	})
}

// The sizer decides what fits. max_bytes applies to every sizer. Batches that can never fit are
// refused permanently.
func TestQueueSizes(t *testing.T) {
	size := hosttest.OneSpan("abcdefgh").Size()
	for _, c := range []struct {
		settings string
		fits     int
	}{
		{fmt.Sprintf("sizer: bytes, queue_size: %d", 3*size+1), 3},
		{"sizer: items, queue_size: 4", 4},
		{"sizer: requests, queue_size: 5", 5},
		{fmt.Sprintf("sizer: requests, queue_size: 5, max_bytes: %d", 2*size), 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, source := hosttest.StartNet(t, "sending_queue: {num_consumers: 1, "+c.settings+"}",
				func(ctx context.Context, _ *otlpdata.Batch) error {
					<-ctx.Done()
					return ctx.Err()
				})
			fits := 0
			for range 10 {
				if source.Consume(t.Context(), hosttest.OneSpan("abcdefgh")) == nil {
					fits++
				}
			}
			if fits != c.fits {
				t.Errorf("%s: %d fit", c.settings, fits)
			}
		})
	}
	_, source := hosttest.StartNet(t, "sending_queue: {sizer: bytes, queue_size: 10}",
		func(context.Context, *otlpdata.Batch) error { return nil })
	if err := source.Consume(t.Context(), hosttest.OneSpan("abcdefgh")); !pipeline.IsPermanent(err) {
		t.Errorf("larger than the queue: %v", err)
	}
}

// A batch that is refused permanently after it was acknowledged is counted, logged, and written to
// a file that can be resent.
func TestDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, source := hosttest.StartNet(t, "sending_queue: {num_consumers: 1}", func(context.Context, *otlpdata.Batch) error {
			return pipeline.Permanent(errors.New("bad spans"))
		})
		b := hosttest.OneSpan("a")
		if err := source.Consume(t.Context(), b); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		hosttest.Expect(t, p.NetCounts(t), "dropped:1 in:1 queued:0 retries:0 sent:0")
		lines := p.Logged(t, "spans were dropped")
		if len(lines) != 1 || lines[0]["error"] != "bad spans" || lines[0]["reason"] != "permanent" || lines[0]["spans"] != 1.0 {
			t.Fatalf("%v", lines)
		}
		file, _ := lines[0]["dead-letter"].(string)
		kept, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		again, err := otlpdata.FromOTLP(kept, otlpdata.Meta{}, otlpdata.Limits{})
		if err != nil || hosttest.NameOf(again) != "a" {
			t.Errorf("%v", err)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".tmp*")); len(left) != 0 {
			t.Errorf("temporary files: %v", left)
		}
	})
}

// Stop sends queued batches. When its context ends, the remaining ones are counted as dropped, and
// the accounting balances.
func TestStopDrainsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, source := hosttest.StartNet(t, "sending_queue: {num_consumers: 2}", func(context.Context, *otlpdata.Batch) error {
			time.Sleep(time.Second)
			return nil
		})
		for range 10 {
			if err := source.Consume(t.Context(), hosttest.OneSpan("a")); err != nil {
				t.Error(err)
			}
		}
		if err := p.End(); err != nil {
			t.Error(err)
		}
		hosttest.Expect(t, p.NetCounts(t), "in:10 queued:0 retries:0 sent:10")
		if err := source.Consume(t.Context(), hosttest.OneSpan("late")); !errors.Is(err, pipeline.ErrStopping) {
			t.Errorf("after the stop: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p, source := hosttest.StartNet(t, "sending_queue: {num_consumers: 2}",
			func(context.Context, *otlpdata.Batch) error { return errors.New("down") })
		for range 10 {
			if err := source.Consume(t.Context(), hosttest.OneSpan("a")); err != nil {
				t.Error(err)
			}
		}
		start := time.Now()
		if err := p.End(); err == nil || !strings.Contains(err.Error(), "dropped 8 queued spans") || time.Since(start) != 30*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if got := p.NetCounts(t); got["dropped"] != 10 || got["queued"] != 0 {
			t.Errorf("%v", got)
		}
		if lines := p.Lines(t, "final accounting of spans"); len(lines) != 1 || lines[0]["balanced"] != true {
			t.Errorf("%v", lines)
		}
	})
}

// With a destination that fails, hangs, refuses permanently or is overloaded at random, the
// accounting is exact at every edge, callers get the true outcome, and a queue loses nothing that
// is not counted.
func TestRandomDestination(t *testing.T) {
	for _, settings := range []string{"", "sending_queue: {num_consumers: 4, sizer: items, queue_size: 50}"} {
		for round := range 20 {
			seed := uint64(time.Now().UnixNano()) + uint64(round)
			synctest.Test(t, func(t *testing.T) { randomDestination(t, settings, seed) })
			if t.Failed() {
				t.Fatalf("settings %q, seed %d", settings, seed)
			}
		}
	}
}

func randomDestination(t *testing.T, settings string, seed uint64) {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 2))
	arrived := map[string]int{}
	send := func(ctx context.Context, b *otlpdata.Batch) error {
		mu.Lock()
		what, wait := rng.IntN(8), time.Duration(rng.IntN(3000))*time.Millisecond
		mu.Unlock()
		time.Sleep(wait)
		switch what {
		case 0:
			return pipeline.Permanent(errors.New("bad"))
		case 1:
			return pipeline.Overloaded(errors.New("busy"), 2*time.Second)
		case 2:
			return errors.New("down")
		case 3:
			<-ctx.Done()
			return ctx.Err()
		case 4:
			panic("bug")
		}
		mu.Lock()
		defer mu.Unlock()
		arrived[hosttest.NameOf(b)]++
		return nil
	}
	p, source := hosttest.StartNet(t, "timeout: 3s, retry_on_failure: {max_elapsed_time: 20s}, "+strings.TrimSuffix(settings, "\n"), send)
	reported := map[string]error{}
	var wg sync.WaitGroup
	for c := range 64 {
		wg.Go(func() {
			for r := range 3 {
				name := fmt.Sprint(c, ".", r)
				err := source.Consume(t.Context(), hosttest.OneSpan(name))
				mu.Lock()
				reported[name] = err
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	p.End() //nolint:errcheck // remaining batches are counted
	got := p.NetCounts(t)
	if got["in"] != 64*3 || got["in"] != got["sent"]+got["refused"]+got["dropped"]+got["queued"] {
		t.Errorf("%v", got)
	}
	if int(got["sent"]) != len(arrived) {
		t.Errorf("%d arrived, %v", len(arrived), got)
	}
	for name, err := range reported {
		if settings == "" && (err == nil) != (arrived[name] == 1) {
			t.Errorf("%s: outcome %v, arrived %d times", name, err, arrived[name])
		}
		if err != nil && arrived[name] > 0 {
			t.Errorf("%s was refused (%v) and arrived", name, err)
		}
	}
}
