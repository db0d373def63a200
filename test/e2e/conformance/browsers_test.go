package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// browserCases are the requests of programs and of web pages that TestBrowsers sends to each route:
// their headers, SELF being the host and port of the listener.
var browserCases = []struct {
	name    string
	headers []string
}{
	{"program", nil},
	{"localhost", []string{"Host", "localhost:1"}},
	{"from a container", []string{"Host", "host.docker.internal:1"}},
	{"allowed host", []string{"Host", "traces.example.com"}},
	{"rebound host", []string{"Host", "evil.example", "Origin", "http://evil.example", "Sec-Fetch-Site", "same-origin"}},
	{"same origin", []string{"Origin", "http://SELF", "Sec-Fetch-Site", "same-origin"}},
	{"CORS origin", []string{"Origin", "https://app.example.com", "Sec-Fetch-Site", "cross-site"}},
	{"cross-site", []string{"Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site"}},
	{"old browser", []string{"Origin", "http://evil.example"}},
	{"opaque origin", []string{"Origin", "null"}},
	{"same-site", []string{"Sec-Fetch-Site", "same-site"}},
}

// otherRoutes are the routes of the listeners except the APIs of the query service, which are in
// docs/openapi.json.
var otherRoutes = map[string][]string{
	"query http": {"GET /", "GET /search", "GET /docs/", "GET /api/none"},
	"otlp http":  {"POST /v1/traces", "POST /v1/metrics", "POST /v1/logs"},
	"native http": {"POST /api/traces", "GET /api/sampling?service=a", "GET /api/sampling/explain?service=a",
		"GET /api/baggageRestrictions?service=a"},
	"zipkin http": {"POST /api/v1/spans", "POST /api/v2/spans", "GET /health"},
	"sampling http": {"GET /?service=a", "GET /sampling?service=a", "GET /api/sampling?service=a",
		"GET /api/sampling/explain?service=a", "GET /baggageRestrictions?service=a"},
	"admin http": {"GET /", "GET /healthz", "GET /readyz", "GET /status", "GET /status/details", "GET /sampling",
		"GET /sampling/explain?service=a", "GET /metrics", "GET /version", "GET /log-level",
		"PUT /log-level", "GET /debug/vars", "GET /debug/pprof/", "GET /debug/pprof/heap",
		"GET /debug/pprof/profile?seconds=1", "GET /debug/pprof/symbol", "GET /debug/pprof/trace?seconds=0.001",
		"POST /exporters/memory/delete"},
	"health_check http": {"GET /"},
}

const allListeners = `
receivers:
  otlp: {protocols: {http: {endpoint: "127.0.0.1:0", %[1]s}, grpc: {endpoint: "127.0.0.1:0"}}}
  native: {protocols: {http: {endpoint: "127.0.0.1:0", %[1]s}, grpc: {endpoint: "127.0.0.1:0"}}, sampling: sampling}
  zipkin: {endpoint: "127.0.0.1:0", %[1]s}
exporters: {memory: {allow_delete: true}, memory/archive: }
extensions:
  query:
    {storage: memory, archive_storage: memory/archive, demo: {period: 1m, rate: 1},
    http: {endpoint: "127.0.0.1:0", %[1]s}, grpc: {endpoint: "127.0.0.1:0"}}
  sampling: {file: {default_sampling_probability: 1}, http: {endpoint: "127.0.0.1:0", %[1]s}, grpc: {endpoint: "127.0.0.1:0"}}
  admin: {endpoint: "127.0.0.1:0", %[1]s}
  health_check: {endpoint: "127.0.0.1:0", %[1]s, grpc: {endpoint: "127.0.0.1:0"}}
  remote_storage: {endpoint: "127.0.0.1:0", storage: memory}
service:
  extensions: [query, sampling, admin, health_check, remote_storage]
  pipelines: {traces: {receivers: [otlp, native, zipkin], exporters: [memory]}}`

