package otlp

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a running receiver with both protocols on free ports.
type fixture struct {
	*receiver
	sink   *pipelinetest.Sink
	reg    *prometheus.Registry
	budget *pipeline.Budget
}

func testConfig(change ...func(*server.GRPCConfig, *httpConfig)) config {
	g, h := server.DefaultGRPCConfig("127.0.0.1:0"), httpConfig{server.DefaultHTTPConfig("127.0.0.1:0"), defaultTracesPath}
	for _, f := range change {
		f(&g, &h)
	}
	c := defaults()
	c.Protocols = protocols{GRPC: pipeline.Present(g), HTTP: pipeline.Present(h)}
	return c
}

func build(t testing.TB, c config, budget int64, s *pipelinetest.Sink) *fixture {
	t.Helper()
	f := &fixture{sink: s, reg: prometheus.NewRegistry(), budget: pipeline.NewBudget(budget)}
	env := pipeline.SystemEnv()
	env.Now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	var err error
	f.receiver, err = newReceiver(pipeline.Settings{
		ID: pipeline.ID{Type: "otlp"}, Logger: zap.NewNop(), Metrics: f.reg, Env: env, Budget: f.budget,
		Report: func(err error) { t.Errorf("reported: %v", err) },
	}, c, s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func start(t testing.TB, c config, budget int64, s *pipelinetest.Sink) *fixture {
	t.Helper()
	f := build(t, c, budget, s)
	if err := f.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(context.Background()); err != nil {
			t.Errorf("Stop: %v", err)
		}
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

func (f *fixture) tracesURL() string { return "http://" + f.Addr("http") + "/v1/traces" }

// refused returns the refused requests by listener and reason.
func (f *fixture) refused(t testing.TB) map[string]float64 {
	t.Helper()
	families, err := f.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, fam := range families {
		if fam.GetName() != "tracing_server_refused_requests_total" {
			continue
		}
		for _, m := range fam.GetMetric() {
			out[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return out
}

// request returns an encoded request with n typical spans.
func request(n int) []byte {
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(traces(n))
	if err != nil {
		panic(err)
	}
	return b
}

func traces(n int) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "cart")
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("lib")
	for i := range n {
		s := ss.Spans().AppendEmpty()
		s.SetTraceID([16]byte{1, 2, 3, byte(i >> 8), byte(i)})
		s.SetSpanID([8]byte{1, byte(i >> 8), byte(i)})
		s.SetName("GET /cart/items")
		s.SetKind(ptrace.SpanKindServer)
		s.SetStartTimestamp(1700000000000000000)
		s.SetEndTimestamp(1700000000100000000)
		for _, k := range []string{"http.request.method", "url.path", "server.address", "user_agent.original", "db.statement"} {
			s.Attributes().PutStr(k, "some value of ordinary size")
		}
		s.Attributes().PutInt("http.response.status_code", 200)
	}
	return td
}
