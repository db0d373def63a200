package debug_test

import (
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/tools/internal/debug"
)

func TestMain(m *testing.M) {
	http.DefaultTransport.(*http.Transport).DisableKeepAlives = true
	goleak.VerifyTestMain(m)
}

const traceID = "5b8efff798038103d269b633813fc60c"

// A client of the debugger of each component sets a breakpoint where a request arrives, sees the
// request that stops there, and lets the component continue. Then the request succeeds.
func TestDebugComponents(t *testing.T) {
	programs := debug.Build(t, t.TempDir())
	collector := start(t, programs, "collector", "extensions::sampling::file::default_sampling_probability=1")
	programs.Session(t, collector.debugger, debug.OTLP, func() {
		collector.PostJSON(harness.JSONSpan(traceID, "checkout", "pay", time.Now(), time.Second))
	})
	query := start(t, programs, "query", "exporters::grpc::endpoint="+collector.Address("remote_storage", "grpc"))
	found := debug.Stop{Function: "jaegerapi.(*API).trace", Expression: "r.URL.Path", Want: `"/api/traces/` + traceID + `"`}
	programs.Session(t, query.debugger, found, func() {
		if status, body := harness.Fetch(t, query.QueryURL()+"/api/traces/"+traceID); status != 200 {
			t.Errorf("the trace: %d %s", status, body)
		}
	})
	agent := start(t, programs, "agent", "exporters::native::endpoint="+collector.Address("native", "protocols.grpc"))
	datagram := debug.Stop{Function: "thriftudp.(*listener).translate", Expression: "len(data) > 0", Want: "true"}
	programs.Session(t, agent.debugger, datagram, func() {
		sendDatagram(t, agent.Process)
	})
	harness.Poll(t, "span of the agent", func() bool {
		_, body := harness.Fetch(t, query.QueryURL()+"/api/services")
		return strings.Contains(string(body), `"cart"`)
	})
}

// sendDatagram sends a span of the service cart to an agent.
func sendDatagram(t *testing.T, agent *harness.Process) {
	td := ptrace.NewTraces()
	resource := td.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "cart")
	span := resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("add")
	span.SetTraceID([16]byte{1})
	span.SetSpanID([8]byte{1})
	conn, err := net.Dial("udp", agent.Address("thriftudp", "compact"))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close() //nolint:errcheck // nothing to flush
	if _, err := conn.Write(harness.Datagram(t, harness.JaegerBatch(td))); err != nil {
		t.Error(err)
	}
}

// component is a running component and the address of its debugger.
type component struct {
	*harness.Process
	debugger string
}

// start starts a preset with the arguments of deploy/docker/Dockerfile.debug, except for the port.
func start(t *testing.T, programs debug.Programs, preset string, settings ...string) component {
	t.Helper()
	address := debug.FreeAddress(t)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	args := append([]string{"exec", programs.Tracing, "--headless", "--listen=" + address, "--api-version=2", "--accept-multiclient",
		"--only-same-user=false", "--continue", "--"}, harness.PresetArgs(preset, t.TempDir(), harness.SetArgs(settings...)...)...)
	p := harness.RunExecutable(t, programs.Debugger, args...)
	t.Cleanup(func() {
		p.Cmd.Process.Signal(os.Interrupt) //nolint:errcheck // the process may have ended
		p.Wait()
	})
	p.AwaitReady()
	return component{p, address}
}
