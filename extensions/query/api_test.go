package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is when everything in the shop happens, noon when the tests run.
var (
	start = time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC)
	noon  = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
)

// shop returns two traces: a request through two services that fails, and a lonely span with a 128-bit id.
func shop() ptrace.Traces {
	td := ptrace.NewTraces()
	web := service(td, "web")
	s := put(web, pcommon.TraceID{15: 1}, 1, 0, "GET /", 0)
	s.SetKind(ptrace.SpanKindServer)
	s.Attributes().PutInt("http.status", 500)
	s.Status().SetCode(ptrace.StatusCodeError)
	s = put(service(td, "a/b"), pcommon.TraceID{15: 1}, 2, 1, "SELECT", time.Millisecond)
	s.SetKind(ptrace.SpanKindClient)
	s.Attributes().PutStr("db", "<x>")
	put(web, pcommon.TraceID{0: 0xab, 15: 2}, 3, 0, "cron", time.Second)
	put(web, pcommon.TraceID{0: 0xab, 15: 2}, 4, 0, "cron", 2*time.Second).SetKind(ptrace.SpanKindInternal)
	return td
}

// shopWithPeers returns the shop, which also sends a message and calls a database, a queue and a service of somebody else.
func shopWithPeers() ptrace.Traces {
	td := shop()
	web, billing := service(td, "web"), service(td, "billing")
	trace := pcommon.TraceID{15: 3}
	sent := put(web, trace, 1, 0, "send", 3*time.Second)
	sent.SetKind(ptrace.SpanKindProducer)
	sent.Attributes().PutStr("messaging.system", "kafka")
	put(billing, trace, 2, 1, "receive", 4*time.Second).SetKind(ptrace.SpanKindConsumer)
	for i, peer := range [][2]string{{"db.system", "postgresql"}, {"db.system.name", "postgresql"}, {"messaging.system", "kafka"},
		{"peer.service", "<bank>"}} {
		s := put(billing, trace, byte(3+i), 2, "call", 5*time.Second)
		s.SetKind(ptrace.SpanKindClient)
		s.Attributes().PutStr(peer[0], peer[1])
		s.Status().SetCode(ptrace.StatusCode(i))
	}
	return td
}

func service(td ptrace.Traces, name string) ptrace.ScopeSpans {
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", name)
	return rs.ScopeSpans().AppendEmpty()
}

func put(ss ptrace.ScopeSpans, trace pcommon.TraceID, id, parent byte, name string, after time.Duration) ptrace.Span {
	s := ss.Spans().AppendEmpty()
	s.SetTraceID(trace)
	s.SetSpanID(pcommon.SpanID{7: id})
	s.SetParentSpanID(pcommon.SpanID{7: parent})
	s.SetName(name)
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(start.Add(after)))
	s.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(after + 100*time.Millisecond)))
	return s
}

// api returns the routes over a store, with the default bounds.
func api(t testing.TB, store Store, change ...func(*handler)) (http.Handler, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	m, err := newMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return noon }
	h := &handler{
		backend: &backend{store: store, logger: zap.NewNop(), metrics: m, now: now, memory: pipeline.NewBudget(1 << 30)},
		ui:      &ui{logger: zap.NewNop(), now: now},
		tails:   newTails(defaultTail()),
	}
	h.limits = limits{timeout: time.Minute, traces: 1000, traceSize: 1000, scanned: 1000, aggregated: 1000, queries: 10}
	for _, f := range change {
		f(h)
	}
	return h.routes(""), reg
}

func ask(t testing.TB, h http.Handler, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	return record(h, httptest.NewRequest(method, target, nil))
}

func record(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestAPI runs the files in testdata/api. A file is a request line, a line of dashes, and the whole answer. Before the dashes there may be
// more lines:
//
//	store: what to ask: shop (the default), empty, broken, partly (reads only a part), plain (can do only what it must),
//	memory (the shop in a real store), peers (a shop that calls more, in one), no peers (knows calls between services only)
//	archive: what the archive has: empty, shop, broken; there is none without this line
//	body: what is posted
//	skew: by how much times may be moved
func TestAPI(t *testing.T) {
	files, err := filepath.Glob("testdata/api/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(string(b), "---\n")
			got := head + "---\n" + serve(t, head)
			golden.Check(t, file, got)
		})
	}
}

func serve(t *testing.T, head string) string {
	request, rest, _ := strings.Cut(strings.TrimSpace(head), "\n")
	method, target, _ := strings.Cut(request, " ")
	options := make(map[string]string)
	for line := range strings.Lines(rest) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		options[name] = value
	}
	h, _ := api(t, storeOf(t, options["store"]), func(h *handler) {
		if name, ok := options["archive"]; ok {
			h.archive = archiveOf(t, name)
		}
		if d, ok := options["skew"]; ok {
			var err error
			if h.limits.clockSkew, err = time.ParseDuration(d); err != nil {
				t.Fatal(err)
			}
		}
	})
	w := record(h, httptest.NewRequest(method, target, strings.NewReader(options["body"])))
	var out bytes.Buffer
	fmt.Fprintln(&out, w.Code)
	for _, name := range []string{"Content-Type", "X-Content-Type-Options", "Tracing-Warning"} {
		if v := w.Header().Get(name); v != "" {
			fmt.Fprintf(&out, "%s: %s\n", name, v)
		}
	}
	if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
		t.Errorf("not JSON: %s", w.Body)
	}
	fmt.Fprintf(&out, "\n%s", w.Body)
	return out.String()
}

func storeOf(t *testing.T, name string) Store {
	store := newFakeStore(shop())
	switch name {
	case "":
	case "empty":
		return newFakeStore(ptrace.NewTraces())
	case "broken":
		store.fail = errStore
	case "partly":
		store.outcome = tracestore.Outcome{Reason: "a part is gone"}
	case "memory":
		return filledMemory(t, shop())
	case "peers":
		return filledMemory(t, shopWithPeers())
	case "no peers":
		type calls = tracestore.Dependencies
		return struct {
			Store
			calls
		}{store, store}
	case "plain":
		return struct{ Store }{store}
	default:
		t.Fatalf("unknown store %q", name)
	}
	return store
}

func archiveOf(t *testing.T, name string) *fakeArchive {
	switch name {
	case "empty":
		return &fakeArchive{fakeStore: newFakeStore(ptrace.NewTraces())}
	case "shop":
		return &fakeArchive{fakeStore: newFakeStore(shop())}
	case "broken":
		store := newFakeStore(ptrace.NewTraces())
		store.fail = errStore
		return &fakeArchive{fakeStore: store}
	}
	t.Fatalf("unknown archive %q", name)
	return nil
}
