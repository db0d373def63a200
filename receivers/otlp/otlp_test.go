package otlp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/trace"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// TestSDKExporters sends spans with the exporters of the OpenTelemetry SDK.
func TestSDKExporters(t *testing.T) {
	s := &pipelinetest.Sink{}
	f := start(t, testConfig(), 64<<20, s)
	ctx := t.Context()
	for name, open := range map[string]func() (*otlptrace.Exporter, error){
		"grpc": func() (*otlptrace.Exporter, error) {
			return otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL("http://"+f.Addr("grpc")), otlptracegrpc.WithCompressor("gzip"))
		},
		"http": func() (*otlptrace.Exporter, error) {
			return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(f.tracesURL()), otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
		},
	} {
		exp, err := open()
		if err != nil {
			t.Fatal(err)
		}
		provider := trace.NewTracerProvider(trace.WithBatcher(exp))
		for range 10 {
			_, span := provider.Tracer("test").Start(ctx, "work by "+name)
			span.End()
		}
		if err := provider.Shutdown(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s.Spans() != 20 {
		t.Errorf("%d spans received, want 20", s.Spans())
	}
	for _, b := range s.Batches() {
		m := b.Meta()
		if m.Format != "otlp" || m.Transport != "grpc" && m.Transport != "http" || m.Received != time.Unix(1_700_000_000, 0) {
			t.Errorf("meta: %+v", m)
		}
		td, err := b.Traces()
		if err != nil {
			t.Fatal(err)
		}
		if name := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Name(); name != "work by "+m.Transport {
			t.Errorf("%s: span %q", m.Transport, name)
		}
	}
}

// gRPC reuses its buffers for the next request.
func TestBatchOwnsItsBytes(t *testing.T) {
	s := &pipelinetest.Sink{}
	client := coltrace.NewTraceServiceClient(start(t, testConfig(), 0, s).dial(t))
	var sent [][]byte
	for i := range 50 {
		b := request(i * 5)
		sent = append(sent, b)
		var req coltrace.ExportTraceServiceRequest
		if err := proto.Unmarshal(b, &req); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Export(t.Context(), &req, grpc.UseCompressor([]string{"identity", "gzip", "zstd", "snappy"}[i%4])); err != nil {
			t.Fatal(err)
		}
	}
	for i, b := range s.Batches() {
		var got, want coltrace.ExportTraceServiceRequest
		encoded, _ := b.Encoded()
		if err := errors.Join(proto.Unmarshal(encoded, &got), proto.Unmarshal(sent[i], &want)); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(&got, &want) {
			t.Errorf("batch %d was modified", i)
		}
	}
}

func TestGRPCResponses(t *testing.T) {
	refuse := func(err error) func(context.Context, *otlpdata.Batch) error {
		return func(context.Context, *otlpdata.Batch) error { return err }
	}
	for name, c := range map[string]struct {
		err   error
		code  codes.Code
		retry time.Duration
	}{
		"success":    {nil, codes.OK, 0},
		"permanent":  {pipeline.Permanent(errors.New("bad spans")), codes.InvalidArgument, 0},
		"overloaded": {pipeline.Overloaded(errors.New("busy"), 3*time.Second), codes.ResourceExhausted, 3 * time.Second},
		"transient":  {errors.New("disk full"), codes.Unavailable, time.Second},
		"status":     {status.Error(codes.PermissionDenied, "no"), codes.PermissionDenied, 0},
	} {
		client := coltrace.NewTraceServiceClient(start(t, testConfig(), 0, &pipelinetest.Sink{Answer: refuse(c.err)}).dial(t))
		resp, err := client.Export(t.Context(), &coltrace.ExportTraceServiceRequest{})
		if status.Code(err) != c.code || retryDelay(err) != c.retry {
			t.Errorf("%s: %v, retry after %v", name, err, retryDelay(err))
		}
		if err == nil && (resp.GetPartialSuccess().GetRejectedSpans() != 0 || resp.GetPartialSuccess().GetErrorMessage() != "") {
			t.Errorf("%s: %v", name, resp)
		}
	}
	partial := refuse(&pipeline.Partial{Rejected: 2, Err: errors.New("too old\xff")})
	client := coltrace.NewTraceServiceClient(start(t, testConfig(), 0, &pipelinetest.Sink{Answer: partial}).dial(t))
	resp, err := client.Export(t.Context(), &coltrace.ExportTraceServiceRequest{})
	if p := resp.GetPartialSuccess(); err != nil || p.GetRejectedSpans() != 2 || !strings.Contains(p.GetErrorMessage(), "too old") {
		t.Errorf("partial: %v %v", resp, err)
	}
}

func retryDelay(err error) time.Duration {
	for _, d := range status.Convert(err).Details() {
		if ri, ok := d.(*errdetails.RetryInfo); ok {
			return ri.RetryDelay.AsDuration()
		}
	}
	return 0
}

func TestGRPCRefusals(t *testing.T) {
	c := testConfig(func(g *server.GRPCConfig, _ *httpConfig) { g.MaxRecvMsgSizeMiB = 1 })
	c.MaxSpans = 10
	s := &pipelinetest.Sink{}
	f := build(t, c, 32<<20, s)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn := f.dial(t)
	export := func(b []byte, opts ...grpc.CallOption) error {
		raw := server.Raw(b)
		return conn.Invoke(t.Context(), exportMethod, &raw, new(server.Raw), append(opts, grpc.ForceCodecV2(server.RawCodec()))...)
	}
	zeros := make([]byte, 8<<20)
	want := map[string]float64{}
	check := func(what, reason string, code codes.Code, err error) {
		t.Helper()
		want["protocols.grpc "+reason]++
		if status.Code(err) != code {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("garbage", server.ReasonUndecodable, codes.InvalidArgument, export([]byte("garbage")))
	check("many spans", server.ReasonTooLarge, codes.ResourceExhausted, export(request(11)))
	check("large", server.ReasonTooLarge, codes.ResourceExhausted, export(zeros))
	check("gzip bomb", server.ReasonTooLarge, codes.ResourceExhausted, export(zeros, grpc.UseCompressor("gzip")))
	check("zstd bomb", server.ReasonTooLarge, codes.ResourceExhausted, export(zeros, grpc.UseCompressor("zstd")))
	const profiles = collectorPrefix + "profiles.v1development.ProfilesService/Export"
	err := conn.Invoke(t.Context(), profiles, &emptypb.Empty{}, &emptypb.Empty{})
	check("profiles", reasonSignal, codes.Unimplemented, err)
	if !strings.Contains(err.Error(), "only traces and logs are accepted") {
		t.Errorf("profiles: %v", err)
	}
	if err := export(request(10)); err != nil || s.Spans() != 10 {
		t.Errorf("afterwards: %v, %d spans", err, s.Spans())
	}
	// gRPC sends some refusals before the server counts them.
	if err := f.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if got := f.Refused(t); !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

func TestGRPCOverBudget(t *testing.T) {
	s := &pipelinetest.Sink{}
	f := start(t, testConfig(func(g *server.GRPCConfig, _ *httpConfig) { g.MaxRecvMsgSizeMiB = 1 }), 8<<20, s)
	client := coltrace.NewTraceServiceClient(f.dial(t))
	other, err := f.budget.Reserve(7<<20 + 1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Export(t.Context(), &coltrace.ExportTraceServiceRequest{})
	if status.Code(err) != codes.ResourceExhausted || retryDelay(err) != time.Second {
		t.Errorf("over budget: %v, retry after %v", err, retryDelay(err))
	}
	if n := f.Refused(t)["protocols.grpc "+server.ReasonOverBudget]; n != 1 {
		t.Errorf("counted %v", n)
	}
	other.Release()
	if _, err := client.Export(t.Context(), &coltrace.ExportTraceServiceRequest{}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Walking an empty attribute of 2 bytes takes 60 bytes of memory.
func TestWalkMemoryIsCharged(t *testing.T) {
	s := &pipelinetest.Sink{}
	f := start(t, testConfig(func(g *server.GRPCConfig, _ *httpConfig) { g.MaxRecvMsgSizeMiB = 1 }), 4<<20, s)
	conn := f.dial(t)
	export := func(attributes int) error {
		span := bytes.Repeat([]byte{9<<3 | 2, 0}, attributes)
		for _, num := range []byte{2, 2, 1} { // ScopeSpans.spans, ResourceSpans.scope_spans, resource_spans
			span = append(binary.AppendUvarint([]byte{num<<3 | 2}, uint64(len(span))), span...)
		}
		raw := server.Raw(span)
		return conn.Invoke(t.Context(), exportMethod, &raw, new(server.Raw), grpc.ForceCodecV2(server.RawCodec()))
	}
	s.Answer = func(context.Context, *otlpdata.Batch) error {
		if used := f.budget.Used(); used < 1<<20 || used > 3<<20 {
			t.Errorf("%d bytes reserved", used)
		}
		return nil
	}
	if err := export(20_000); err != nil || s.Spans() != 1 {
		t.Errorf("20,000 attributes: %v", err)
	}
	if err := export(100_000); status.Code(err) != codes.ResourceExhausted || retryDelay(err) != 0 {
		t.Errorf("larger than the budget: %v", err)
	}
}

func TestHealthNames(t *testing.T) {
	health := healthpb.NewHealthClient(start(t, testConfig(), 0, &pipelinetest.Sink{}).dial(t))
	for _, name := range []string{"", traceService} {
		resp, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
		if err != nil || resp.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v %v", name, resp, err)
		}
	}
}

// Stops under load: every acknowledged span was consumed.
func TestStopDrains(t *testing.T) {
	s := &pipelinetest.Sink{}
	f := build(t, testConfig(), 64<<20, s)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := coltrace.NewTraceServiceClient(f.dial(t))
	body, url := request(1), f.tracesURL()
	hc := &http.Client{Transport: &http.Transport{}}
	defer hc.CloseIdleConnections()
	send := map[string]func() bool{
		"grpc": func() bool {
			_, err := client.Export(context.Background(), &coltrace.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{
				{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: "x"}}}}}}})
			return err == nil
		},
		"http": func() bool {
			resp, err := hc.Post(url, "application/x-protobuf", bytes.NewReader(body))
			if err != nil {
				return false
			}
			resp.Body.Close()
			return resp.StatusCode == 200
		},
	}
	var acked atomic.Int64
	enough, done := make(chan bool, 1000), make(chan bool)
	for _, one := range send {
		for range 4 {
			go func() {
				for one() {
					acked.Add(1)
					select {
					case enough <- true:
					default:
					}
				}
				done <- true
			}()
		}
	}
	for range 100 {
		<-enough
	}
	if err := f.Stop(t.Context()); err != nil {
		t.Errorf("Stop: %v", err)
	}
	for range 8 {
		<-done
	}
	if got := int64(s.Spans()); acked.Load() != got {
		t.Errorf("%d spans acknowledged, %d consumed", acked.Load(), got)
	}
	if used := f.budget.Used(); used != 0 {
		t.Errorf("%d bytes are still reserved", used)
	}
}

func TestFailedStartStopsOtherListeners(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c := testConfig(func(_ *server.GRPCConfig, h *httpConfig) { h.Endpoint = pipeline.Endpoint(ln.Addr().String()) })
	f := build(t, c, 0, &pipelinetest.Sink{})
	if err := f.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "protocols.http.endpoint: cannot listen on") {
		t.Fatalf("got %v", err)
	}
	if addr := f.Addr("grpc"); addr != "" {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			t.Error("gRPC is still open")
		}
	}
}

func TestConfig(t *testing.T) {
	c := defaults()
	var key *pipeline.KeyError
	if err := c.Validate(); !errors.As(err, &key) || key.Key != "protocols" {
		t.Errorf("no protocol: %v", err)
	}
	c = testConfig(func(_ *server.GRPCConfig, h *httpConfig) { h.TracesPath = "traces" })
	h, _ := c.Protocols.HTTP.Get()
	if err := errors.Join(c.Validate(), h.HTTPConfig.Validate()); err != nil {
		t.Errorf("valid config: %v", err)
	}
	if err := h.Validate(); !errors.As(err, &key) || key.Key != "traces_url_path" {
		t.Errorf("path without slash: %v", err)
	}
	c.MaxSpans, c.MaxDepth = 0, -1
	if err := errors.Join(c.Validate(), c.RequestLimits.Validate()); err == nil || !strings.Contains(err.Error(), "from 1 to") {
		t.Errorf("disabled limits: %v", err)
	}
	if f := Factory(); f.Type() != "otlp" || f.Kind() != pipeline.KindReceiver || f.Summary() == "" {
		t.Errorf("factory: %v %v %q", f.Type(), f.Kind(), f.Summary())
	}
}
