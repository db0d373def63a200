package clients_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opentracing/opentracing-go"
	"github.com/opentracing/opentracing-go/ext"
	"github.com/opentracing/opentracing-go/log"
	"github.com/openzipkin/zipkin-go"
	"github.com/openzipkin/zipkin-go/model"
	zipkinproto "github.com/openzipkin/zipkin-go/proto/zipkin_proto3"
	"github.com/openzipkin/zipkin-go/reporter"
	zipkinhttp "github.com/openzipkin/zipkin-go/reporter/http"
	"github.com/uber/jaeger-client-go"
	"github.com/uber/jaeger-client-go/transport"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	//lint:ignore SA1019 applications still have it
	jaegerexporter "go.opentelemetry.io/otel/exporters/jaeger"
	//lint:ignore SA1019 applications still have it
	zipkinexporter "go.opentelemetry.io/otel/exporters/zipkin"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

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

// awaitTrace waits until a trace has all its spans: a client over UDP gets no answer.
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

func goClients() []client {
	return []client{
		{"jaeger-client-go-udp", func(t *testing.T, d *deployment, start time.Time) sent {
			tr, err := jaeger.NewUDPTransport(d.compact(), 0)
			if err != nil {
				t.Fatal(err)
			}
			return sendJaeger(t, tr, false, start)
		}},
		{"jaeger-client-go-http", func(t *testing.T, d *deployment, start time.Time) sent {
			return sendJaeger(t, transport.NewHTTPTransport(d.nativeHTTP()+"?format=jaeger.thrift"), true, start)
		}},
		{"otel-jaeger-udp", func(t *testing.T, d *deployment, start time.Time) sent {
			host, port, err := net.SplitHostPort(d.compact())
			if err != nil {
				t.Fatal(err)
			}
			e, err := jaegerexporter.New(jaegerexporter.WithAgentEndpoint(jaegerexporter.WithAgentHost(host), jaegerexporter.WithAgentPort(port)))
			return sendOTel(t, e, err, start)
		}},
		{"otel-jaeger-http", func(t *testing.T, d *deployment, start time.Time) sent {
			e, err := jaegerexporter.New(jaegerexporter.WithCollectorEndpoint(jaegerexporter.WithEndpoint(d.nativeHTTP())))
			return sendOTel(t, e, err, start)
		}},
		{"otel-zipkin", func(t *testing.T, d *deployment, start time.Time) sent {
			e, err := zipkinexporter.New(d.zipkin() + "/api/v2/spans")
			return sendOTel(t, e, err, start)
		}},
		{"zipkin-go-json", func(t *testing.T, d *deployment, start time.Time) sent {
			return sendZipkin(t, zipkinhttp.NewReporter(d.zipkin()+"/api/v2/spans"), start)
		}},
		{"zipkin-go-proto", func(t *testing.T, d *deployment, start time.Time) sent {
			return sendZipkin(t, zipkinhttp.NewReporter(d.zipkin()+"/api/v2/spans", zipkinhttp.Serializer(zipkinproto.SpanSerializer{})), start)
		}},
	}
}

func sendJaeger(t *testing.T, tr jaeger.Transport, wide bool, start time.Time) sent {
	t.Helper()
	tracer, closer := jaeger.NewTracer("shop-go", jaeger.NewConstSampler(true), jaeger.NewRemoteReporter(tr),
		jaeger.TracerOptions.Gen128Bit(wide), jaeger.TracerOptions.Tag("app.version", "1.2.3"), jaeger.TracerOptions.Tag("app.cores", 4))
	root := tracer.StartSpan("GET /cart", opentracing.StartTime(start))
	for k, v := range map[string]any{"span.kind": "server", "text": unicodeText, "count": 7, "big": int64(1) << 60,
		"ratio": 0.25, "cached": true,
		"raw": []byte{0, 1, 0xff}, "status": uint16(200)} {
		root.SetTag(k, v)
	}
	linked := jaeger.NewSpanContext(jaeger.TraceID{Low: 9}, 7, 0, true, nil)
	child := tracer.StartSpan("SELECT", opentracing.StartTime(start.Add(childDelay)),
		opentracing.ChildOf(root.Context()), opentracing.FollowsFrom(linked))
	ext.SamplingPriority.Set(child, 1)
	ext.Error.Set(child, true)
	event := func(s opentracing.Span, begin time.Time, duration time.Duration, fields ...log.Field) {
		s.FinishWithOptions(opentracing.FinishOptions{FinishTime: begin.Add(duration),
			LogRecords: []opentracing.LogRecord{{Timestamp: begin.Add(eventDelay), Fields: fields}}})
	}
	event(child, start.Add(childDelay), childDuration, log.String("event", "gave up"), log.Int("attempt", 2), log.Bool("final", true))
	event(root, start, rootDuration, log.String("message", "no event here"))
	if err := closer.Close(); err != nil {
		t.Fatal(err)
	}
	rc, cc := root.Context().(jaeger.SpanContext), child.Context().(jaeger.SpanContext)
	return sent{rc.TraceID().String(), []string{rc.SpanID().String(), cc.SpanID().String()}}
}

