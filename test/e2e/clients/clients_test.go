package clients_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/test/harness"
)

// Every client sends a span of 250 ms and, 10 ms later, a child of 100 ms. Each has an event 5 ms
// after its start.
const (
	rootDuration  = 250 * time.Millisecond
	childDelay    = 10 * time.Millisecond
	childDuration = 100 * time.Millisecond
	eventDelay    = 5 * time.Millisecond
	unicodeText   = "żółw 🐢\n\"\\"
)

// sent holds the ids of the trace that a client has sent.
type sent struct {
	Trace string   `json:"trace"`
	Spans []string `json:"spans"`
}

// deployment is an agent and a collector that run the presets as processes of their own.
type deployment struct {
	agent, collector *harness.Process
}

func deploy(t *testing.T) *deployment {
	t.Helper()
	dir := t.TempDir()
	d := &deployment{}
	d.collector = harness.Run(t, harness.CollectorArgs(filepath.Join(dir, "collector"), "--log-level=debug",
		"--collector.zipkin.host-port=localhost:0")...)
	d.agent = harness.Run(t, harness.PresetArgs("agent", filepath.Join(dir, "agent"), "--log-level=debug",
		"--reporter.grpc.host-port="+d.collector.Address("native", "protocols.grpc"))...)
	for _, p := range []*harness.Process{d.collector, d.agent} {
		p.AwaitReady()
	}
	return d
}

// Addresses of the receivers.
func (d *deployment) compact() string { return d.agent.Address("thriftudp", "compact") }

func (d *deployment) binary() string { return d.agent.Address("thriftudp", "binary") }

func (d *deployment) nativeHTTP() string {
	return "http://" + d.collector.Address("native", "protocols.http") + "/api/traces"
}

func (d *deployment) zipkin() string { return "http://" + d.collector.Address("zipkin", "http") }

func (d *deployment) otlpHTTP() string {
	return "http://" + d.collector.OTLPHTTP()
}

func (d *deployment) otlpGRPC() string { return d.collector.OTLPGRPC() }

// client is a client library with one of its protocols.
type client struct {
	name string
	send func(t *testing.T, d *deployment, start time.Time) sent
}

// TestClients sends a trace with the client libraries of other projects to the agent and the
// collector, and compares the trace that is read back with a file in testdata/clients. The Node.js
// clients are in [TestNodeClients].
func TestClients(t *testing.T) {
	harness.SkipIfShort(t)
	d := deploy(t)
	start := time.Now().Truncate(time.Millisecond)
	for _, c := range goClients() {
		t.Run(c.name, func(t *testing.T) { checkClient(t, d, c, start) })
	}
	checkDebugMetrics(t, d)
	harness.CheckMetricNames(t, "testdata/metrics-agent.golden", d.agent.AdminURL())
	checkAgentLog(t, d)
}

// checkAgentLog checks the debug lines of the agent: one for each datagram, and one for each batch
// that the collector has acknowledged. The agent must not write the lines of a collector.
func checkAgentLog(t *testing.T, d *deployment) {
	t.Helper()
	var bytes, spans float64
	for _, line := range d.agent.LogLines() {
		switch line["msg"] {
		case "Span(s) received by the agent":
			bytes += line["bytes-received"].(float64)
		case "Span batch submitted by the agent":
			spans += line["span-count"].(float64)
		case "Span batch processed by the collector.":
			t.Errorf("the agent wrote a log line of the collector: %v", line)
		}
	}
	if spans == 0 || bytes < spans {
		t.Errorf("the agent logged %v bytes and %v spans", bytes, spans)
	}
}

// checkClient sends a trace and compares what is read back with a golden file.
func checkClient(t *testing.T, d *deployment, c client, start time.Time) {
	s := c.send(t, d, start)
	tr := awaitTrace(t, d.collector, s)
	got := describe(t, tr, s, start)
	golden.Check(t, filepath.Join("testdata", "clients", c.name+".golden"), got)
}

