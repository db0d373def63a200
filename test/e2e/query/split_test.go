package query_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// split is a collector and a query service, with the shipped presets. The collector also serves its
// store itself, as the preset all-in-one does.
type split struct{ collector, query *inprocess.Program }

func startSplit(t *testing.T, settings ...string) split {
	t.Helper()
	collector := inprocess.StartPreset(t, "collector", append(settings, "extensions::query::storage=disk",
		"extensions::query::http::endpoint=localhost:0", "service::extensions=[sampling, remote_storage, query, admin]")...)
	query := inprocess.StartPreset(t, "query", append(settings, "exporters::grpc::endpoint="+collector.Addr("remote_storage", "grpc"))...)
	return split{collector, query}
}

// send sends requests to the collector.
func (s split) send(t *testing.T, data *bench.Dataset, spans int) {
	t.Helper()
	r, err := load.Run(t.Context(), load.Options{Target: s.collector.OTLPGRPC(), Connections: 2, InFlight: 2, Retry: time.Minute},
		data.Requests(spans, 100))
	if err != nil || r.Acked < spans {
		t.Fatalf("%d spans were acknowledged: %v", r.Acked, err)
	}
}

// splitPaths are requests for everything that the query service serves.
func splitPaths(data *bench.Dataset, start time.Time) []string {
	service := data.Services()[0]
	trace := data.Trace(3)
	id := hex.EncodeToString(trace[0].TraceID[:])
	from, to := start.Add(-time.Minute), start.Add(10*time.Minute)
	window := fmt.Sprintf("start=%d&end=%d", from.UnixNano(), to.UnixNano())
	micros := fmt.Sprintf("start=%d&end=%d", from.UnixMicro(), to.UnixMicro())
	calls := fmt.Sprintf("service=%s&endTs=%d&lookback=1200000&step=60000&ratePer=60000", service, to.UnixMilli())
	paths := []string{
		"/api/ui/v1/config", "/api/ui/v1/services?" + window, "/api/ui/v1/errors?" + window, "/api/ui/v1/changes?" + window,
		"/api/ui/v1/incidents?" + window,
		"/api/services", "/api/services/" + service + "/operations", "/api/operations?service=" + service + "&spanKind=server",
		"/api/traces/" + id, "/api/ui/v1/outline/" + id,
		"/api/ui/v1/outline/" + id + "/spans?ids=" + hex.EncodeToString(trace[0].SpanID[:]) + "," + hex.EncodeToString(trace[1].SpanID[:]),
		"/api/ui/v1/outline/" + id + "/find?q=http", "/api/ui/v1/outline/" + id + "/find?q=" + url.QueryEscape(`{ kind = server }`),
		"/api/ui/v1/outline/" + id + "/find?q=" + url.QueryEscape(`{ kind = server } >> { kind = client }`),
		"/api/traces?limit=5&service=" + service + "&" + micros,
		fmt.Sprintf("/api/dependencies?details=true&endTs=%d&lookback=1200000", to.UnixMilli()),
		"/api/metrics/calls?" + calls, "/api/metrics/errors?groupByOperation=true&" + calls,
		"/api/metrics/latencies?quantile=0.95&" + calls, "/api/metrics/minstep",
		"/api/ui/v1/heatmap?step=10s&exemplars=10&" + window, "/api/ui/v1/facets?values=5&" + window,
		"/api/ui/v1/compare?values=5&sel_q=" + url.QueryEscape(`{ status = error }`) + "&" + window,
		"/api/ui/v1/keys?prefix=http", "/api/ui/v1/values?key=service&prefix=", "/api/ui/v1/values?key=name&service=" + service,
		"/api/ui/v1/values?key=http.request.method&prefix=",
		"/tempo/api/v2/search/tags", "/tempo/api/traces/" + id,
		"/api/v3/services", "/api/v3/traces/" + id,
	}
	for _, text := range []string{`{ kind = server && duration > 1ms }`, `{ status = error } >> { kind = client }`,
		`{ trace.duration > 5ms }`, `{ root.service = "` + service + `" }`,
		`{ name =~ ".*o.*" } && { span.http.request.method != "GET" }`} {
		q := "&q=" + url.QueryEscape(text) + "&" + window
		paths = append(paths, "/api/ui/v1/search?limit=20&matched=1"+q, "/api/ui/v1/heatmap?step=10s"+q,
			"/api/ui/v1/heatmap?of=traces&step=10s"+q, "/api/ui/v1/facets?values=5"+q)
	}
	return paths
}

var scanned = regexp.MustCompile(`"scanned":[0-9]+`)

// TestSplitDeployment runs the presets collector and query, and checks that the query service
// supports everything that it supports on a store in the same process, with the same answers.
func TestSplitDeployment(t *testing.T) {
	s := startSplit(t)
	start := time.Now().Truncate(time.Minute).Add(-10 * time.Minute)
	data := bench.New(5, start)
	s.send(t, data, 2000)
	for _, path := range splitPaths(data, start) {
		want, wantBody := harness.Fetch(t, s.collector.QueryURL()+path)
		got, body := harness.Fetch(t, s.query.QueryURL()+path)
		if strings.HasPrefix(path, "/api/ui/v1/") { // a remote store examines spans ahead of its reader
			wantBody, body = scanned.ReplaceAll(wantBody, nil), scanned.ReplaceAll(body, nil)
		}
		if want != http.StatusOK || len(wantBody) < 20 {
			t.Errorf("%s without the split: %d %s", path, want, wantBody)
		}
		if got != want || !bytes.Equal(body, wantBody) {
			at := 0
			for at < min(len(body), len(wantBody)) && body[at] == wantBody[at] {
				at++
			}
			t.Errorf("%s: %d, ...%.300s\nwithout the split: %d, ...%.300s", path, got, body[max(0, at-50):], want, wantBody[max(0, at-50):])
		}
	}
	var config struct {
		Data struct{ Capabilities map[string]bool }
	}
	_, body := harness.Fetch(t, s.query.QueryURL()+"/api/ui/v1/config")
	if err := json.Unmarshal(body, &config); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"aggregates", "metrics", "dependencies", "attributes", "tail"} {
		if !config.Data.Capabilities[name] {
			t.Errorf("query service lacks %s: %s", name, body)
		}
	}
}

// TestSplitTail checks that a live tail of the query service gets spans that the collector stores.
func TestSplitTail(t *testing.T) {
	s := startSplit(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.query.QueryURL()+"/api/ui/v1/tail?q="+
		url.QueryEscape(`{ name = "watched" }`), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("tail: %v, %v", resp, err)
	}
	defer resp.Body.Close() //nolint:errcheck // ends the request
	lines := bufio.NewScanner(resp.Body)
	send := func(id, name string) {
		t.Helper()
		if code, answer := s.collector.PostOTLP("application/json", harness.JSONSpan(id, "shop", name, time.Now(),
			time.Millisecond)); code != http.StatusOK {
			t.Fatalf("sending a span: %d %s", code, answer)
		}
	}
	await := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("tail ended before %q: %v", text, lines.Err())
	}
	await(`"shown":0`)
	send("0102030405060708090a0b0c0d0e0f10", "other")
	send("0102030405060708090a0b0c0d0e0f11", "watched")
	await("0102030405060708090a0b0c0d0e0f11")
	if err := s.collector.Stop(); err != nil {
		t.Error(err)
	}
	await("event: end")
}
