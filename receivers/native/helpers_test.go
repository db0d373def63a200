package native

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a running receiver with both protocols on free ports.
type fixture struct {
	*receiver
	*pipelinetest.Fixture
	sink   *pipelinetest.Sink
	budget *pipeline.Budget
}

func testConfig(change ...func(*server.GRPCConfig, *server.HTTPConfig)) config {
	g, h := server.DefaultGRPCConfig("127.0.0.1:0"), server.DefaultHTTPConfig("127.0.0.1:0")
	for _, f := range change {
		f(&g, &h)
	}
	c := defaults()
	c.Protocols = protocols{GRPC: pipeline.Present(g), HTTP: pipeline.Present(h)}
	return c
}

// newFixture returns a fixture without a receiver.
func newFixture(budget int64, s *pipelinetest.Sink) *fixture {
	f := &fixture{Fixture: pipelinetest.NewFixture("native", budget), sink: s}
	f.budget, f.Settings.Env.Now = f.Settings.Budget, pipelinetest.FixedTime
	return f
}

// build builds a receiver without starting it.
func build(t testing.TB, c config, budget int64, s *pipelinetest.Sink) *fixture {
	t.Helper()
	f := newFixture(budget, s)
	var err error
	if f.receiver, err = newReceiver(f.Settings, c, s); err != nil {
		t.Fatal(err)
	}
	return f
}

func start(t testing.TB, c config, budget int64, s *pipelinetest.Sink) *fixture {
	t.Helper()
	f := newFixture(budget, s)
	f.receiver, _ = pipelinetest.StartReceiver(t, f.Fixture, s, func(set pipeline.Settings, next pipeline.Consumer) (*receiver, error) {
		return newReceiver(set, c, next)
	})
	return f
}

func (f *fixture) dial(t testing.TB) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(f.Addr("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func (f *fixture) tracesURL() string { return "http://" + f.Addr("http") + tracesPath }

// spanNames returns "service name" for each span of a batch.
func spanNames(t testing.TB, b *otlpdata.Batch) (names []string) {
	t.Helper()
	td, err := b.Traces()
	if err != nil {
		t.Fatal(err)
	}
	for _, rs := range td.ResourceSpans().All() {
		service, _ := rs.Resource().Attributes().Get("service.name")
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				names = append(names, service.AsString()+" "+s.Name())
			}
		}
	}
	return names
}

// protoRequest returns an encoded PostSpansRequest with n typical spans.
func protoRequest(n int) []byte {
	batch := &api_v2.Batch{Process: &api_v2.Process{ServiceName: "cart"}}
	for i := range n {
		s := &api_v2.Span{TraceId: make([]byte, 16), SpanId: []byte{1, 0, 0, 0, 0, 0, byte(i >> 8), byte(i)},
			OperationName: fmt.Sprint("get ", i),
			StartTime:     timestamppb.New(time.Unix(1_700_000_000, 0)), Duration: durationpb.New(time.Second)}
		for range 5 {
			s.Tags = append(s.Tags, &api_v2.KeyValue{Key: "db.statement", VStr: "some value of ordinary size"})
		}
		batch.Spans = append(batch.Spans, s)
	}
	b, err := proto.Marshal(&api_v2.PostSpansRequest{Batch: batch})
	if err != nil {
		panic(err)
	}
	return b
}

// thriftRequest returns an encoded Batch with n typical spans.
func thriftRequest(n int) []byte {
	text := "some value of ordinary size"
	batch := &jaeger.Batch{Process: &jaeger.Process{ServiceName: "cart"}, Spans: []*jaeger.Span{}}
	for i := range n {
		s := &jaeger.Span{TraceIdLow: 1, SpanId: int64(i + 1), OperationName: fmt.Sprint("get ", i),
			StartTime: 1_700_000_000_000_000, Duration: 1e6}
		for range 5 {
			s.Tags = append(s.Tags, &jaeger.Tag{Key: "db.statement", VStr: &text})
		}
		batch.Spans = append(batch.Spans, s)
	}
	return thriftBytes(batch)
}

func thriftBytes(x interface {
	Write(context.Context, thrift.TProtocol) error
}) []byte {
	buf := thrift.NewTMemoryBuffer()
	if err := x.Write(context.Background(), thrift.NewTBinaryProtocolConf(buf, nil)); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

// protoText returns a request of one span with one tag of n bytes.
func protoText(n int) []byte {
	span := &api_v2.Span{Tags: []*api_v2.KeyValue{{Key: "text", VStr: strings.Repeat("x", n)}}}
	b, err := proto.Marshal(&api_v2.PostSpansRequest{Batch: &api_v2.Batch{Spans: []*api_v2.Span{span}}})
	if err != nil {
		panic(err)
	}
	return b
}

func thriftText(n int) []byte {
	text := strings.Repeat("x", n)
	return thriftBytes(&jaeger.Batch{Process: &jaeger.Process{}, Spans: []*jaeger.Span{{Tags: []*jaeger.Tag{{Key: "text", VStr: &text}}}}})
}
