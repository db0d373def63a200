package query_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/test/harness"
)

// runRemoteStore runs a store for other processes at an address, in a process of its own.
func runRemoteStore(t *testing.T, addr string) *harness.Process {
	t.Helper()
	p := harness.RunYAML(t, fmt.Sprintf(`
exporters: {memory: }
extensions: {remote_storage: {endpoint: %q, storage: memory}, admin: {endpoint: "localhost:0"}}
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
service:
  data_dir: %q
  extensions: [remote_storage, admin]
  pipelines: {traces: {receivers: [otlp], exporters: [memory]}}
`, addr, t.TempDir()))
	p.AwaitReady()
	return p
}

// checkRetryInfo checks that a call failed with Unavailable and a delay.
func checkRetryInfo(t *testing.T, what string, err error) {
	t.Helper()
	s := status.Convert(err)
	for _, d := range s.Details() {
		if ri, ok := d.(*errdetails.RetryInfo); ok && ri.GetRetryDelay().AsDuration() > 0 && s.Code() == codes.Unavailable {
			return
		}
	}
	t.Errorf("%s: %v with details %v, want Unavailable with RetryInfo", what, err, s.Details())
}

// While the remote store is unreachable, the process is degraded and not ready, reads and writes
// are answered 503 with a delay, and nothing hangs. All of that ends when the store is back.
func TestUnreachableStore(t *testing.T) {
	addr := pipelinetest.FixedAddress(t)
	store := runRemoteStore(t, addr)
	p := harness.RunYAML(t, fmt.Sprintf(`
receivers:
  otlp: {protocols: {grpc: {endpoint: "localhost:0"}, http: {endpoint: "localhost:0"}}}
  zipkin: {endpoint: "localhost:0"}
processors: {batch: }
exporters: {grpc: {endpoint: %q, tls: {insecure: true}, probe_interval: 100ms, retry_on_failure: {initial_interval: 100ms}}}
extensions: {query: {storage: grpc, http: {endpoint: "localhost:0"}, grpc: {endpoint: "localhost:0"}}, admin: {endpoint: "localhost:0"}}
service:
  data_dir: %q
  limits: {max_wait: 300ms}
  extensions: [query, admin]
  pipelines: {traces: {receivers: [otlp, zipkin], processors: [batch], exporters: [grpc]}}
`, addr, t.TempDir()))
	p.AwaitReady()
	conn, err := grpc.NewClient(p.Address("query", "grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the test has ended
	otlp := "http://" + p.OTLPHTTP() + "/v1/traces"
	span := harness.JSONSpan("0102030405060708090a0b0c0d0e0f10", "shop", "pay", time.Now(), time.Second)
	healthy := func(what string) {
		t.Helper()
		harness.Poll(t, what, func() bool {
			ready, _ := harness.Fetch(t, p.AdminURL()+"/readyz")
			code, _ := harness.Request(t, http.MethodPost, otlp, span, "Content-Type", "application/json")
			read, _ := harness.Fetch(t, p.QueryURL()+"/api/services")
			_, state := harness.Fetch(t, p.AdminURL()+"/status")
			return ready == 200 && code == 200 && read == 200 && strings.HasPrefix(string(state), `{"status":"ok"`)
		})
	}
	healthy("the store is reachable")

	store.Kill()
	p.Await("msg", "Health Check state change", "status", "unavailable")
	want := "not ready: exporter grpc: remote storage server " + addr + " is unreachable"
	if code, body := harness.Fetch(t, p.AdminURL()+"/readyz"); code != 503 || !strings.Contains(string(body), want) {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if code, body := harness.Fetch(t, p.AdminURL()+"/"); code != 200 { // a liveness probe must not restart the process
		t.Errorf("/: %d %s", code, body)
	}
	if code, body := harness.Fetch(t, p.AdminURL()+"/status"); code != 200 || !strings.HasPrefix(string(body), `{"status":"degraded"`) {
		t.Errorf("/status: %d %s", code, body)
	}
	for _, path := range []string{"/api/services", "/api/services/shop/operations", "/api/operations?service=shop",
		"/api/traces?service=shop", "/api/traces/0102030405060708090a0b0c0d0e0f10", "/api/dependencies?endTs=1&lookback=1",
		"/api/v3/services", "/api/v3/traces/0102030405060708090a0b0c0d0e0f10", "/api/traces/0102030405060708090a0b0c0d0e0f10?raw=true"} {
		checkUnavailable(t, http.MethodGet, p.QueryURL()+path, "")
	}
	checkUnavailable(t, http.MethodPost, otlp, span)
	checkUnavailable(t, http.MethodPost, "http://"+p.Address("zipkin", "http")+"/api/v2/spans", `[{"traceId":"1","id":"1","name":"x"}]`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = api_v2.NewQueryServiceClient(conn).GetServices(ctx, &api_v2.GetServicesRequest{})
	checkRetryInfo(t, "GetServices", err)
	find, err := api_v2.NewQueryServiceClient(conn).FindTraces(ctx,
		&api_v2.FindTracesRequest{Query: &api_v2.TraceQueryParameters{ServiceName: "shop"}})
	if err == nil {
		_, err = find.Recv()
	}
	checkRetryInfo(t, "FindTraces", err)

	runRemoteStore(t, addr)
	p.Await("msg", "component recovered", "component", "grpc")
	healthy("the store is reachable again")
}

// checkUnavailable checks that a request is answered 503 with a delay.
func checkUnavailable(t *testing.T, method, url, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Errorf("%s: %v", url, err)
		return
	}
	defer resp.Body.Close() //nolint:errcheck // only the header counts
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%s: %d, Retry-After %q", url, resp.StatusCode, resp.Header.Get("Retry-After"))
	}
}
