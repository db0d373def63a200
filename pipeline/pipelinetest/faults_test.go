package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
)

// fault is a faulty component, and the failure that names its fault.
type fault struct {
	name  string
	sub   *subject
	check string
	want  string
}

// contentFaults are components that lose or change content of any batch.
func contentFaults() []fault {
	const check = "every span arrives once"
	return []fault{
		{"exporter drops the last span", editing(func(td ptrace.Traces) {
			for _, rs := range td.ResourceSpans().All() {
				n := 0
				rs.ScopeSpans().At(0).Spans().RemoveIf(func(ptrace.Span) bool { n++; return n > 1 })
			}
		}), check, "did not arrive"},
		{"exporter loses links", eachSpan(func(s ptrace.Span) { s.Links().RemoveIf(func(ptrace.SpanLink) bool { return true }) }),
			check, "links: sent"},
		{"exporter loses attributes of events", eachSpan(func(s ptrace.Span) { s.Events().At(1).Attributes().Clear() }), check, "events: sent"},
		{"exporter shortens trace ids", eachSpan(func(s ptrace.Span) {
			id := s.TraceID()
			s.SetTraceID(pcommon.TraceID(append(make([]byte, 8), id[8:]...)))
		}), check, "trace id: sent"},
		{"exporter swaps start and end", eachSpan(func(s ptrace.Span) {
			start := s.StartTimestamp()
			s.SetStartTimestamp(s.EndTimestamp())
			s.SetEndTimestamp(start)
		}), check, "start: sent"},
		{"exporter rounds times to microseconds", eachSpan(func(s ptrace.Span) { s.SetEndTimestamp(s.EndTimestamp() / 1000 * 1000) }),
			check, "end: sent"},
		{"exporter writes numbers as text", eachSpan(func(s ptrace.Span) { s.Attributes().PutStr("int", "-9007199254740993") }),
			check, "attributes: sent"},
		{"exporter loses the schema URL", editing(func(td ptrace.Traces) { td.ResourceSpans().At(0).SetSchemaUrl("") }),
			check, "resource schema URL: sent"},
		{"exporter loses the tenant", sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
			td, err := b.Traces()
			return errors.Join(err, hop.Consume(ctx, otlpdata.FromTraces(td, otlpdata.Meta{})))
		}), check, "tenant: sent"},
		{"processor counts spans twice", through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
			encoded, err := b.Encoded()
			services := append(slices.Clip(b.Services()), b.Services()...)
			return errors.Join(err, next.Consume(ctx, otlpdata.FromStored(encoded, b.Meta(), services...)))
		}), check, "but Len returns"},
		{"receiver loses events", receiver(func(ctx context.Context, body []byte, next pipeline.Consumer) error {
			td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(body)
			if err != nil {
				return pipeline.Permanent(err)
			}
			td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Events().RemoveIf(func(ptrace.SpanEvent) bool { return true })
			return next.Consume(ctx, otlpdata.FromTraces(td, otlpdata.Meta{Format: "otlp", Transport: "http", Received: time.Now()}))
		}, stopAtOnce), check, "events: sent"},
	}
}

