package grpc

import (
	"context"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing/internal/translate/remotestore"
	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/internal/wire/storage_v1"
	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

func TestMain(m *testing.M) {
	server.RegisterCompressors() // before any test serves
	goleak.VerifyTestMain(m)
}

// fake is a server with the original service names only. It has the services that a test registers.
type fake struct {
	coltracepb.UnimplementedTraceServiceServer
	storage_v1.UnimplementedSpanWriterPluginServer
	storage_v1.UnimplementedStreamingSpanWriterPluginServer
	storage_v1.UnimplementedArchiveSpanWriterPluginServer

	mu      sync.Mutex
	calls   []string
	header  metadata.MD   // of the last call
	headers []metadata.MD // of all calls
	written []string      // names of spans with the method that wrote them
	write   func(name string) error
}

func (f *fake) record(ctx context.Context, method string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, method)
	f.header, _ = metadata.FromIncomingContext(ctx)
	f.headers = append(f.headers, f.header)
}

// methodName returns the full name of a method without the first part of its package.
func methodName(full string) string {
	_, name, _ := strings.Cut(full, ".")
	return name
}

// callsOf returns the number of calls of a method.
func (f *fake) callsOf(method string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c == method {
			n++
		}
	}
	return n
}

func (f *fake) accept(how, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.write != nil {
		if err := f.write(name); err != nil {
			return err
		}
	}
	f.written = append(f.written, how+" "+name)
	return nil
}

// Export accepts spans in OTLP.
func (f *fake) Export(_ context.Context, r *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	for _, rs := range r.GetResourceSpans() {
		for _, s := range rs.GetScopeSpans()[0].GetSpans() {
			if err := f.accept("v2", s.GetName()); err != nil {
				return nil, err
			}
		}
	}
	return &coltracepb.ExportTraceServiceResponse{}, nil
}

// WriteSpan accepts a span.
func (f *fake) WriteSpan(_ context.Context, r *storage_v1.WriteSpanRequest) (*storage_v1.WriteSpanResponse, error) {
	return &storage_v1.WriteSpanResponse{}, f.accept("v1", r.GetSpan().GetOperationName()+"@"+r.GetSpan().GetProcess().GetServiceName())
}

// WriteSpanStream accepts a stream of spans.
func (f *fake) WriteSpanStream(stream grpc.ClientStreamingServer[storage_v1.WriteSpanRequest, storage_v1.WriteSpanResponse]) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return stream.SendAndClose(&storage_v1.WriteSpanResponse{})
		}
		if err := f.accept("stream", r.GetSpan().GetOperationName()); err != nil {
			return err
		}
	}
}

// reader1 and reader2 implement the readers of v1 and v2.
type reader1 struct {
	storage_v1.UnimplementedSpanReaderPluginServer
	get        func(*storage_v1.GetTraceRequest, grpc.ServerStreamingServer[storage_v1.SpansResponseChunk]) error
	operations *storage_v1.GetOperationsResponse
}

func (r *reader1) GetTrace(req *storage_v1.GetTraceRequest, s grpc.ServerStreamingServer[storage_v1.SpansResponseChunk]) error {
	return r.get(req, s)
}

func (r *reader1) GetOperations(context.Context, *storage_v1.GetOperationsRequest) (*storage_v1.GetOperationsResponse, error) {
	return r.operations, nil
}

type reader2 struct {
	storage_v2.UnimplementedTraceReaderServer
	services []string
	cut      string // why services are missing
	find     func(*storage_v2.TraceQueryParameters, grpc.ServerStreamingServer[tracepb.TracesData]) error
	get      func(*storage_v2.GetTraceParams, grpc.ServerStreamingServer[tracepb.TracesData]) error
}

func (r *reader2) GetTraces(req *storage_v2.GetTracesRequest, s grpc.ServerStreamingServer[tracepb.TracesData]) error {
	return r.get(req.GetQuery()[0], s)
}

func (r *reader2) GetServices(ctx context.Context, _ *storage_v2.GetServicesRequest) (*storage_v2.GetServicesResponse, error) {
	if r.cut != "" {
		_ = grpc.SetTrailer(ctx, metadata.Pairs(remotestore.IncompleteTrailer, r.cut))
	}
	return &storage_v2.GetServicesResponse{Services: r.services}, nil
}

