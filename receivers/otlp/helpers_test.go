package otlp

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

const exportMethod = "/" + traceService + "/Export"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a running receiver with both protocols on free ports.
type fixture struct {
	*receiver
	*pipelinetest.Fixture
	sink   *pipelinetest.Sink
	budget *pipeline.Budget
}

func testConfig(change ...func(*server.GRPCConfig, *httpConfig)) config {
	g, h := server.DefaultGRPCConfig("127.0.0.1:0"), httpConfig{server.DefaultHTTPConfig("127.0.0.1:0"), defaultTracesPath, defaultLogsPath}
	for _, f := range change {
		f(&g, &h)
	}
	c := defaults()
	c.Protocols = protocols{GRPC: pipeline.Present(g), HTTP: pipeline.Present(h)}
	return c
}

// newFixture returns a fixture without a receiver.
func newFixture(budget int64, s *pipelinetest.Sink) *fixture {
	f := &fixture{Fixture: pipelinetest.NewFixture("otlp", budget), sink: s}
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

func (f *fixture) tracesURL() string { return "http://" + f.Addr("http") + "/v1/traces" }

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
