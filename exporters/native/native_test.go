package native

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

func TestSpansArrive(t *testing.T) {
	for _, compression := range []string{"none", "gzip", "zstd", "snappy"} {
		c, fix := startCollector(t), newFixture()
		e := fix.start(t, c.Addr, func(c *config) { c.Compression = compression })
		if err := e.Consume(t.Context(), batch(t, "acme", 3000)); err != nil {
			t.Errorf("%s: %v", compression, err)
		}
		if messages, spans := c.received(t); messages != 1 || spans != 3000 {
			t.Errorf("%s: %d spans in %d messages, want 3000 in one", compression, spans, messages)
		}
		if got := c.header.Get("x-tenant"); !slices.Equal(got, []string{"acme"}) {
			t.Errorf("%s: tenant %q", compression, got)
		}
		want := `connection_status_collector_connected grpc 1
connection_status_collector_reconnects grpc 1
reporter_batch_size tracing grpc 3000
reporter_batches_submitted tracing grpc 1
reporter_spans_submitted tracing grpc 3000`
		if got := fix.metrics(t); got != want {
			t.Errorf("%s: metrics\n%s\nwant\n%s", compression, got, want)
		}
		lines := fix.Logs.FilterMessage("Span batch submitted by the agent").All()
		if len(lines) != 1 || lines[0].Level != zap.DebugLevel || lines[0].ContextMap()["span-count"] != int64(3000) {
			t.Errorf("%s: logged %v", compression, lines)
		}
	}
}

func TestTenantHeader(t *testing.T) {
	c := startCollector(t)
	f := func(header, tenant string, want ...string) {
		t.Helper()
		e := newFixture().start(t, c.Addr, func(c *config) { c.TenantHeader = header })
		if err := e.Consume(t.Context(), batch(t, tenant, 1)); err != nil {
			t.Fatal(err)
		}
		if got := slices.Concat(c.header.Get("x-tenant"), c.header.Get("x-scope")); !slices.Equal(got, want) {
			t.Errorf("header %q, tenant %q: sent %q, want %q", header, tenant, got, want)
		}
		c.mu.Lock()
		c.names = nil
		c.mu.Unlock()
	}
	f("x-tenant", "acme", "acme")
	f("X-Scope", "acme", "acme")
	f("x-tenant", "")
	f("", "acme")
}

// Message buffers are reused. Concurrent messages must not share them.
func TestConcurrentCallers(t *testing.T) {
	c := startCollector(t)
	var sum atomic.Int64
	c.respondWith(func(_ context.Context, b *api_v2.Batch) error {
		sum.Add(int64(len(b.GetSpans())))
		for _, s := range b.GetSpans() {
			if !strings.HasPrefix(s.GetOperationName(), "GET /cart/") || len(s.GetTags()) != 2 {
				return status.Error(codes.InvalidArgument, "message is corrupt")
			}
		}
		if len(b.GetSpans())%7 == 0 {
			return status.Error(codes.InvalidArgument, "refused")
		}
		return nil
	})
	e := newFixture().start(t, c.Addr, func(c *config) { c.MaxMessageSize = 4 << 10 })
	errs := make(chan error)
	const callers, rounds = 8, 20
	for i := range callers {
		b := batch(t, "", 1+100*i)
		go func() {
			var all []error
			for range rounds {
				all = append(all, e.Consume(context.Background(), b))
			}
			errs <- errors.Join(all...)
		}()
	}
	for range callers {
		if err := <-errs; err != nil && strings.Contains(err.Error(), "message is corrupt") {
			t.Error(err)
		}
	}
	if want := int64(rounds * (callers + 100*callers*(callers-1)/2)); sum.Load() != want {
		t.Errorf("%d spans received, want %d", sum.Load(), want)
	}
}