func sendOTel(t *testing.T, e sdktrace.SpanExporter, err error, start time.Time) sent {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	res := resource.NewSchemaless(attribute.String("service.name", "shop-otel-go"),
		attribute.String("app.version", "1.2.3"), attribute.Int("app.cores", 4))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(e), sdktrace.WithResource(res))
	tracer := provider.Tracer("shop/lib", trace.WithInstrumentationVersion("1.2"))
	ctx, root := tracer.Start(t.Context(), "GET /cart", trace.WithTimestamp(start),
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.String("text", unicodeText), attribute.Int("count", 7), attribute.Int64("big", 1<<60), attribute.Float64("ratio", 0.25),
			attribute.Bool("cached", true), attribute.StringSlice("list", []string{"a", "b"})))
	linked := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{9: 9}, SpanID: trace.SpanID{7: 7}, Remote: true})
	_, child := tracer.Start(ctx, "SELECT", trace.WithTimestamp(start.Add(childDelay)), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithLinks(trace.Link{SpanContext: linked}))
	child.AddEvent("gave up", trace.WithTimestamp(start.Add(childDelay+eventDelay)), trace.WithAttributes(attribute.Int("attempt", 2)))
	child.SetStatus(codes.Error, "no connection")
	child.End(trace.WithTimestamp(start.Add(childDelay + childDuration)))
	root.AddEvent("retry", trace.WithTimestamp(start.Add(eventDelay)))
	root.End(trace.WithTimestamp(start.Add(rootDuration)))
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sent{root.SpanContext().TraceID().String(), []string{root.SpanContext().SpanID().String(), child.SpanContext().SpanID().String()}}
}

// sendZipkin sends a third span: the other half of the child, which the called service reports with
// the same id.
func sendZipkin(t *testing.T, rep reporter.Reporter, start time.Time) sent {
	t.Helper()
	tracer := func(service, address string) *zipkin.Tracer {
		endpoint, err := zipkin.NewEndpoint(service, address)
		if err != nil {
			t.Fatal(err)
		}
		tracer, err := zipkin.NewTracer(rep, zipkin.WithLocalEndpoint(endpoint), zipkin.WithSharedSpans(true), zipkin.WithTraceID128Bit(true))
		if err != nil {
			t.Fatal(err)
		}
		return tracer
	}
	shop, db := tracer("shop-zipkin-go", "10.1.2.3:8080"), tracer("db", "[2001:db8::7]:5432")
	root := shop.StartSpan("get /cart", zipkin.StartTime(start), zipkin.Kind(model.Server),
		zipkin.Tags(map[string]string{"text": unicodeText, "count": "7"}))
	root.Annotate(start.Add(eventDelay), "retry")
	remote, err := zipkin.NewEndpoint("db", "10.9.8.7:5432")
	if err != nil {
		t.Fatal(err)
	}
	begin := start.Add(childDelay)
	child := shop.StartSpan("select", zipkin.StartTime(begin), zipkin.Kind(model.Client), zipkin.Parent(root.Context()),
		zipkin.RemoteEndpoint(remote))
	child.Annotate(begin.Add(eventDelay), "gave up")
	zipkin.TagError.Set(child, "no connection")
	half := db.StartSpan("select", zipkin.StartTime(begin.Add(eventDelay)), zipkin.Kind(model.Server), zipkin.Parent(child.Context()))
	half.FinishedWithDuration(childDuration / 2)
	child.FinishedWithDuration(childDuration)
	root.FinishedWithDuration(rootDuration)
	if err := rep.Close(); err != nil {
		t.Fatal(err)
	}
	rc, cc := root.Context(), child.Context()
	// The query API gives the second half the smallest free id.
	return sent{rc.TraceID.String(), []string{rc.ID.String(), cc.ID.String(), fmt.Sprintf("%016x", 1)}}
}
