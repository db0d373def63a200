package thriftudp

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/agent"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/zipkincore"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server/udp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// names returns transport, format, service and name of all received spans, sorted.
func names(t testing.TB, s *pipelinetest.Sink) []string {
	t.Helper()
	all := []string{}
	for _, b := range s.Batches() {
		td, err := b.Traces()
		if err != nil {
			t.Fatal(err)
		}
		for _, rs := range td.ResourceSpans().All() {
			service, _ := rs.Resource().Attributes().Get("service.name")
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					all = append(all, b.Meta().Transport+" "+b.Meta().Format+" "+service.Str()+" "+span.Name())
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// fixture is a running receiver with all three listeners on free ports.
type fixture struct {
	*receiver
	*pipelinetest.Fixture
	t      testing.TB
	sink   *pipelinetest.Sink
	budget *pipeline.Budget
	stop   func()
}

func testConfig() config {
	c := defaults()
	c.Compact = pipeline.Present(udp.DefaultConfig("127.0.0.1:0"))
	c.Binary = pipeline.Present(udp.DefaultConfig("127.0.0.1:0"))
	c.Zipkin = pipeline.Present(udp.DefaultConfig("127.0.0.1:0"))
	return c
}

func start(t testing.TB, c config, budget int64, s *pipelinetest.Sink) *fixture {
	t.Helper()
	f := &fixture{Fixture: pipelinetest.NewFixture("thriftudp", budget), t: t, sink: s}
	f.budget = f.Settings.Budget
	f.receiver, f.stop = pipelinetest.StartReceiver(t, f.Fixture, s, func(set pipeline.Settings, next pipeline.Consumer) (*receiver, error) {
		return newReceiver(set, c, next)
	})
	return f
}

func (f *fixture) send(listener string, datagrams ...[]byte) {
	f.t.Helper()
	c, err := net.Dial("udp", f.Addr(listener))
	if err != nil {
		f.t.Fatal(err)
	}
	defer c.Close()
	for _, d := range datagrams {
		if _, err := c.Write(d); err != nil {
			f.t.Fatal(err)
		}
	}
}

// await waits until done returns true.
func (f *fixture) await(done func() bool) {
	f.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatal("timed out waiting for the condition")
		}
	}
}

// metrics returns the values of all metrics, by name and label values.
func (f *fixture) metrics() map[string]float64 {
	f.t.Helper()
	families, err := f.Registry.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	out := map[string]float64{}
	for _, fam := range families {
		for _, m := range fam.GetMetric() {
			key := fam.GetName()
			for _, l := range m.GetLabel() {
				key += " " + l.GetValue()
			}
			out[key] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return out
}

func (f *fixture) expect(want map[string]float64) {
	f.t.Helper()
	got := f.metrics()
	for name, v := range want {
		if g, ok := got[name]; !ok || g != v {
			f.t.Errorf("metric %s: got %v, want %v", name, g, v)
		}
	}
}

// message returns a datagram that calls the method.
func message(t testing.TB, enc native.Encoding, method string, args thrift.TStruct) []byte {
	t.Helper()
	buf := thrift.NewTMemoryBuffer()
	var p thrift.TProtocol = thrift.NewTCompactProtocolConf(buf, nil)
	if enc == native.Binary {
		strict := true
		p = thrift.NewTBinaryProtocolConf(buf, &thrift.TConfiguration{TBinaryStrictWrite: &strict})
	}
	ctx := context.Background()
	for _, err := range []error{
		p.WriteMessageBegin(ctx, method, thrift.ONEWAY, 0), args.Write(ctx, p), p.WriteMessageEnd(ctx), p.Flush(ctx),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return buf.Bytes()
}

// batch returns a batch of the service `cart` with one span per name.
func batch(names ...string) *agent.AgentEmitBatchArgs {
	b := &jaeger.Batch{Process: &jaeger.Process{ServiceName: "cart"}}
	for i, n := range names {
		b.Spans = append(b.Spans, &jaeger.Span{TraceIdLow: 1, SpanId: int64(i + 1), OperationName: n, Flags: 1,
			StartTime: 1_700_000_000_000_000, Duration: 100})
	}
	return &agent.AgentEmitBatchArgs{Batch: b}
}

// zipkinBatch is like batch, in the Zipkin model.
func zipkinBatch(names ...string) *agent.AgentEmitZipkinBatchArgs {
	host := &zipkincore.Endpoint{Ipv4: 0x7f000001, ServiceName: "cart"}
	var args agent.AgentEmitZipkinBatchArgs
	for i, n := range names {
		args.Spans = append(args.Spans, &zipkincore.Span{TraceID: 1, ID: int64(i + 1), Name: n,
			Annotations: []*zipkincore.Annotation{{Timestamp: 1_700_000_000_000_000, Value: zipkincore.SERVER_RECV, Host: host}}})
	}
	return &args
}