// Errors keep the status of the collector.
func TestStatusOfTheCollector(t *testing.T) {
	c := startCollector(t)
	e := newFixture().start(t, c.Addr, nil)
	b := batch(t, "", 1)
	f := func(code codes.Code, permanent bool) {
		t.Helper()
		c.returnError(status.Error(code, "because"))
		err := e.Consume(t.Context(), b)
		if got := pipeline.GRPCStatus(err); got.Code() != code || !strings.HasPrefix(got.Message(), "failed to export spans: "+c.Addr+": ") {
			t.Errorf("%s: returned as %s", code, got)
		}
		if pipeline.IsPermanent(err) != permanent {
			t.Errorf("%s: permanent is %t", code, !permanent)
		}
	}
	for _, c := range []codes.Code{codes.DeadlineExceeded, codes.Aborted, codes.Unavailable} {
		f(c, false)
	}
	for _, c := range []codes.Code{codes.Unknown, codes.InvalidArgument, codes.PermissionDenied, codes.Internal, codes.ResourceExhausted} {
		f(c, true)
	}
	later, err := status.New(codes.ResourceExhausted, "full").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	c.returnError(later.Err())
	if code, after := pipeline.HTTPStatus(e.Consume(t.Context(), b)); code != 429 || after != 7*time.Second {
		t.Errorf("returned as %d, retry after %s", code, after)
	}
	c.returnError(status.Error(codes.ResourceExhausted, "server busy"))
	if code, after := pipeline.HTTPStatus(e.Consume(t.Context(), b)); code != 429 || after != time.Second {
		t.Errorf("busy collector: returned as %d, retry after %s", code, after)
	}
}

func TestLargeBatchesAreSplit(t *testing.T) {
	c, fix := startCollector(t), newFixture()
	e := fix.start(t, c.Addr, nil)
	if err := e.Consume(t.Context(), batch(t, "", 60_000)); err != nil { // the limit of the collector is 4 MiB
		t.Error(err)
	}
	messages, spans := c.received(t)
	if spans != 60_000 || messages < 2 || messages > 4 {
		t.Errorf("%d spans in %d messages", spans, messages)
	}
	if got := len(fix.Logs.FilterMessage("Span batch submitted by the agent").All()); got != messages {
		t.Errorf("%d of %d messages logged", got, messages)
	}
	if err := e.Consume(t.Context(), batch(t, "", 0)); err != nil {
		t.Errorf("no spans: %v", err)
	}
	if more, _ := c.received(t); more != messages {
		t.Error("sent a message without spans")
	}
}

// Messages that got a response are not resent.
func TestFailedMessages(t *testing.T) {
	c := startCollector(t)
	const spans = 100
	f := func(name string, fail map[int]error, check func(err error, messages, accepted int)) {
		t.Run(name, func(t *testing.T) {
			c.mu.Lock()
			c.batches, c.names = nil, nil
			c.mu.Unlock()
			call := 0
			c.respondWith(func(context.Context, *api_v2.Batch) error {
				call++
				return fail[call]
			})
			source := inPipeline(t, c.Addr)
			err := source.Consume(t.Context(), batch(t, "", spans))
			_, accepted := c.received(t)
			check(err, call, accepted)
		})
	}
	refused, down := status.Error(codes.InvalidArgument, "refused"), status.Error(codes.Unavailable, "down")
	all := 0
	f("none", nil, func(err error, messages, accepted int) {
		if all = messages; err != nil || accepted != spans || messages < 5 {
			t.Errorf("%d spans in %d messages, error %v", accepted, messages, err)
		}
	})
	f("temporary", map[int]error{3: down, 4: down}, func(err error, messages, accepted int) {
		if err != nil || accepted != spans || messages != all+2 {
			t.Errorf("%d spans in %d messages, error %v", accepted, messages, err)
		}
	})
	var partial *pipeline.Partial
	f("permanent", map[int]error{2: refused, 4: refused}, func(err error, messages, accepted int) {
		if !errors.As(err, &partial) || partial.Rejected != spans-accepted || accepted == spans || messages != all || !pipeline.IsPermanent(err) {
			t.Errorf("%d spans in %d messages, error %v", accepted, messages, err)
		}
	})
	f("both", map[int]error{1: refused, 3: down}, func(err error, messages, accepted int) {
		if !errors.As(err, &partial) || partial.Rejected != spans-accepted || accepted == spans || messages != all+1 {
			t.Errorf("%d spans in %d messages, error %v", accepted, messages, err)
		}
	})
	c.returnError(refused)
	e := newFixture().start(t, c.Addr, func(c *config) { c.MaxMessageSize = 2 << 10 })
	if err := e.Consume(t.Context(), batch(t, "", spans)); errors.As(err, &partial) || !pipeline.IsPermanent(err) {
		t.Errorf("all refused: %v", err)
	}
}

