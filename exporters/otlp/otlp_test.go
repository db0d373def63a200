package otlp

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestBytesPassThrough(t *testing.T) {
	hop := startHop(t)
	joined, err := otlpdata.Concat(batch(t, "acme", 3), batch(t, "acme", 4), batch(t, "acme", 5000))
	if err != nil {
		t.Fatal(err)
	}
	want, err := joined.Encoded()
	if err != nil {
		t.Fatal(err)
	}
	for _, compression := range []string{"none", "gzip", "zstd", "snappy"} {
		e, _ := start(t, hop.Addr, func(c *config) { c.Compression = compression })
		if err := e.Consume(t.Context(), joined); err != nil {
			t.Errorf("%s: %v", compression, err)
		}
		if !bytes.Equal(hop.bytes, want) || hop.spans != 5007 {
			t.Errorf("%s: next hop received %d bytes, %d spans; want %d bytes, 5007 spans", compression,
				len(hop.bytes), hop.spans, len(want))
		}
		if got := hop.header.Get("x-tenant"); !slices.Equal(got, []string{"acme"}) {
			t.Errorf("%s: tenant %q", compression, got)
		}
	}
	if again, err := joined.Encoded(); err != nil || !bytes.Equal(again, want) {
		t.Error("batch was modified")
	}
}

func TestTenantHeader(t *testing.T) {
	hop := startHop(t)
	f := func(header, tenant string, want ...string) {
		t.Helper()
		e, _ := start(t, hop.Addr, func(c *config) { c.TenantHeader = header })
		if err := e.Consume(t.Context(), batch(t, tenant, 1)); err != nil {
			t.Fatal(err)
		}
		if got := slices.Concat(hop.header.Get("x-tenant"), hop.header.Get("x-scope")); !slices.Equal(got, want) {
			t.Errorf("header %q, tenant %q: sent %q, want %q", header, tenant, got, want)
		}
	}
	f("x-tenant", "acme", "acme")
	f("X-Scope", "acme", "acme")
	f("x-tenant", "")
	f("", "acme")
}

// Errors keep the status of the next hop.
func TestStatusOfTheNextHop(t *testing.T) {
	hop := startHop(t)
	e, _ := start(t, hop.Addr, nil)
	b := batch(t, "", 1)
	f := func(code codes.Code, permanent bool) {
		t.Helper()
		hop.respondWith(nil, status.Error(code, "because"))
		err := e.Consume(t.Context(), b)
		got := pipeline.GRPCStatus(err)
		if got.Code() != code || !strings.Contains(got.Message(), hop.Addr) || !strings.HasSuffix(got.Message(), "because") {
			t.Errorf("%s: returned as %s", code, got)
		}
		if pipeline.IsPermanent(err) != permanent {
			t.Errorf("%s: permanent is %t", code, !permanent)
		}
	}
	for _, c := range []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange,
		codes.Unavailable, codes.DataLoss} {
		f(c, false)
	}
	for _, c := range []codes.Code{codes.Unknown, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied,
		codes.Unauthenticated, codes.FailedPrecondition, codes.Unimplemented, codes.Internal, codes.ResourceExhausted} {
		f(c, true)
	}
	later, err := status.New(codes.ResourceExhausted, "full").
		WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	hop.respondWith(nil, later.Err())
	if code, after := pipeline.HTTPStatus(e.Consume(t.Context(), b)); code != 429 || after != 7*time.Second {
		t.Errorf("returned as %d, retry after %s", code, after)
	}
}

func TestPartialSuccess(t *testing.T) {
	hop := startHop(t)
	e, _ := start(t, hop.Addr, nil)
	b := batch(t, "", 5)
	respond := func(rejected int64, message string) {
		hop.respondWith(&coltracepb.ExportTraceServiceResponse{
			PartialSuccess: &coltracepb.ExportTracePartialSuccess{RejectedSpans: rejected, ErrorMessage: message}}, nil)
	}
	respond(2, "too old")
	var partial *pipeline.Partial
	if err := e.Consume(t.Context(), b); !errors.As(err, &partial) || partial.Rejected != 2 || !strings.Contains(err.Error(), "too old") {
		t.Errorf("error %v", err)
	}
	respond(0, "slow down")
	if err := e.Consume(t.Context(), b); err != nil {
		t.Errorf("warning returned as error: %v", err)
	}
	hop.raw = []byte("not OTLP")
	if err := e.Consume(t.Context(), b); err != nil {
		t.Errorf("undecodable success response returned as error: %v", err)
	}
}

