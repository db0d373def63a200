package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/hosttest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// While a next hop is unreachable, a client gets its response within max_wait and before its own
// deadline: it may retry, after a delay.
func TestClientIsAnsweredInTime(t *testing.T) {
	refused := func(context.Context, *otlpdata.Batch) error {
		return status.Error(codes.Unavailable, "connection refused")
	}
	hang := func(ctx context.Context, _ *otlpdata.Batch) error {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err() // as gRPC does
	}
	for _, c := range []struct {
		name     string
		settings string
		deadline time.Duration // of the client; 0: none
		send     hosttest.SendFunc
		after    time.Duration // of the response
		code     codes.Code
		reason   string
	}{
		{"refused connections", "", 0, refused, 5 * time.Second, codes.Unavailable, "unavailable"},
		{"refused connections, patient client", "", time.Hour, refused, 5 * time.Second, codes.Unavailable, "unavailable"},
		{"refused connections, hasty client", "", 3 * time.Second, refused, 0, codes.Unavailable, "unavailable"},
		{"no response", "timeout: 1m", 0, hang, 8 * time.Second, codes.Unavailable, "deadline"},
		{"no response, hasty client", "", 2 * time.Second, hang, 1800 * time.Millisecond, codes.Unavailable, "deadline"},
		{"no response to several attempts", "timeout: 2s, retry_on_failure: {initial_interval: 1s}", 0, hang, 8 * time.Second,
			codes.Unavailable, "deadline"},
		{"full queue", "sending_queue: {queue_size: 1, num_consumers: 1, overflow: block}", 0, hang, 8 * time.Second,
			codes.ResourceExhausted, "overloaded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, source := hosttest.StartNetWith(t, c.settings, "limits: {inflight: 1GiB}", c.send)
				ctx := t.Context()
				if c.code == codes.ResourceExhausted {
					if err := source.Consume(ctx, hosttest.OneSpan("in the queue")); err != nil {
						t.Fatal(err)
					}
				}
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				start := time.Now()
				err := source.Consume(ctx, hosttest.OneSpan("a"))
				if err == nil || ctx.Err() != nil || time.Since(start) != c.after {
					t.Fatalf("%v after %s, client: %v; want an answer after %s", err, time.Since(start), ctx.Err(), c.after)
				}
				want := http.StatusServiceUnavailable
				if c.code == codes.ResourceExhausted {
					want = http.StatusTooManyRequests
				}
				s := pipeline.GRPCStatus(err)
				if got, delay := pipeline.HTTPStatus(err); got != want || delay == 0 || s.Code() != c.code || len(s.Details()) != 1 {
					t.Errorf("HTTP status %d with delay %s, gRPC status %s with details %v: %v", got, delay, s.Code(), s.Details(), err)
				}
				if n := p.Metrics(t, `tracing_pipeline_spans_total{component="source",kind="receiver",outcome="refused"`); len(n) != 1 ||
					n[0] != fmt.Sprintf(`tracing_pipeline_spans_total{component="source",kind="receiver",outcome="refused",reason="%s"} 1`, c.reason) {
					t.Errorf("counted %v, want reason %s", n, c.reason)
				}
			})
		})
	}
}

// The response names the component in which the spans waited, and the setting that ended the wait.
func TestLateAnswerNamesComponentAndSetting(t *testing.T) {
	for _, c := range []struct {
		settings string
		deadline time.Duration // of the client; 0: none
		want     string
	}{
		{"timeout: 1m", 0, "exporter net: not accepted within 8s (service::limits::max_wait)"},
		{"timeout: 1m", 2 * time.Second, "exporter net: not accepted within 1.8s (nine tenths of the deadline of the client)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, source := hosttest.StartNetWith(t, c.settings, "limits: {inflight: 1GiB}", func(ctx context.Context, _ *otlpdata.Batch) error {
				<-ctx.Done()
				return status.FromContextError(ctx.Err()).Err() // as gRPC does
			})
			ctx := t.Context()
			if c.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.deadline)
				defer cancel()
			}
			if err := source.Consume(ctx, hosttest.OneSpan("a")); err == nil || err.Error() != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// A client that has left and answers that are final are not changed into an outage.
func TestMaxWaitKeepsOtherAnswers(t *testing.T) {
	for _, c := range []struct {
		err  error
		code codes.Code
	}{
		{pipeline.Permanent(context.DeadlineExceeded), codes.InvalidArgument},
		{pipeline.Overloaded(context.DeadlineExceeded, time.Minute), codes.ResourceExhausted},
		{status.Error(codes.PermissionDenied, "no"), codes.PermissionDenied},
		{&pipeline.Partial{Rejected: 1, Err: context.DeadlineExceeded}, codes.InvalidArgument},
		{context.Canceled, codes.Canceled},
	} {
		_, source := hosttest.StartNetWith(t, "retry_on_failure: {enabled: false}", "limits: {inflight: 1GiB}",
			func(context.Context, *otlpdata.Batch) error { return c.err })
		err := source.Consume(t.Context(), hosttest.OneSpan("a"))
		if !errors.Is(err, c.err) || pipeline.GRPCStatus(err).Code() != c.code {
			t.Errorf("%v: answered %v (%s), want %s", c.err, err, pipeline.GRPCStatus(err).Code(), c.code)
		}
	}
}
