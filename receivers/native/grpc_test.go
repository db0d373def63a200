package native

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

var serviceNames = []string{"tracing.api_v2.CollectorService", "jaeger.api_v2.CollectorService"}

// post calls PostSpans under one of the service's names.
func post(ctx context.Context, conn *grpc.ClientConn, service string, body []byte, opts ...grpc.CallOption) ([]byte, error) {
	req, resp := server.Raw(body), server.Raw{}
	err := conn.Invoke(ctx, "/"+service+"/PostSpans", &req, &resp, append(opts, grpc.ForceCodecV2(server.RawCodec()))...)
	return resp, err
}

func TestPostSpans(t *testing.T) {
	s := &pipelinetest.Sink{}
	conn := start(t, testConfig(), 64<<20, s).dial(t)
	for i, name := range serviceNames {
		for _, compression := range []string{"identity", "gzip"} {
			if resp, err := post(t.Context(), conn, name, protoRequest(i+1), grpc.UseCompressor(compression)); err != nil ||
				len(resp) != 0 {
				t.Errorf("%s, %s: %q %v", name, compression, resp, err)
			}
		}
	}
	want := [][]string{{"cart get 0"}, {"cart get 0"}, {"cart get 0", "cart get 1"}, {"cart get 0", "cart get 1"}}
	for i, b := range s.Batches() {
		if m := b.Meta(); m.Format != "tracing" || m.Transport != "grpc" || m.Received != time.Unix(1_700_000_000, 0) || m.Tenant != "" {
			t.Errorf("meta: %+v", m)
		}
		if got := spanNames(t, b); !slices.Equal(got, want[i]) {
			t.Errorf("request %d: %v", i, got)
		}
	}
	for name, body := range map[string]string{"no batch": "", "empty batch": "\x0a\x00", "span without process": "\x0a\x02\x0a\x00"} {
		if _, err := post(t.Context(), conn, serviceNames[1], []byte(body)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGRPCResponses(t *testing.T) {
	var result error
	f := start(t, testConfig(), 0, &pipelinetest.Sink{Answer: func(context.Context, *otlpdata.Batch) error { return result }})
	conn := f.dial(t)
	for name, c := range map[string]struct {
		err   error
		code  codes.Code
		retry time.Duration
	}{
		"success":    {nil, codes.OK, 0},
		"partial":    {&pipeline.Partial{Rejected: 1, Err: errors.New("too old")}, codes.OK, 0},
		"permanent":  {pipeline.Permanent(errors.New("bad spans")), codes.InvalidArgument, 0},
		"overloaded": {pipeline.Overloaded(errors.New("busy"), 3*time.Second), codes.ResourceExhausted, 3 * time.Second},
		"transient":  {errors.New("disk full"), codes.Unavailable, time.Second},
		"status":     {status.Error(codes.PermissionDenied, "no"), codes.PermissionDenied, 0},
	} {
		result = c.err
		_, err := post(t.Context(), conn, serviceNames[1], protoRequest(2))
		if status.Code(err) != c.code || retryDelay(err) != c.retry {
			t.Errorf("%s: %v, retry after %v", name, err, retryDelay(err))
		}
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
	c := testConfig(func(g *server.GRPCConfig, _ *server.HTTPConfig) { g.MaxRecvMsgSizeMiB = 1 })
	c.MaxSpans, c.MaxItems = 10, 1000
	s := &pipelinetest.Sink{}
	f := build(t, c, 32<<20, s)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn := f.dial(t)
	want := map[string]float64{}
	check := func(what, reason string, code codes.Code, text string, body []byte, opts ...grpc.CallOption) {
		t.Helper()
		want["protocols.grpc "+reason]++
		_, err := post(t.Context(), conn, serviceNames[1], body, opts...)
		if status.Code(err) != code || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	zeros := make([]byte, 8<<20)
	check("garbage", server.ReasonUndecodable, codes.Internal, "", []byte("garbage"))
	check("short trace id", server.ReasonUndecodable, codes.Internal, "invalid length for TraceID", []byte("\x0a\x05\x0a\x03\x0a\x01\x01"))
	check("short span id", server.ReasonUndecodable, codes.Internal, "invalid length for SpanID", []byte("\x0a\x05\x0a\x03\x12\x01\x01"))
	check("length without bytes", server.ReasonUndecodable, codes.Internal, "", []byte("\x0a\xff\xff\xff\xff\x07"))
	check("many spans", server.ReasonTooLarge, codes.ResourceExhausted, "more than 10", protoRequest(11))
	check("many tags", server.ReasonUndecodable, codes.InvalidArgument, "more than 1000", smallTags(2000))
	check("large", server.ReasonTooLarge, codes.ResourceExhausted, "larger than max", zeros)
	check("gzip bomb", server.ReasonTooLarge, codes.ResourceExhausted, "larger than max", zeros, grpc.UseCompressor("gzip"))
	if _, err := post(t.Context(), conn, serviceNames[0], protoRequest(10)); err != nil || s.Spans() != 10 {
		t.Errorf("afterwards: %v, %d spans", err, s.Spans())
	}
	for _, method := range []string{"/tracing.api_v2.CollectorService/Nothing", "/tracing.api_v2.SamplingManager/GetSamplingStrategy"} {
		req := server.Raw{}
		if err := conn.Invoke(t.Context(), method, &req, &req,
			grpc.ForceCodecV2(server.RawCodec())); status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: %v", method, err)
		}
		want["protocols.grpc "+server.ReasonProtocol]++
	}
	// gRPC sends some refusals before the server counts them.
	if err := f.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if got := f.Refused(t); !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

func TestGRPCTenants(t *testing.T) {
	s := &pipelinetest.Sink{}
	tenancy := server.TenancyConfig{Enabled: true, Header: "x-tenant", Tenants: []string{"a", "b"}}
	conn := start(t, testConfig(func(g *server.GRPCConfig, _ *server.HTTPConfig) { g.Tenancy = pipeline.Present(tenancy) }), 0, s).dial(t)
	for want, tenants := range map[string][]string{"": {"a"}, "missing tenant header": nil, "extra tenant header": {"a", "b"},
		"unknown tenant": {"c"}} {
		ctx := t.Context()
		for _, tenant := range tenants {
			ctx = metadata.AppendToOutgoingContext(ctx, "x-tenant", tenant)
		}
		_, err := post(ctx, conn, serviceNames[1], protoRequest(1))
		if want == "" && err != nil || want != "" && (status.Code(err) != codes.PermissionDenied || status.Convert(err).Message() != want) {
			t.Errorf("%v: %v", tenants, err)
		}
	}
	if len(s.Batches()) != 1 || s.Batches()[0].Meta().Tenant != "a" {
		t.Errorf("%d requests accepted, want 1", len(s.Batches()))
	}
}

func TestHealthAndReflection(t *testing.T) {
	conn := start(t, testConfig(), 0, &pipelinetest.Sink{}).dial(t)
	for _, name := range append(serviceNames, "") {
		resp, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
		if err != nil || resp.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v %v", name, resp, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	request := func(req *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
		if err := stream.Send(req); err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	list := request(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	for _, name := range serviceNames {
		if !slices.ContainsFunc(list.GetListServicesResponse().GetService(),
			func(s *reflectionpb.ServiceResponse) bool { return s.Name == name }) {
			t.Errorf("%s is not listed", name)
		}
		found := request(&reflectionpb.ServerReflectionRequest{
			MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: name}})
		if len(found.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
			t.Errorf("no descriptor for %s: %v", name, found)
		}
	}
}

// Translating a tag of 5 bytes takes 100 bytes of memory.
func TestTranslationIsCharged(t *testing.T) {
	s := &pipelinetest.Sink{}
	f := start(t, testConfig(func(g *server.GRPCConfig, _ *server.HTTPConfig) { g.MaxRecvMsgSizeMiB = 1 }), 8<<20, s)
	conn := f.dial(t)
	other, err := f.budget.Reserve(6 << 20)
	if err != nil {
		t.Fatal(err)
	}
	_, err = post(t.Context(), conn, serviceNames[1], smallTags(20_000))
	if status.Code(err) != codes.ResourceExhausted || retryDelay(err) != time.Second {
		t.Errorf("over budget: %v, retry after %v", err, retryDelay(err))
	}
	other.Release()
	s.Answer = func(context.Context, *otlpdata.Batch) error {
		if used := f.budget.Used(); used < 1<<20 || used > 3<<20 {
			t.Errorf("%d bytes reserved", used)
		}
		return nil
	}
	if _, err := post(t.Context(), conn, serviceNames[1], smallTags(20_000)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if _, err := post(t.Context(), conn, serviceNames[1], smallTags(100_000)); status.Code(err) != codes.ResourceExhausted ||
		retryDelay(err) != 0 {
		t.Errorf("larger than the budget: %v", err)
	}
	if n := f.Refused(t); n["protocols.grpc "+server.ReasonOverBudget] != 1 || n["protocols.grpc "+server.ReasonTooLarge] != 1 {
		t.Errorf("counted %v", n)
	}
}

// smallTags returns a request with one span and n tags that have only a key.
func smallTags(n int) []byte {
	b := bytes.Repeat([]byte{8<<3 | 2, 3, 1<<3 | 2, 1, 'k'}, n)
	for range 2 { // Batch.spans, PostSpansRequest.batch
		b = append(binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(b))), b...)
	}
	return b
}

func TestFailedStartStopsOtherListeners(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c := testConfig(func(_ *server.GRPCConfig, h *server.HTTPConfig) { h.Endpoint = pipeline.Endpoint(ln.Addr().String()) })
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
	c = testConfig()
	if err := errors.Join(c.Validate(), c.RequestLimits.Validate()); err != nil {
		t.Errorf("valid config: %v", err)
	}
	c.MaxSpans, c.MaxItems = 0, -1
	if err := errors.Join(c.Validate(), c.RequestLimits.Validate()); err == nil || strings.Count(err.Error(), "from 1 to") != 2 {
		t.Errorf("disabled limits: %v", err)
	}
	if f := Factory(); f.Type() != "native" || f.Kind() != pipeline.KindReceiver || f.Summary() == "" {
		t.Errorf("factory: %v %v %q", f.Type(), f.Kind(), f.Summary())
	}
}

// growingSpans returns a request with n spans whose translation is nearly ten times as large: each
// has an unknown flag and an empty warning.
func growingSpans(n int) []byte {
	span := []byte{0x0a, 4, 0x28, 3, 0x62, 0}
	return protowire.AppendBytes([]byte{0x0a}, bytes.Repeat(span, n)) // the batch; each span is a field
}

// A translation that grows much more than usual is charged before it allocates.
func TestGrowingSpansAreCharged(t *testing.T) {
	const n = 100_000
	body := growingSpans(n)
	for budget, want := range map[int64]codes.Code{64 << 20: codes.OK, 8 << 20: codes.ResourceExhausted} {
		f := build(t, testConfig(), budget, &pipelinetest.Sink{})
		raw := server.Raw(body)
		_, err := f.receiver.grpc.consume(t.Context(), &raw)
		if status.Code(err) != want || f.budget.Used() != 0 || want == codes.OK && f.sink.Spans() != n {
			t.Errorf("budget of %d bytes: %v, %d spans, %d bytes still reserved", budget, err, f.sink.Spans(), f.budget.Used())
		}
		if peak := f.budget.Peak(); want == codes.OK && peak < 2*9*int64(len(body)) {
			t.Errorf("%d bytes charged for %d bytes of input", peak, len(body))
		}
	}
}