// A message above the limit of the collector fails permanently and is counted.
func TestTooLargeForTheCollector(t *testing.T) {
	c, fix := startCollector(t, grpc.MaxRecvMsgSize(1<<10)), newFixture()
	e := fix.start(t, c.Addr, nil)
	if err := e.Consume(t.Context(), batch(t, "", 100)); !pipeline.IsPermanent(err) || !strings.Contains(err.Error(), "larger than max") {
		t.Errorf("error %v", err)
	}
	if got := fix.metrics(t); !strings.HasSuffix(got, "reporter_batches_failures tracing grpc 1\nreporter_spans_failures tracing grpc 100") {
		t.Errorf("metrics\n%s", got)
	}
}

func TestSeveralEndpoints(t *testing.T) {
	a, b := startCollector(t), startCollector(t)
	e := newFixture().start(t, a.Addr+", "+b.Addr, nil)
	send := func() {
		if err := e.Consume(t.Context(), batch(t, "", 1)); err != nil {
			t.Fatal(err)
		}
	}
	received := func(c *collector) int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.batches)
	}
	for received(a) == 0 || received(b) == 0 { // both are connected
		send()
	}
	before := [2]int{received(a), received(b)}
	for range 10 {
		send()
	}
	if got := [2]int{received(a) - before[0], received(b) - before[1]}; got != [2]int{5, 5} {
		t.Errorf("endpoints received %v of 10", got)
	}
	b.Stop()
	for range 10 {
		// Fails until the client notices that b is down.
		for e.Consume(t.Context(), batch(t, "", 1)) != nil && t.Context().Err() == nil {
		}
	}
	if n := received(a) - before[0]; n < 15 {
		t.Errorf("remaining endpoint received %d", n)
	}
}

func TestRestartOfTheCollector(t *testing.T) {
	c, fix := startCollectorAt(t, pipelinetest.FixedAddress(t)), newFixture()
	e := fix.start(t, c.Addr, func(c *config) { c.WaitForReady = false })
	b := batch(t, "", 1)
	until := func(done func(error) bool) {
		t.Helper()
		for !done(e.Consume(t.Context(), b)) {
			if t.Context().Err() != nil {
				t.Fatal("condition not reached")
			}
		}
	}
	sent := func(err error) bool { return err == nil }
	until(sent)
	c.Stop()
	down := 0
	until(func(err error) bool {
		if err != nil {
			down++
		}
		if err != nil && pipeline.IsPermanent(err) {
			t.Fatalf("error %v", err)
		}
		return down == 3
	})
	if r := fix.Reports(); len(r) != 1 || r[0] == nil {
		t.Errorf("reported %v", r)
	}
	fix.awaitDisconnected(t)
	lines := fix.Logs.FilterMessage("Could not send spans over gRPC").All()
	if len(lines) != 1 || lines[0].Level != zap.ErrorLevel || lines[0].ContextMap()["error"] == "" {
		t.Errorf("logged %v", lines)
	}
	startCollectorAt(t, c.Addr)
	until(sent)
	if got := fix.metrics(t); !strings.Contains(got, "collector_connected grpc 1\nconnection_status_collector_reconnects grpc 2") {
		t.Errorf("metrics\n%s", got)
	}
	if r := fix.Reports(); len(r) != 2 || r[1] != nil {
		t.Errorf("reported %v", r)
	}
}

