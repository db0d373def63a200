package otlp

import (
	"context"
	"sync"
	"testing"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

func TestMain(m *testing.M) {
	server.RegisterCompressors() // before any test serves
	goleak.VerifyTestMain(m)
}

// nextHop is an OTLP server with preset responses.
type nextHop struct {
	coltracepb.UnimplementedTraceServiceServer
	*pipelinetest.Hop

	mu      sync.Mutex
	respond func(context.Context) (*coltracepb.ExportTraceServiceResponse, error)
	header  metadata.MD
	bytes   []byte // of the last request
	spans   int    // of the last request
	raw     []byte // sent instead of the response if not nil
}

func startHop(t testing.TB) *nextHop {
	t.Helper()
	h := &nextHop{}
	h.Hop = pipelinetest.StartHop(t, "127.0.0.1:0", func(srv *grpc.Server) { coltracepb.RegisterTraceServiceServer(srv, h) },
		grpc.ForceServerCodecV2(&spyCodec{encoding.GetCodecV2(proto.Name), h}), grpc.MaxRecvMsgSize(64<<20))
	return h
}

// Export records the request and responds.
func (h *nextHop) Export(ctx context.Context, req *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	h.mu.Lock()
	h.header, _ = metadata.FromIncomingContext(ctx)
	h.spans = 0
	for _, rs := range req.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			h.spans += len(ss.GetSpans())
		}
	}
	respond := h.respond
	h.mu.Unlock()
	if respond == nil {
		return &coltracepb.ExportTraceServiceResponse{}, nil
	}
	return respond(ctx)
}

func (h *nextHop) respondWith(resp *coltracepb.ExportTraceServiceResponse, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.respond = func(context.Context) (*coltracepb.ExportTraceServiceResponse, error) { return resp, err }
}

// spyCodec records the bytes of requests and can replace the bytes of responses.
type spyCodec struct {
	encoding.CodecV2
	hop *nextHop
}

func (c *spyCodec) Unmarshal(data mem.BufferSlice, v any) error {
	c.hop.mu.Lock()
	c.hop.bytes = data.Materialize()
	c.hop.mu.Unlock()
	return c.CodecV2.Unmarshal(data, v)
}

func (c *spyCodec) Marshal(v any) (mem.BufferSlice, error) {
	c.hop.mu.Lock()
	defer c.hop.mu.Unlock()
	if c.hop.raw != nil {
		return mem.BufferSlice{mem.SliceBuffer(c.hop.raw)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func start(t testing.TB, endpoint string, change func(*config)) (*exporter, *pipelinetest.Fixture) {
	t.Helper()
	return startIn(t, pipeline.SystemEnv(), endpoint, change)
}

func startIn(t testing.TB, env pipeline.Env, endpoint string, change func(*config)) (*exporter, *pipelinetest.Fixture) {
	t.Helper()
	c := defaults()
	c.Endpoint, c.TLS.Insecure, c.WaitForReady = endpoint, true, true
	if change != nil {
		change(&c)
	}
	f := pipelinetest.NewFixture("otlp", 0)
	f.Settings.Env = env
	e, err := newExporter(f.Settings, c)
	if err != nil {
		t.Fatal(err)
	}
	pipelinetest.Start(t, e)
	return e, f
}

// batch returns an encoded batch of n spans.
func batch(t testing.TB, tenant string, n int) *otlpdata.Batch {
	t.Helper()
	return pipelinetest.Batch(t, otlpdata.Meta{Tenant: tenant}, n)
}
