package clients_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// exportTo returns the setting that exports each span of self-tracing immediately.
func exportTo(protocol, endpoint string) string {
	return fmt.Sprintf("service::telemetry::traces::processors=[{simple: {exporter: {otlp: {protocol: %s, endpoint: 'http://%s'}}}}]",
		protocol, endpoint)
}

// startTracingItself starts an all-in-one, and reloads it so that it exports its spans to itself.
func startTracingItself(t *testing.T, protocol string, settings ...string) *inprocess.Program {
	t.Helper()
	p := inprocess.Start(t, settings...)
	address := map[string]func() string{"grpc": p.OTLPGRPC, "http/protobuf": p.OTLPHTTP}[protocol]
	reload(t, p, exportTo(protocol, address()))
	return p
}

// reload reloads a program with additional settings.
func reload(t *testing.T, p *inprocess.Program, settings ...string) {
	t.Helper()
	if err := p.Reload(settings...); err != nil {
		t.Fatal(err)
	}
}

// request sends a request and returns the trace id in the header traceresponse, or "".
func request(t *testing.T, method, url, body, traceparent string) (traceID string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if traceparent != "" {
		req.Header.Set("Traceparent", traceparent)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	header := resp.Header.Get("Traceresponse")
	if header == "" {
		return ""
	}
	parts := strings.Split(header, "-")
	if len(parts) != 4 || parts[0] != "00" || len(parts[1]) != 32 || len(parts[2]) != 16 || len(parts[3]) != 2 {
		t.Fatalf("traceresponse: %q", header)
	}
	return parts[1]
}

// tree waits until a trace is stored with its root, and returns its spans as `parent > span` lines,
// sorted.
func tree(t *testing.T, p *inprocess.Program, id, root string) (lines []string) {
	t.Helper()
	harness.Poll(t, "trace of "+root, func() bool {
		lines = nil
		status, _ := harness.Fetch(t, p.QueryURL()+"/api/traces/"+id)
		if status != http.StatusOK {
			return false
		}
		spans := inprocess.Ask[[]harness.UITrace](p, "/api/traces/"+id)[0].Spans
		names := map[string]string{}
		for _, s := range spans {
			names[s.SpanID] = s.OperationName
		}
		for _, s := range spans {
			line := s.OperationName
			if len(s.References) > 0 {
				line = names[s.References[0].SpanID] + " > " + line
			}
			lines = append(lines, line)
		}
		return slices.ContainsFunc(lines, func(l string) bool { return strings.HasSuffix(l, root) })
	})
	slices.Sort(lines)
	return lines
}

const userTrace = "4bf92f3577b34da6a3ce929d0e0e4736"

func userSpan() string {
	return harness.JSONSpan(userTrace, "shop", "buy", time.Now(), time.Millisecond)
}

// TestSpans exports the spans of an all-in-one to itself and reads the traces of its requests.
func TestSpans(t *testing.T) {
	p := startTracingItself(t, "http/protobuf", "service::telemetry::resource={service.name: backend, service.version: ''}")
	intake := request(t, http.MethodPost, "http://"+p.OTLPHTTP()+"/v1/traces", userSpan(), "")
	check(t, tree(t, p, intake, "POST /v1/traces"), "POST /v1/traces", "POST /v1/traces > decode", "POST /v1/traces > deliver",
		"POST /v1/traces > read", "deliver > process batch", "process batch > export disk")

	const parent = "0af7651916cd43dd8448eb211c80319c"
	services := request(t, http.MethodGet, p.QueryURL()+"/api/services", "", "00-"+parent+"-b7ad6b7169203331-01")
	if services != parent {
		t.Errorf("trace %s continues as %s", parent, services)
	}
	check(t, tree(t, p, services, "GET /api/services"), " > GET /api/services", "GET /api/services > get_services")

	missing := request(t, http.MethodGet, p.QueryURL()+"/api/traces/123", "", "")
	check(t, tree(t, p, missing, "GET /api/traces/{id}"), "GET /api/traces/{id}", "GET /api/traces/{id} > get_trace")
	refused := request(t, http.MethodPost, "http://"+p.OTLPHTTP()+"/v1/traces", "{", "")
	check(t, tree(t, p, refused, "POST /v1/traces"), "POST /v1/traces")
	if id := request(t, http.MethodGet, p.AdminURL()+"/metrics", "", ""); id != "" {
		t.Error("a scrape of metrics is traced")
	}
	process := inprocess.Ask[[]harness.UITrace](p, "/api/traces/"+intake)[0].Processes["p1"]
	tags := strings.Join(harness.TagStrings(process.Tags), " ")
	if process.ServiceName != "backend" || !strings.Contains(tags, "service.instance.id") || strings.Contains(tags, "service.version") {
		t.Errorf("process %s: %s", process.ServiceName, tags)
	}
}

// TestTwoProcesses sends spans through two processes, over gRPC, and reads the trace of both.
func TestTwoProcesses(t *testing.T) {
	b := startTracingItself(t, "grpc", "service::telemetry::resource={service.name: gateway}")
	a := inprocess.StartYAML(t, fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: 'localhost:0'}}}}
exporters: {otlp: {endpoint: '%s', tls: {insecure: true}, sending_queue: {enabled: false}}}
service:
  pipelines: {traces: {receivers: [otlp], exporters: [otlp]}}
  telemetry: {traces: {processors: [{simple: {exporter: {otlp: {protocol: grpc, endpoint: 'http://%s'}}}}]}}