func TestMissingTenantIsLoggedAtDebugLevel(t *testing.T) {
	c, fix := startCollector(t), newFixture()
	e := fix.start(t, c.Addr, nil)
	c.returnError(status.Error(codes.PermissionDenied, "missing tenant header"))
	if err := e.Consume(t.Context(), batch(t, "", 1)); !pipeline.IsPermanent(err) {
		t.Errorf("error %v", err)
	}
	lines := fix.Logs.FilterMessage("Could not report untenanted spans over gRPC").All()
	if all := fix.Logs.All(); len(all) != 1 || len(lines) != 1 || lines[0].Level != zap.DebugLevel {
		t.Errorf("logged %v", all)
	}
}

func TestCanceledSend(t *testing.T) {
	c, fix := startCollector(t), newFixture()
	e := fix.start(t, c.Addr, nil)
	ctx, cancel := context.WithCancel(t.Context())
	c.respondWith(func(ctx context.Context, _ *api_v2.Batch) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if err := e.Consume(ctx, batch(t, "", 1)); status.Code(err) != codes.Canceled {
		t.Errorf("error %v", err)
	}
	if r, lines := fix.Reports(), fix.Logs.All(); len(r) != 0 || len(lines) != 0 {
		t.Errorf("reported %v and logged %v for a canceled send", r, lines)
	}
}

const pipelineOf = `
receivers: {source: }
exporters:
  native:
    endpoint: ENDPOINT
    tls: {insecure: true}
    max_message_size: 2KiB
    tenant_header: x-tenant
    compression: gzip
    timeout: 10s
    sending_queue: {enabled: false}
    retry_on_failure: {initial_interval: 1ms, max_interval: 1ms}
service: {pipelines: {traces: {receivers: [source], exporters: [native]}}}
`

func load(endpoint string, change ...string) (*app.Config, *receiver, error) {
	var r receiver
	source := pipeline.Receiver("source", func() struct{} { return struct{}{} },
		func(_ pipeline.Settings, _ struct{}, next pipeline.Consumer) (*receiver, error) {
			r.Consumer = next
			return &r, nil
		})
	text := strings.NewReplacer(append(change, "ENDPOINT", endpoint)...).Replace(pipelineOf)
	c, err := app.Load(app.LoadOptions{Factories: []pipeline.Factory{Factory(), source}, Files: []string{"c.yaml"}, Strict: true,
		ReadFile: func(string) ([]byte, error) { return []byte(text), nil }})
	return c, &r, err
}

// receiver exposes the consumer of its pipeline.
type receiver struct{ pipeline.Consumer }

// Start does nothing.
func (*receiver) Start(context.Context) error { return nil }

// inPipeline starts a pipeline with retries that sends to a collector, and returns its receiver.
func inPipeline(t *testing.T, endpoint string) *receiver {
	t.Helper()
	c, source, err := load(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(c, app.Options{Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	pipelinetest.Start(t, a)
	return source
}

func TestConfigErrors(t *testing.T) {
	_, _, err := load("next.test", "2KiB", "100", "x-tenant", "a b")
	want := `c.yaml:5:15: exporters.native.endpoint: "next.test" is not a valid address; write host:port, for example localhost:4317
c.yaml:7:23: exporters.native.max_message_size: must be from 1KiB to 1GiB, not 100
c.yaml:8:20: exporters.native.tenant_header: "a b" is not a valid header name; use letters, digits, -, _ and .`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// Connections without a gRPC server are counted, too.
func TestConnectionWithoutGRPCServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		if conn, err := ln.Accept(); err == nil {
			_ = conn.Close()
		}
	}()
	fix := newFixture()
	e := fix.start(t, ln.Addr().String(), func(c *config) { c.WaitForReady = false })
	<-accepted
	if err := e.Consume(t.Context(), batch(t, "", 1)); err == nil {
		t.Error("Consume succeeded without a server")
	}
	fix.awaitDisconnected(t)
}
