package loadbalancing

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

func TestMain(m *testing.M) {
	server.RegisterCompressors() // before any test serves
	goleak.VerifyTestMain(m)
}

// hop is a backend that records the names of the spans that it accepts, by trace.
type hop struct {
	ptraceotlp.UnimplementedGRPCServer
	*pipelinetest.Hop

	mu       sync.Mutex
	respond  func(spans int) (rejected int, err error)
	requests int
	traces   map[otlpdata.TraceID][]string
	tenants  []string
}

func startHop(t testing.TB) *hop { return startHopAt(t, "127.0.0.1:0") }

func startHopAt(t testing.TB, addr string) *hop {
	t.Helper()
	h := &hop{traces: map[otlpdata.TraceID][]string{}}
	h.Hop = pipelinetest.StartHop(t, addr, func(s *grpc.Server) { ptraceotlp.RegisterGRPCServer(s, h) })
	return h
}

// Export records the spans and responds.
func (h *hop) Export(ctx context.Context, req ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests++
	md, _ := metadata.FromIncomingContext(ctx)
	h.tenants = append(h.tenants, md.Get("x-tenant")...)
	resp := ptraceotlp.NewExportResponse()
	if h.respond != nil {
		rejected, err := h.respond(req.Traces().SpanCount())
		if err != nil {
			return resp, err
		}
		resp.PartialSuccess().SetRejectedSpans(int64(rejected))
	}
	eachSpan(req.Traces(), func(s ptrace.Span) {
		id := otlpdata.TraceID(s.TraceID())
		h.traces[id] = append(h.traces[id], s.Name())
	})
	return resp, nil
}

// answer sets the error of all later requests.
func (h *hop) answer(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.respond = func(int) (int, error) { return 0, err }
}

// names returns the sorted names of all spans that were accepted.
func (h *hop) names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, names := range h.traces {
		all = append(all, names...)
	}
	slices.Sort(all)
	return all
}

func eachSpan(td ptrace.Traces, visit func(ptrace.Span)) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				visit(s)
			}
		}
	}
}

// traceID returns an id that is unique for each number.
func traceID(n int) (id otlpdata.TraceID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)+1)
	binary.BigEndian.PutUint64(id[8:], uint64(n)*7919)
	return id
}

// batch returns a batch with spans of several traces and services, named TRACE/NUMBER.
func batch(t testing.TB, tenant string, traces, spansPerTrace int) *otlpdata.Batch {
	t.Helper()
	td := ptrace.NewTraces()
	for service := range 2 {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", fmt.Sprintf("service-%d", service))
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName("scope")
		for n := range traces * spansPerTrace {
			if n%2 != service {
				continue
			}
			s := ss.Spans().AppendEmpty()
			trace := n % traces
			s.SetTraceID([16]byte(traceID(trace)))
			s.SetSpanID([8]byte{1, 2, 3, 4, 5, 6, byte(n >> 8), byte(n)})
			s.SetName(fmt.Sprintf("%d/%d", trace, n))
			s.Attributes().PutStr("key", fmt.Sprint(n%3))
		}
	}
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	return fromOTLP(t, b, tenant)
}

func fromOTLP(t testing.TB, encoded []byte, tenant string) *otlpdata.Batch {
	t.Helper()
	b, err := otlpdata.FromOTLP(encoded, otlpdata.Meta{Tenant: tenant}, otlpdata.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// names returns the sorted names of all spans of a batch.
func names(t testing.TB, b *otlpdata.Batch) []string {
	t.Helper()
	td, err := b.Traces()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	eachSpan(td, func(s ptrace.Span) { all = append(all, s.Name()) })
	slices.Sort(all)
	return all
}

// start starts an exporter. change completes the configuration; fixture may be nil.
func start(t testing.TB, f *pipelinetest.Fixture, change func(*config)) *exporter {
	t.Helper()
	c := defaults()
	c.Protocol.OTLP.TLS.Insecure = true
	change(&c)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	e, err := newExporter(f.Settings, c)
	if err != nil {
		t.Fatal(err)
	}
	pipelinetest.Start(t, e)
	return e
}

// static returns a change of the configuration: a fixed list of backends.
func static(hops ...*hop) func(*config) {
	return func(c *config) {
		var addresses []string
		for _, h := range hops {
			addresses = append(addresses, h.Addr)
		}
		c.Resolver.Static = pipeline.Present(staticConfig{addresses})
		c.Protocol.OTLP.WaitForReady = true
	}
}

func fixture() *pipelinetest.Fixture { return pipelinetest.NewFixture("load_balancing", 64<<20) }
