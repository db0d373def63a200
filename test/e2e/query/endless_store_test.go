package query_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
	"github.com/tracing-backend/tracing/test/harness"
)

// endlessStore is a remote storage server that sends spans of a trace without end, and services in
// a message that is too large.
type endlessStore struct {
	storage_v2.UnimplementedTraceReaderServer
	storage_v2.UnimplementedCapabilitiesServer
}

func (endlessStore) GetCapabilities(context.Context, *storage_v2.GetCapabilitiesRequest) (*storage_v2.GetCapabilitiesResponse, error) {
	return &storage_v2.GetCapabilitiesResponse{}, nil
}

func (endlessStore) GetTraces(req *storage_v2.GetTracesRequest, s grpc.ServerStreamingServer[tracepb.TracesData]) error {
	name := &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: "endless"}}
	service := &commonpb.KeyValue{Key: "service.name", Value: name}
	for n := uint64(1); ; n++ {
		err := s.Send(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
			Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{service}},
			ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{
				TraceId: req.GetQuery()[0].GetTraceId(), SpanId: binary.BigEndian.AppendUint64(nil, n), Name: strings.Repeat("x", 100_000)}}}},
		}}})
		if err != nil {
			return err
		}
	}
}

func (endlessStore) GetServices(context.Context, *storage_v2.GetServicesRequest) (*storage_v2.GetServicesResponse, error) {
	return &storage_v2.GetServicesResponse{Services: []string{strings.Repeat("x", 80<<20)}}, nil
}

// TestEndlessStore checks that a store without end does not deny the spans of another one: its part
// is cut, and the response names it. A message above the limit of the client is 502.
func TestEndlessStore(t *testing.T) {
	ln, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	for _, desc := range []grpc.ServiceDesc{storage_v2.TraceReader_ServiceDesc, storage_v2.Capabilities_ServiceDesc} {
		desc.ServiceName = wire.Original(desc.ServiceName)
		srv.RegisterService(&desc, endlessStore{})
	}
	go srv.Serve(ln) //nolint:errcheck // until Stop
	defer srv.Stop()
	good := runCollector(t, t.TempDir(), "localhost:0")
	id := hex.EncodeToString(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, 1), 2))
	good.PostJSON(harness.JSONSpan(id, "checkout", "pay", time.Now(), time.Second))
	query := func(stores string) *harness.Process {
		p := harness.RunYAML(t, fmt.Sprintf(`
exporters: {grpc: {endpoints: [%s], tls: {insecure: true}}}
extensions: {query: {storage: grpc, http: {endpoint: "localhost:0"}}}
service: {data_dir: %q, extensions: [query], limits: {query_memory: 32MiB}}
`, stores, t.TempDir()))
		p.AwaitReady()
		return p
	}
	both := query(good.store + ", " + ln.Addr().String())
	for range 3 {
		status, body := answerOf(t, both.QueryURL()+"/api/traces/"+id)
		if status != http.StatusOK || !strings.Contains(body, harness.JSONSpanID) || !strings.Contains(body, "store "+ln.Addr().String()) ||
			!strings.Contains(body, "memory") {
			t.Errorf("trace: %d %.200s...%s; want the span of the good store, and the name of the other",
				status, body, body[max(0, len(body)-400):])
		}
	}
	alone := query(ln.Addr().String())
	if status, body := answerOf(t, alone.QueryURL()+"/api/services"); status != http.StatusBadGateway {
		t.Errorf("services: %d %.300s; want 502", status, body)
	}
}