// awaitTrace waits until a trace has all its spans: a client over UDP gets no response.
func awaitTrace(t *testing.T, collector *harness.Process, s sent) harness.UITrace {
	t.Helper()
	url := collector.QueryURL() + "/api/traces/" + s.Trace
	var answer struct{ Data []harness.UITrace }
	harness.Poll(t, fmt.Sprintf("trace %s with spans %v", s.Trace, s.Spans), func() bool {
		status, body := harness.Fetch(t, url)
		if status != http.StatusOK {
			return false
		}
		answer.Data = nil
		if err := json.Unmarshal(body, &answer); err != nil {
			t.Fatal(err)
		}
		return len(answer.Data) == 1 && len(answer.Data[0].Spans) >= len(s.Spans)
	})
	return answer.Data[0]
}

// describe returns a trace as text. Span ids are replaced by the numbers of the spans, times are
// relative to start, and values that depend on the machine are omitted.
func describe(t *testing.T, tr harness.UITrace, s sent, start time.Time) string {
	t.Helper()
	if tr.TraceID != s.Trace {
		t.Errorf("trace id %q, sent %q", tr.TraceID, s.Trace)
	}
	name := func(trace, id string) string {
		if i := slices.Index(s.Spans, id); i >= 0 && trace == tr.TraceID {
			return fmt.Sprintf("span %d", i+1)
		}
		return trace + "/" + id
	}
	after := func(us int64) string { return time.UnixMicro(us).Sub(start).String() }
	slices.SortFunc(tr.Spans, func(a, b harness.UISpan) int { return int(a.StartTime - b.StartTime) })
	var b strings.Builder
	fmt.Fprintf(&b, "trace id of %d digits, span ids of %d\n", len(tr.TraceID), len(tr.Spans[0].SpanID))
	for _, sp := range tr.Spans {
		p := tr.Processes[sp.ProcessID]
		fmt.Fprintf(&b, "\n%s %q of %s, start %s, duration %s, flags %d\n", name(sp.TraceID, sp.SpanID), sp.OperationName, p.ServiceName,
			after(sp.StartTime), time.Duration(sp.Duration)*time.Microsecond, sp.Flags)
		for _, r := range sp.References {
			fmt.Fprintf(&b, "  %s %s\n", r.RefType, name(r.TraceID, r.SpanID))
		}
		writeTags(&b, "  tag", sp.Tags)
		for _, l := range sp.Logs {
			fmt.Fprintf(&b, "  log at %s\n", after(l.Timestamp))
			writeTags(&b, "    field", l.Fields)
		}
		writeTags(&b, "  process", p.Tags)
		for _, w := range sp.Warnings {
			fmt.Fprintf(&b, "  warning %s\n", w)
		}
	}
	return b.String()
}

func writeTags(b *strings.Builder, what string, tags []harness.UITag) {
	varies := []string{"hostname", "host.name", "ip", "client-uuid"}
	for _, tag := range tags {
		if slices.Contains(varies, tag.Key) {
			tag.Value = json.RawMessage("(of this machine)")
		}
		fmt.Fprintf(b, "%s %s\n", what, tag)
	}
}

// checkDebugMetrics checks that the collector counts debug spans separately when they are received
// and stored. The Jaeger clients send the child span as a debug span.
func checkDebugMetrics(t *testing.T, d *deployment) {
	t.Helper()
	m := harness.Metrics(t, d.collector.AdminURL())
	for _, name := range []string{
		`tracing_collector_spans_received{debug="true",format="tracing",svc="shop-go",transport="grpc"}`,
		`tracing_collector_spans_received{debug="true",format="tracing",svc="shop-go",transport="http"}`,
		`tracing_collector_spans_saved_by_svc{debug="true",result="ok",svc="shop-go"}`,
		`tracing_collector_spans_saved_by_svc{debug="false",result="ok",svc="shop-otel-go"}`,
	} {
		if m[name] == 0 {
			t.Errorf("%s is 0 or missing", name)
		}
	}
}