// TestBrowsers sends each case to each route of each listener. The table has "yes" if the route got
// the request, and otherwise the check that refused it.
func TestBrowsers(t *testing.T) {
	soak.SkipIfRaced(t)
	p := inprocess.StartYAML(t, fmt.Sprintf(allListeners, `allowed_hosts: [traces.example.com], cors: {allowed_origins: ["https://app.example.com"]}`))
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	header := "listener\troute"
	for _, c := range browserCases {
		header += "\t" + c.name
	}
	fmt.Fprintln(w, header)
	routes := maps.Clone(otherRoutes)
	routes["query http"] = append(queryRoutes(t), routes["query http"]...)
	rows := 0
	for _, listener := range sortedKeys(routes) {
		component, name, _ := strings.Cut(listener, " ")
		addr := p.Addr(component, name)
		for _, route := range routes[listener] {
			method, path, _ := strings.Cut(route, " ")
			row := listener + "\t" + route
			for _, c := range browserCases {
				row += "\t" + browserAnswer(t, addr, method, path, c.headers)
			}
			fmt.Fprintln(w, row)
			rows++
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "browsers.txt"), trimLines(out.String()))
	t.Logf("%d routes, %d cases", rows, len(browserCases))
}

// queryRoutes returns the routes in docs/openapi.json, with texts instead of parameters.
func queryRoutes(t *testing.T) (routes []string) {
	text, err := os.ReadFile(filepath.Join(harness.Root(t), "docs", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	for path, methods := range document.Paths {
		for method := range methods {
			routes = append(routes, strings.ToUpper(method)+" "+strings.NewReplacer("{id}", "1", "{", "", "}", "").Replace(path))
		}
	}
	slices.Sort(routes)
	return routes
}

// browserAnswer returns the cell of a request in the table.
func browserAnswer(t *testing.T, addr, method, path string, headers []string) string {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+addr+path, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], strings.ReplaceAll(headers[i+1], "SELF", addr))
	}
	req.Host = req.Header.Get("Host")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() // a live tail does not end
	if resp.StatusCode != http.StatusForbidden {
		return "yes"
	}
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		t.Fatal(err)
	case strings.Contains(string(body), "add it to allowed_hosts"):
		return "host"
	case strings.Contains(string(body), "cors::allowed_origins"):
		return "origin"
	}
	return "yes"
}

func sortedKeys[V any](m map[string]V) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func trimLines(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return out.String()
}

// TestBrowsersOnGRPC calls each method of each gRPC listener as a page of another origin can: over
// HTTP/1.1 with the content type of a form. gRPC listeners check neither Host nor Origin, because
// no such request reaches a method. Programs may use any authority.
func TestBrowsersOnGRPC(t *testing.T) {
	soak.SkipIfRaced(t)
	p := inprocess.StartYAML(t, fmt.Sprintf(allListeners, "max_connections: 100"))
	methods := 0
	for _, component := range []string{"otlp", "native", "query", "sampling", "health_check", "remote_storage"} {
		addr := p.Addr(component, "grpc")
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("evil.example"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		stream, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
			MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{ListServices: "*"}}); err != nil {
			t.Fatal(err)
		}
		list, err := stream.Recv()
		if err != nil {
			t.Fatalf("%s with another authority: %v", component, err)
		}
		for _, s := range list.GetListServicesResponse().GetService() {
			methods++
			for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded", "application/grpc"} {
				status, body := harness.Request(t, http.MethodPost, "http://"+addr+"/"+s.Name+"/Any", "\x00\x00\x00\x00\x00",
					"Content-Type", contentType, "Origin", "http://evil.example")
				if status != http.StatusBadRequest || !strings.Contains(body, "expects gRPC") {
					t.Errorf("%s, %s over HTTP/1.1: %d %s", s.Name, contentType, status, body)
				}
				if got := http2Answer(t, addr, s.Name, contentType); contentType != "application/grpc" && got != http.StatusUnsupportedMediaType {
					t.Errorf("%s, %s over HTTP/2: %d", s.Name, contentType, got)
				}
			}
		}
	}
	t.Logf("%d services", methods)
}

// http2Answer returns the status of a request over HTTP/2.
func http2Answer(t *testing.T, addr, service, contentType string) int {
	t.Helper()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: &protocols, DialContext: (&net.Dialer{Timeout: time.Minute}).DialContext}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/"+service+"/Any", strings.NewReader("\x00\x00\x00\x00\x00"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
