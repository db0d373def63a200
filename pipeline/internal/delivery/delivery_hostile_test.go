package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// An absurd delay of a next hop is cut to the maximum or ends the retries.
func TestAbsurdRetryInfo(t *testing.T) {
	asks, err := status.New(codes.Unavailable, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(math.MaxInt64)})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		refuse := func(context.Context, *otlpdata.Batch) error { return asks.Err() }
		_, source := hosttest.StartNet(t, "", refuse)
		start := time.Now()
		if err := source.Consume(t.Context(), hosttest.OneSpan("a")); err == nil || time.Since(start) != 0 {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		attempts := 0
		_, source = hosttest.StartNet(t, "retry_on_failure: {max_elapsed_time: 0}", func(context.Context, *otlpdata.Batch) error {
			if attempts++; attempts > 1 {
				return nil
			}
			return asks.Err()
		})
		if err := source.Consume(t.Context(), hosttest.OneSpan("a")); err != nil || time.Since(start) != 10*time.Minute {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// With an absurd multiplier, delays grow to max_interval and do not overflow.
func TestAbsurdMultiplier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		_, source := hosttest.StartNet(t, "retry_on_failure: {initial_interval: 1s, multiplier: 1e300, max_interval: 1m}",
			func(context.Context, *otlpdata.Batch) error {
				at = append(at, time.Since(start))
				return errors.New("down")
			})
		if err := source.Consume(t.Context(), hosttest.OneSpan("a")); err == nil || !strings.HasPrefix(fmt.Sprint(at), "[0s 1s 1m1s 2m1s") {
			t.Errorf("%v, attempts at %v", err, at)
		}
	})
}

// manySpans returns a batch of n spans. The first one has the given name.
func manySpans(t *testing.T, name string, n int) *otlpdata.Batch {
	t.Helper()
	parts := make([]*otlpdata.Batch, n)
	for i := range parts {
		parts[i] = hosttest.OneSpan(name)
	}
	b, err := otlpdata.Concat(parts...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Small requests do not overtake a large one that waits for capacity. When the large one gives up,
// the requests after it are admitted.
func TestQueueIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		settings := "sending_queue: {num_consumers: 1, sizer: items, queue_size: 4, block_on_overflow: true}"
		p, source := hosttest.StartNet(t, settings, func(_ context.Context, b *otlpdata.Batch) error {
			time.Sleep(time.Second)
			sent = append(sent, hosttest.NameOf(b))
			return nil
		})
		var wg sync.WaitGroup
		put := func(ctx context.Context, name string, n int, ok bool) {
			wg.Go(func() {
				if err := source.Consume(ctx, manySpans(t, name, n)); (err == nil) != ok {
					t.Errorf("%s: %v", name, err)
				}
			})
			synctest.Wait()
		}
		leaving, leave := context.WithCancel(t.Context())
		put(t.Context(), "a", 2, true)
		put(t.Context(), "b", 1, true)
		put(leaving, "leaves", 4, false)
		put(t.Context(), "small", 1, true)
		put(t.Context(), "large", 4, true)
		put(t.Context(), "last", 1, true)
		leave()
		synctest.Wait()
		if got := p.NetCounts(t); got["queued"] != 4 || got["refused"] != 4 {
			t.Errorf("the small batch was not admitted when the one before it gave up: %v", got)
		}
		wg.Wait()
		if err := p.End(); err != nil || fmt.Sprint(sent) != "[a b small large last]" {
			t.Errorf("%v, sent %v", err, sent)
		}
	})
}