`, b.OTLPGRPC(), b.OTLPGRPC()))
	id := request(t, http.MethodPost, "http://"+a.OTLPHTTP()+"/v1/traces", userSpan(), "")
	const call = "opentelemetry.proto.collector.trace.v1.TraceService/Export"
	check(t, tree(t, b, id, "POST /v1/traces"), "POST /v1/traces", "POST /v1/traces > read", "POST /v1/traces > decode",
		"POST /v1/traces > deliver", "deliver > export otlp", "export otlp > "+call, call+" > "+call, call+" > read", call+" > decode",
		call+" > deliver", "deliver > process batch", "process batch > export disk")
}

func check(t *testing.T, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("spans:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestOff checks that requests are neither traced nor have the header by default.
func TestOff(t *testing.T) {
	p := inprocess.Start(t)
	if id := request(t, http.MethodPost, "http://"+p.OTLPHTTP()+"/v1/traces", userSpan(), ""); id != "" {
		t.Errorf("trace %s", id)
	}
	if id := request(t, http.MethodGet, p.QueryURL()+"/api/services", "", ""); id != "" {
		t.Errorf("trace %s", id)
	}
}

// awaitSent waits until programs have exported a number of spans of self-tracing, stops them, and
// checks that they have not exported more.
func awaitSent(t *testing.T, want float64, programs ...*inprocess.Program) {
	t.Helper()
	total := func() (n float64) {
		for _, p := range programs {
			n += p.Sum("tracing_self_spans_total")
		}
		return n
	}
	harness.Poll(t, "export of spans", func() bool { return total() >= want })
	for _, p := range programs {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	}
	if n := total(); n != want {
		t.Errorf("exported %v spans, want %v", n, want)
	}
}

// TestNoSpansAboutExports checks that a process that exports its spans to itself makes no spans
// about that.
func TestNoSpansAboutExports(t *testing.T) {
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(strings.ReplaceAll(protocol, "/", "-"), func(t *testing.T) {
			p := startTracingItself(t, protocol)
			const requests, spansOfRequest = 20, 6 // see TestSpans
			for range requests {
				if request(t, http.MethodPost, "http://"+p.OTLPHTTP()+"/v1/traces", userSpan(), "") == "" {
					t.Fatal("request is not traced")
				}
			}
			awaitSent(t, requests*spansOfRequest, p)
		})
	}
}

// TestNoSpansAboutForwardedExports checks that two processes which pass on the spans of each other
// make no spans about that: the first exports its own and those of the second to the second, after
// a queue, where nothing of the request is left but its spans.
func TestNoSpansAboutForwardedExports(t *testing.T) {
	yaml := func(exporter, settings string) string {
		return fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: 'localhost:0'}}}}
exporters: {%s: %s}
extensions: {admin: {endpoint: localhost:0}}
service:
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], exporters: [%s]}}
`, exporter, settings, exporter)
	}
	b := inprocess.StartYAML(t, yaml("memory", "{}"))
	a := inprocess.StartYAML(t, yaml("otlphttp", "{endpoint: 'http://"+b.OTLPHTTP()+"', sending_queue: {enabled: true}}"))
	for _, p := range []*inprocess.Program{a, b} {
		reload(t, p, exportTo("http/protobuf", a.OTLPHTTP()))
	}
	const requests = 10
	const spansOfFirst = 4 + 2  // request, read, decode, deliver; after the queue: export, request to the second
	const spansOfSecond = 4 + 1 // request, read, decode, deliver, export
	for range requests {
		if request(t, http.MethodPost, "http://"+a.OTLPHTTP()+"/v1/traces", userSpan(), "") == "" {
			t.Fatal("request is not traced")
		}
	}
	awaitSent(t, requests*(spansOfFirst+spansOfSecond), a, b)
}

// TestReload turns self-tracing on and off while the process runs.
func TestReload(t *testing.T) {
	const yaml = `
receivers: {otlp: {protocols: {http: {endpoint: 'localhost:0'}}}}
exporters: {memory: }
extensions: {query: {storage: memory, http: {endpoint: 'localhost:0'}}}
service:
  extensions: [query]
  pipelines: {traces: {receivers: [otlp], exporters: [memory]}}
`
	p := inprocess.StartYAML(t, yaml)
	url := p.QueryURL() + "/api/services"
	reload(t, p, exportTo("http/protobuf", p.OTLPHTTP()))
	id := request(t, http.MethodGet, url, "", "")
	check(t, tree(t, p, id, "GET /api/services"), "GET /api/services", "GET /api/services > get_services")
	const missing = "service::telemetry::traces::processors=[{batch: {exporter: {otlp: " +
		"{protocol: grpc, endpoint: 'https://localhost:1', certificate: no-such-file}}}}]"
	const problem = "service::telemetry::traces::processors::0: certificate: "
	if err := p.Reload(missing); err == nil || !strings.Contains(err.Error(), problem) {
		t.Errorf("reload with a missing file: %v", err)
	}
	if request(t, http.MethodGet, url, "", "") == "" {
		t.Error("self-tracing ended with a reload that failed")
	}
	reload(t, p)
	if id := request(t, http.MethodGet, url, "", ""); id != "" {
		t.Errorf("trace %s after self-tracing was turned off", id)
	}
}