func TestNextHopRecovers(t *testing.T) {
	var up atomic.Pointer[nextHop]
	env := pipeline.SystemEnv()
	env.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		if hop := up.Load(); hop != nil {
			return new(net.Dialer).DialContext(ctx, network, hop.Addr)
		}
		return nil, errors.New("connection refused")
	}
	e, reported := startIn(t, env, "127.0.0.1:4317", func(c *config) { c.WaitForReady = false })
	b := batch(t, "", 1)
	for range 3 {
		if err := e.Consume(t.Context(), b); status.Code(err) != codes.Unavailable || pipeline.IsPermanent(err) {
			t.Errorf("error %v", err)
		}
	}
	if r := reported.Reports(); len(r) != 1 || r[0] == nil {
		t.Fatalf("reported %v", r)
	}
	up.Store(startHop(t))
	err := errors.New("not sent")
	for err != nil && t.Context().Err() == nil {
		err = e.Consume(t.Context(), b)
	}
	if r := reported.Reports(); len(r) != 2 || r[1] != nil {
		t.Errorf("reported %v", r)
	}
}

func TestCanceledSend(t *testing.T) {
	hop := startHop(t)
	e, reported := start(t, hop.Addr, nil)
	for range 4 {
		ctx, cancel := context.WithCancel(t.Context())
		hop.mu.Lock()
		hop.respond = func(ctx context.Context) (*coltracepb.ExportTraceServiceResponse, error) {
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		hop.mu.Unlock()
		if err := e.Consume(ctx, batch(t, "", 1)); status.Code(err) != codes.Canceled {
			t.Errorf("error %v", err)
		}
	}
	if r := reported.Reports(); len(r) != 0 {
		t.Errorf("reported %v for canceled sends", r)
	}
}

// The config of the otlp exporter of the OpenTelemetry Collector can be used unchanged.
func TestCollectorConfig(t *testing.T) {
	const file = `
receivers: {source: }
exporters:
  otlp:
    endpoint: dns:///next.test:4317
    compression: zstd
    balancer_name: round_robin
    wait_for_ready: true
    headers: {x-scope: blue}
    timeout: 10s
    keepalive: {time: 30s, timeout: 5s, permit_without_stream: true}
    tls: {ca_file: ca.crt, cert_file: tls.crt, key_file: tls.key, server_name_override: next, min_version: "1.3", reload_interval: 1h}
    sending_queue: {enabled: true, num_consumers: 4, queue_size: 5000}
    retry_on_failure: {enabled: true, initial_interval: 1s, max_interval: 10s, max_elapsed_time: 60s}
service: {pipelines: {traces: {receivers: [source], exporters: [otlp]}}}
`
	load := func(text string) error {
		_, err := app.Load(app.LoadOptions{Factories: []pipeline.Factory{Factory(), source()}, Files: []string{"c.yaml"}, Strict: true,
			ReadFile: func(string) ([]byte, error) { return []byte(text), nil }})
		return err
	}
	if err := load(file); err != nil {
		t.Error(err)
	}
	err := load(strings.NewReplacer("dns:///next.test:4317", "next.test", "timeout: 10s", "tenant_header: a b").Replace(file))
	want := `c.yaml:5:15: exporters.otlp.endpoint: "next.test" is not a valid address; write host:port, for example localhost:4317
c.yaml:10:20: exporters.otlp.tenant_header: "a b" is not a valid header name; use letters, digits, -, _ and .`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

type receiver struct{}

func (receiver) Start(context.Context) error { return nil }

func source() pipeline.Factory {
	return pipeline.Receiver("source", func() struct{} { return struct{}{} },
		func(pipeline.Settings, struct{}, pipeline.Consumer) (receiver, error) { return receiver{}, nil })
}