// behaviorFaults are components that answer, block or end in a wrong way.
func behaviorFaults(t *testing.T) []fault {
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	return []fault{
		{"exporter acknowledges before it sends", late(), "every span arrives once", "did not arrive"},
		{"exporter loses what it holds when it stops", holding(), "stops under load", "did not arrive"},
		{"exporter resends all spans after a partial success", again(), "some spans are rejected", "was resent"},
		{"exporter ignores a partial success", sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
			if err := hop.Consume(ctx, b); partialOf(err) == nil {
				return err
			}
			return nil
		}), "some spans are rejected", "1 spans were rejected, but the sender got"},
		{"processor returns a partial success as temporary", mapsErrors(func(err error) error {
			if partialOf(err) != nil {
				return fmt.Errorf("some spans were rejected: %s", err)
			}
			return err
		}), "some spans are rejected", "1 spans were rejected, but the sender got"},
		{"receiver answers a partial success with 503", receiver(func(ctx context.Context, body []byte, next pipeline.Consumer) error {
			err := handle(ctx, body, next)
			if partialOf(err) != nil {
				return fmt.Errorf("some spans were rejected: %s", err)
			}
			return err
		}, stopAtOnce), "some spans are rejected", "would resend all of them"},
		{"exporter returns permanent errors as temporary", sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
			if err := hop.Consume(ctx, b); err != nil {
				return errors.New("sending failed")
			}
			return nil
		}), "outcomes are passed on", "is permanent, but the response is temporary"},
		{"exporter ignores its context", sender(func(_ context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
			return hop.Consume(context.Background(), b)
		}), "the context ends a call", "did not return"},
		{"exporter leaks a goroutine", sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
			go func() { <-end }()
			return hop.Consume(ctx, b)
		}), "no goroutines after Stop", "found unexpected goroutines"},
		{"processor changes a batch that others share", through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
			for _, c := range collect(b) {
				if len(c) > 0 {
					c[len(c)-1] ^= 1
				}
			}
			return next.Consume(ctx, b)
		}), "batches are not modified", "the encoded spans have changed"},
		{"exporter panics on a batch without spans", sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
			_ = b.Services()[0]
			return hop.Consume(ctx, b)
		}), "a batch without spans", "internal error"},
		{"exporter blocks in Stop", senderStep(func(hop pipeline.Consumer) *step {
			return &step{hop.Consume, func(context.Context) error { <-end; return nil }}
		}), "starts, stops and restarts", "Stop did not return"},
		{"processor mixes up concurrent callers", mixing(), "concurrent callers", "arrive"},
	}
}

// late returns an exporter that sends a batch when the next one arrives.
func late() *subject {
	var held atomic.Pointer[otlpdata.Batch]
	return sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
		if before := held.Swap(b); before != nil {
			return hop.Consume(ctx, before)
		}
		return nil
	})
}

// holding returns an exporter that sends every tenth batch later, and not in Stop.
func holding() *subject {
	var n atomic.Int64
	return sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
		if n.Add(1)%10 == 0 {
			return nil
		}
		return hop.Consume(ctx, b)
	})
}

// again returns an exporter that makes a second attempt for any error.
func again() *subject {
	return sender(func(ctx context.Context, b *otlpdata.Batch, hop pipeline.Consumer) error {
		if err := hop.Consume(ctx, b); err == nil {
			return nil
		}
		return hop.Consume(ctx, b)
	})
}

// mixing returns a processor whose callers share a variable. The first ones wait for each other
// between the two uses.
func mixing() *subject {
	const together = 32
	var last atomic.Pointer[otlpdata.Batch]
	var callers atomic.Int64
	met := make(chan struct{})
	return through(func(ctx context.Context, b *otlpdata.Batch, next pipeline.Consumer) error {
		last.Store(b)
		if callers.Add(1) == together {
			close(met)
		}
		select {
		case <-met:
		case <-ctx.Done():
		}
		return next.Consume(ctx, last.Load())
	})
}

// TestPlantedFaults checks that the suite catches every planted fault, with a failure that names
// it.
func TestPlantedFaults(t *testing.T) {
	soak.SkipIfRaced(t)
	joined := joinedFaults()
	all := slices.Concat(joined, contentFaults(), behaviorFaults(t))
	if len(all) < 20 || len(joined) < 10 {
		t.Fatalf("%d faults, %d of them in joined batches", len(all), len(joined))
	}
	for _, f := range all {
		t.Run(f.name, func(t *testing.T) { expect(t, f.check, f.sub, f.want) })
	}
}

// TestSuiteFails runs the suite in the way of users, for an exporter that sends only the first
// chunk of a batch.
func TestSuiteFails(t *testing.T) {
	const child = "PIPELINETEST_CHILD"
	if os.Getenv(child) != "" {
		sub := joinedFaults()[0].sub
		Exporter(t, sub.factory, ExporterOptions{Config: sub.config})
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestSuiteFails$", "-test.v")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		t.Fatalf("the suite has not failed: %v\n%s", err, out)
	}
	for _, want := range []string{
		"FAIL: TestSuiteFails/joined_batches_arrive_whole",
		"request 2 (joined, two chunks): acknowledged, but span-2-1 did not arrive",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}
