package commands_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestCanary runs the canary with a tenant against the memory store and the disk store.
func TestCanary(t *testing.T) {
	f := func(want string, more []string, set ...string) {
		t.Helper()
		p := inprocess.Start(t, append(set, "receivers::otlp::protocols::http::tenancy::enabled=true",
			"extensions::query::http::tenancy::enabled=true")...)
		code, stdout, stderr := inprocess.Canary(t, "http://"+p.OTLPHTTP(), p.QueryURL(), append(more, "--tenant=birds")...)
		if code != 0 || stdout != want {
			t.Errorf("%q: exit code %d: %s%s", set, code, stdout, stderr)
		}
		code, stdout, _ = inprocess.Canary(t, "http://"+p.OTLPHTTP(), p.QueryURL())
		if code != 1 || !strings.HasPrefix(stdout, "0 traces written, 30 not") {
			t.Errorf("%q: without a tenant: exit code %d: %s", set, code, stdout)
		}
	}
	f(inprocess.CanaryOK, nil)
	f(inprocess.CanaryOK, nil, "exporters::memory::max_bytes=256MiB",
		"service::pipelines::traces::exporters=[memory]", "extensions::query::storage=memory")
	// More spans than fit into the memtable.
	many := strings.NewReplacer("30", "150", "60", "300").Replace(inprocess.CanaryOK)
	f(many, []string{"--once=150", "--read-after=1s"}, "exporters::disk::memtable::max_spans=1000")
}

// TestCanaryBehindAHop checks that a second process, which forwards traces in the native format,
// does not change them.
func TestCanaryBehindAHop(t *testing.T) {
	backend := inprocess.Start(t)
	hop := inprocess.StartYAML(t, fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0"}}}}
processors: {batch: }
exporters: {native: {endpoint: %q, tls: {insecure: true}}}
service:
  pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [native]}}
`, backend.Addr("native", "grpc")))
	if code, stdout, stderr := inprocess.Canary(t, "http://"+hop.OTLPHTTP(), backend.QueryURL()); code != 0 || stdout != inprocess.CanaryOK {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// TestCanaryFindsLossAndChange checks that the canary detects spans that are lost after the
// acknowledgement or changed.
func TestCanaryFindsLossAndChange(t *testing.T) {
	f := func(exit int, summary, log string, change func(n int, td ptrace.Traces)) {
		t.Helper()
		p := inprocess.Start(t)
		proxy := httptest.NewServer(changing(t, p.OTLPHTTP(), change))
		defer proxy.Close()
		code, stdout, stderr := inprocess.Canary(t, proxy.URL, p.QueryURL())
		if code != exit || !strings.Contains(stdout, summary) || !strings.Contains(stderr, log) {
			t.Errorf("exit code %d: %s%s\nwant %d, %s, %s", code, stdout, stderr, exit, summary, log)
		}
	}
	spans := func(td ptrace.Traces, i int) ptrace.SpanSlice {
		return td.ResourceSpans().At(i).ScopeSpans().At(0).Spans()
	}
	f(0, "60 ok", "started canary", func(int, ptrace.Traces) {})
	f(1, "58 ok, 0 late, 2 missing, 0 wrong", "trace not found", func(n int, td ptrace.Traces) {
		if n == 7 {
			td.ResourceSpans().RemoveIf(func(ptrace.ResourceSpans) bool { return true })
		}
	})
	f(1, "58 ok, 0 late, 2 missing, 0 wrong", "is missing (1 of", func(n int, td ptrace.Traces) {
		if n == 7 {
			first := true
			spans(td, 1).RemoveIf(func(ptrace.Span) bool { defer func() { first = false }(); return first })
		}
	})
	f(1, "0 ok, 0 late, 0 missing, 60 wrong", `start time`, func(_ int, td ptrace.Traces) {
		s := spans(td, 1).At(0)
		s.SetStartTimestamp(s.StartTimestamp() - 1000)
	})
	f(1, "0 ok, 0 late, 0 missing, 60 wrong", `tag \"canary.span\": got string`, func(_ int, td ptrace.Traces) {
		spans(td, 1).At(0).Attributes().PutStr("canary.span", "2")
	})
}

// changing returns a proxy that applies change to the spans of the n-th request, counted from 1.
func changing(t *testing.T, target string, change func(n int, td ptrace.Traces)) http.Handler {
	n := 0
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: target})
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		b, err := otlpdata.FromOTLP(body, otlpdata.Meta{}, otlpdata.Limits{})
		if err == nil {
			n++
			b, err = b.Edit(func(td ptrace.Traces) error { change(n, td); return nil })
		}
		if err != nil {
			t.Error(err)
			return
		}
		if body, err = b.Encoded(); err != nil {
			t.Error(err)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		proxy.ServeHTTP(w, r)
	})
}