func (r *reader2) FindTraces(req *storage_v2.FindTracesRequest, s grpc.ServerStreamingServer[tracepb.TracesData]) error {
	return r.find(req.GetQuery(), s)
}

type capabilities1 struct {
	storage_v1.UnimplementedPluginCapabilitiesServer
	can *storage_v1.CapabilitiesResponse
}

func (c *capabilities1) Capabilities(context.Context, *storage_v1.CapabilitiesRequest) (*storage_v1.CapabilitiesResponse, error) {
	return c.can, nil
}

type capabilities2 struct {
	storage_v2.UnimplementedCapabilitiesServer
	search *storage_v2.SearchCapabilities
}

func (c *capabilities2) GetCapabilities(context.Context, *storage_v2.GetCapabilitiesRequest) (*storage_v2.GetCapabilitiesResponse, error) {
	return &storage_v2.GetCapabilitiesResponse{Search: c.search}, nil
}

// serve runs a server with the given services, and returns its address and a function that stops
// it.
func (f *fake) serve(t testing.TB, addr string, parts ...any) (string, func()) {
	t.Helper()
	register := func(srv *grpc.Server) {
		original := func(desc grpc.ServiceDesc, part any) {
			desc.ServiceName = wire.Original(desc.ServiceName)
			srv.RegisterService(&desc, part)
		}
		for _, part := range parts {
			switch part := part.(type) {
			case *capabilities1:
				original(storage_v1.PluginCapabilities_ServiceDesc, part)
			case *capabilities2:
				original(storage_v2.Capabilities_ServiceDesc, part)
			case *reader1:
				original(storage_v1.SpanReaderPlugin_ServiceDesc, part)
			case *reader2:
				original(storage_v2.TraceReader_ServiceDesc, part)
				srv.RegisterService(&coltracepb.TraceService_ServiceDesc, f)
			case *storeServer:
				part.register(srv)
			case *fake:
				original(storage_v1.SpanWriterPlugin_ServiceDesc, part)
				original(storage_v1.StreamingSpanWriterPlugin_ServiceDesc, part)
			}
		}
	}
	unary := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		f.record(ctx, methodName(info.FullMethod))
		return next(ctx, req)
	}
	stream := func(s any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		f.record(ss.Context(), methodName(info.FullMethod))
		return next(s, ss)
	}
	hop := pipelinetest.StartHop(t, addr, register, grpc.UnaryInterceptor(unary), grpc.StreamInterceptor(stream),
		grpc.ForceServerCodecV2(server.RawCodec()))
	return hop.Addr, hop.Stop
}

// start starts an exporter for an address.
func start(t testing.TB, addr string, change func(*config)) *exporter {
	t.Helper()
	c := defaults()
	c.Endpoint, c.TLS.Insecure, c.WaitForReady, c.Compression = addr, true, true, "none"
	if change != nil {
		change(&c)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	e, err := newExporter(pipelinetest.NewFixture("grpc", 0).Settings, c)
	if err != nil {
		t.Fatal(err)
	}
	pipelinetest.Start(t, e)
	return e
}

// spans returns a batch with one trace with one span for each name.
func spans(t testing.TB, tenant string, names ...string) *otlpdata.Batch {
	t.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "shop")
	ss := rs.ScopeSpans().AppendEmpty()
	for i, name := range names {
		s := ss.Spans().AppendEmpty()
		s.SetName(name)
		s.SetTraceID([16]byte{15: byte(i + 1)})
		s.SetSpanID([8]byte{7: 1})
		s.SetStartTimestamp(1_700_000_000_000_000_000)
		s.SetEndTimestamp(s.StartTimestamp() + 1000)
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

// trace returns a TracesData with one span.
func trace(id byte, name string, start uint64) *tracepb.TracesData {
	return &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{
		{TraceId: append(make([]byte, 15), id), SpanId: []byte{1, 1, 1, 1, 1, 1, 1, 1}, Name: name, StartTimeUnixNano: start}}}}}}}
}