// Callers that wait for capacity when the process stops are refused; their batches are not sent.
func TestStopAnswersWaitingCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, source := hosttest.StartNet(t, "sending_queue: {num_consumers: 1, queue_size: 1, block_on_overflow: true}",
			func(context.Context, *otlpdata.Batch) error {
				time.Sleep(time.Second)
				return nil
			})
		if err := source.Consume(t.Context(), hosttest.OneSpan("a")); err != nil {
			t.Error(err)
		}
		for range 3 {
			go func() {
				if err := source.Consume(t.Context(), hosttest.OneSpan("b")); !errors.Is(err, pipeline.ErrStopping) {
					t.Errorf("%v", err)
				}
			}()
		}
		synctest.Wait()
		if err := p.End(); err != nil {
			t.Error(err)
		}
		hosttest.Expect(t, p.NetCounts(t), "in:4 queued:0 refused:3 retries:0 sent:1")
	})
}

// An exporter that ignores its context does not keep the process from stopping.
func TestStopWithDeafExporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, source := hosttest.StartNet(t, "sending_queue: {num_consumers: 1}", func(context.Context, *otlpdata.Batch) error {
			time.Sleep(time.Hour)
			return nil
		})
		if err := source.Consume(t.Context(), hosttest.OneSpan("a")); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		start := time.Now()
		if err := p.End(); err == nil || time.Since(start) != 35*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if lines := p.Lines(t, "final accounting of spans"); len(lines) != 1 || lines[0]["balanced"] != true {
			t.Errorf("%v", lines)
		}
		time.Sleep(2 * time.Hour) // it ends one day
	})
}

// An empty queue stops without an error, even if the context has ended.
func TestStopOfEmptyQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, source := hosttest.StartNet(t, "sending_queue: {num_consumers: 2}", func(context.Context, *otlpdata.Batch) error { return nil })
		if err := source.Consume(t.Context(), hosttest.OneSpan("a")); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		ended, end := context.WithCancel(t.Context())
		end()
		if err := p.Stop(ended); err != nil {
			t.Error(err)
		}
		hosttest.Expect(t, p.NetCounts(t), "in:1 queued:0 retries:0 sent:1")
	})
}

// Spans of a queued request that the next hop rejects are dropped with the reason permanent. There
// is no dead letter, because it is unknown which spans were rejected.
func TestPartialBehindQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, source := hosttest.StartNet(t, "sending_queue: {num_consumers: 1}", func(context.Context, *otlpdata.Batch) error {
			return &pipeline.Partial{Rejected: 2, Err: errors.New("two are bad")}
		})
		if err := source.Consume(t.Context(), manySpans(t, "a", 3)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		hosttest.Expect(t, p.NetCounts(t), "dropped:2 in:3 queued:0 retries:0 sent:1")
		lines := p.Logged(t, "spans were dropped")
		if len(lines) != 1 || lines[0]["reason"] != "permanent" || lines[0]["dead-letter"] != nil {
			t.Errorf("%v", lines)
		}
	})
}

// Names of dead letters contain the tenant. A full folder is used again after files were removed.
func TestDeadLettersFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "letters")
		td := ptrace.NewTraces()
		td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("a")
		b := otlpdata.FromTraces(td, otlpdata.Meta{Tenant: "team/blue"})
		service := fmt.Sprintf("dead_letter_dir: %s\n  dead_letter_size: %d", dir, b.Size())
		_, source := hosttest.StartNetWith(t, "sending_queue: {num_consumers: 1}", service,
			func(context.Context, *otlpdata.Batch) error { return pipeline.Permanent(errors.New("bad")) })
		letters := func(want ...string) []string {
			t.Helper()
			if err := source.Consume(t.Context(), b); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil || len(files) != len(want) {
				t.Fatalf("%v %v, want %d", files, err, len(want))
			}
			for i, suffix := range want {
				if !strings.HasSuffix(files[i], suffix) {
					t.Errorf("%s does not end with %s", files[i], suffix)
				}
			}
			return files
		}
		const suffix = "-net-tenant-team%2Fblue.otlp"
		files := letters(suffix)
		letters(suffix) // full
		if err := os.Remove(files[0]); err != nil {
			t.Fatal(err)
		}
		letters() // not scanned again yet
		time.Sleep(time.Minute)
		letters(suffix)
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v %v: the folder must be private", info, err)
		}
	})
}
