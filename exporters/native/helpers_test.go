package native

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

func TestMain(m *testing.M) {
	server.RegisterCompressors() // before any test serves
	goleak.VerifyTestMain(m)
}

// collector is a fake of an existing collector. It has only the original service name and decodes
// strictly.
type collector struct {
	api_v2.UnimplementedCollectorServiceServer
	*pipelinetest.Hop

	mu      sync.Mutex
	respond func(context.Context, *api_v2.Batch) error // nil accepts all batches
	header  metadata.MD
	batches []int    // number of spans of each accepted batch
	names   []string // of accepted spans
}

func startCollector(t testing.TB, opts ...grpc.ServerOption) *collector {
	t.Helper()
	return startCollectorAt(t, "127.0.0.1:0", opts...)
}

func startCollectorAt(t testing.TB, addr string, opts ...grpc.ServerOption) *collector {
	t.Helper()
	c := &collector{}
	desc := api_v2.CollectorService_ServiceDesc
	desc.ServiceName = "jaeger.api_v2.CollectorService"
	c.Hop = pipelinetest.StartHop(t, addr, func(srv *grpc.Server) { srv.RegisterService(&desc, c) }, opts...)
	return c
}

// PostSpans records accepted spans.
func (c *collector) PostSpans(ctx context.Context, r *api_v2.PostSpansRequest) (*api_v2.PostSpansResponse, error) {
	c.mu.Lock()
	c.header, _ = metadata.FromIncomingContext(ctx)
	respond := c.respond
	c.mu.Unlock()
	if respond != nil {
		if err := respond(ctx, r.GetBatch()); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batches = append(c.batches, len(r.GetBatch().GetSpans()))
	for _, s := range r.GetBatch().GetSpans() {
		c.names = append(c.names, s.GetOperationName())
	}
	return &api_v2.PostSpansResponse{}, nil
}

func (c *collector) respondWith(respond func(context.Context, *api_v2.Batch) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.respond = respond
}

func (c *collector) returnError(err error) {
	c.respondWith(func(context.Context, *api_v2.Batch) error { return err })
}

// received returns the numbers of accepted messages and spans. Duplicate spans are test errors.
func (c *collector) received(t testing.TB) (messages, spans int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	names := slices.Clone(c.names)
	slices.Sort(names)
	if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) {
		t.Errorf("%d spans received, only %d distinct", len(names), len(unique))
	}
	return len(c.batches), len(names)
}

// fixture records the logs, metrics and reports of an exporter under test.
type fixture struct{ *pipelinetest.Fixture }

func newFixture() *fixture { return &fixture{pipelinetest.NewFixture("native", 0)} }

// metrics returns the metrics that are not 0, one per line, without the prefix tracing_agent_.
func (f *fixture) metrics(t testing.TB) string {
	t.Helper()
	families, err := f.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if value == 0 {
				continue
			}
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			lines = append(lines, fmt.Sprintf("%s %s %g", strings.TrimPrefix(family.GetName(), "tracing_agent_"), strings.Join(labels, " "), value))
		}
	}
	return strings.Join(lines, "\n")
}

// awaitDisconnected waits until the metrics show no connection. gRPC reports its end after the
// calls on it have failed.
func (f *fixture) awaitDisconnected(t testing.TB) {
	t.Helper()
	for strings.Contains(f.metrics(t), "collector_connected") {
		if t.Context().Err() != nil {
			t.Fatal("still connected")
		}
		runtime.Gosched()
	}
}

func (f *fixture) start(t testing.TB, endpoint string, change func(*config)) *exporter {
	t.Helper()
	c := defaults()
	c.Endpoint, c.TLS.Insecure, c.WaitForReady = endpoint, true, true
	if change != nil {
		change(&c)
	}
	e, err := newExporter(f.Settings, c)
	if err != nil {
		t.Fatal(err)
	}
	pipelinetest.Start(t, e)
	return e
}

// batch returns an encoded batch of n spans.
func batch(t testing.TB, tenant string, n int) *otlpdata.Batch {
	t.Helper()
	return pipelinetest.Batch(t, otlpdata.Meta{Tenant: tenant, Format: "tracing"}, n)
}
