package tempo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/extensions/query/internal/semconv"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// marketStore returns a store with Market by the name that golden files use, as querytest.ShopStore
// does.
func marketStore(t *testing.T, name string) core.Store {
	t.Helper()
	store := querytest.NewStore(querytest.Market())
	switch name {
	case "":
	case "empty":
		store = querytest.NewStore(ptrace.NewTraces())
	case "broken":
		store.Fail = querytest.ErrStore
	case "partly":
		store.Outcome = tracestore.Outcome{Reasons: tracestore.Because(tracestore.ReasonDamage, "a part is gone")}
	case "plain":
		return store
	default:
		t.Fatalf("unknown store %q", name)
	}
	return querytest.FullStore{Store: store}
}

func routes(b *core.Backend) http.Handler {
	mux := httpapi.NewMux("", New(b, httpapi.Version{}).Routes())
	mux.HandleFunc("/tempo/", NotFound)
	return mux
}

func api(t testing.TB, store core.Store, change ...func(*core.Options)) http.Handler {
	t.Helper()
	b, _ := querytest.NewBackend(t, store, change...)
	return routes(b)
}

func TestAPI(t *testing.T) {
	querytest.Golden{Routes: routes, Store: marketStore, Headers: []string{"Content-Type"}}.Run(t, "testdata/*.txt")
}

// askProtobuf requests a trace as protobuf.
func askProtobuf(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept", "application/protobuf")
	w := querytest.Record(h, r)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/protobuf" {
		t.Fatalf("%s: %d %v %s", path, w.Code, w.Header(), w.Body)
	}
	return w
}

// fields returns the fields of a protobuf message. Each must occur once.
func fields(t *testing.T, b []byte) map[protowire.Number]string {
	t.Helper()
	out := make(map[protowire.Number]string)
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 || out[num] != "" {
			t.Fatalf("field %d: %v", num, protowire.ParseError(n))
		}
		b = b[n:]
		if typ == protowire.VarintType {
			v, m := protowire.ConsumeVarint(b)
			out[num], n = fmt.Sprint(v), m
		} else {
			v, m := protowire.ConsumeBytes(b)
			out[num], n = string(v), m
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
	}
	return out
}

func TestTraceAsProtobuf(t *testing.T) {
	f := func(size int, wantSpans int, wantStatus, wantMessage string) {
		t.Helper()
		h := api(t, querytest.NewStore(long()), func(o *core.Options) { o.Limits.TraceSize = size })
		plain := askProtobuf(t, h, "/tempo/api/traces/1?start=1714550000&end=1714560000").Body.Bytes()
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(plain)
		if err != nil || td.SpanCount() != wantSpans {
			t.Errorf("%d spans, want %d: %v", td.SpanCount(), wantSpans, err)
		}
		w := askProtobuf(t, h, "/tempo/api/v2/traces/1?start=1714550000&end=1714560000")
		got := fields(t, w.Body.Bytes())
		if got[1] != string(plain) || got[3] != wantStatus || got[4] != wantMessage {
			t.Errorf("status %q, message %q, same trace: %t", got[3], got[4], got[1] == string(plain))
		}
	}
	f(1000, 600, "", "")
	f(7, 7, "1", "the trace has more than max_trace_size (7) spans; the first ones are shown")
}

// long returns a trace of 600 spans that is sent in several messages.
func long() ptrace.Traces {
	td := ptrace.NewTraces()
	ss := querytest.AddService(td, "svc")
	for i := range 600 {
		querytest.AddSpan(ss, pcommon.TraceID{15: 1}, byte(i), byte(i>>8), "op", time.Duration(i)).Attributes().PutStr("k",
			strings.Repeat("x", 1000))
	}
	return td
}

func TestTruncatedTrace(t *testing.T) {
	h := api(t, querytest.NewStore(long()), func(o *core.Options) { o.Limits.TraceSize = 7 })
	const end = `]},"status":"PARTIAL","message":"the trace has more than max_trace_size (7) spans; the first ones are shown"}`
	w := querytest.Ask(t, h, http.MethodGet, "/tempo/api/v2/traces/1")
	if !json.Valid(w.Body.Bytes()) || !strings.HasSuffix(w.Body.String(), end) || strings.Count(w.Body.String(), `"spanId"`) != 7 {
		t.Errorf("%d %.300s", w.Code, w.Body)
	}
}

// foundTraces is the part of a search answer that data sources read.
type foundTraces struct {
	Traces []struct {
		TraceID  string `json:"traceID"`
		SpanSets []struct {
			Spans   []struct{ SpanID string }
			Matched int
		}
	}
	Warnings []string
}

func search200(t *testing.T, h http.Handler, query string) (a foundTraces) {
	t.Helper()
	w := querytest.Ask(t, h, http.MethodGet, "/tempo/api/search?"+query)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", query, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestShownNames(t *testing.T) {
	for want, f := range map[string]tracestore.Field{"a b": {Place: tracestore.LinkAttribute, Key: "a b"},
		"":             {Place: tracestore.SpanAttribute},
		"service.name": {Place: tracestore.Service}, "kind": {Place: tracestore.Kind}, "event:name": {Place: tracestore.EventName}} {
		if got := shownName(f); got != want {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
}

// TestScopesOfNames checks that a renamed attribute is listed in the scopes of all its names.
func TestScopesOfNames(t *testing.T) {
	td := ptrace.NewTraces()
	sp := querytest.AddSpan(querytest.AddService(td, "new"), pcommon.TraceID{15: 1}, 1, 0, "a", 0)
	sp.Attributes().PutStr("http.request.method", "GET")
	querytest.AddSpan(querytest.AddService(td, "old"), pcommon.TraceID{15: 2}, 1, 0, "a", 0)
	td.ResourceSpans().At(1).Resource().Attributes().PutStr("http.method", "GET")
	names, err := semconv.New(semconv.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	h := api(t, querytest.FullStore{Store: querytest.NewStore(td)}, func(o *core.Options) { o.Names = names })
	w := querytest.Ask(t, h, http.MethodGet, "/tempo/api/v2/search/tags")
	const want = `{"scopes":[{"name":"resource","tags":["http.request.method","service.name"]},{"name":"span","tags":["http.request.method"]},`
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), want) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestSearchIsBounded(t *testing.T) {
	td := long()
	svc := querytest.AddService(td, "svc")
	for i := range 30 {
		querytest.AddSpan(svc, pcommon.TraceID{14: byte(i + 1)}, 1, 0, "op", time.Duration(i+1)*time.Second)
	}
	h := api(t, querytest.NewStore(td), func(o *core.Options) { o.Limits.Traces = 25 })
	f := func(query string, traces, spans int) {
		t.Helper()
		a := search200(t, h, query)
		if len(a.Traces) != traces {
			t.Errorf("%s: %d traces, want %d", query, len(a.Traces), traces)
		}
		for _, found := range a.Traces {
			set := found.SpanSets[0]
			if found.TraceID == "0000000000000001" && (len(set.Spans) != spans || set.Matched != 600) {
				t.Errorf("%s: %d of %d spans, want %d of 600", query, len(set.Spans), set.Matched, spans)
			}
		}
	}
	f("", 20, 3)
	f("q={}&limit=25", 25, 3)
	f("q={.k!=%22%22}&spss=7", 1, 7)
	f("q={.k!=%22%22}&spss=1000000000", 1, maxSpans)
	f("q={.k!=%22%22}&spss=0", 1, maxSpans)
	f("q={.k!=%22%22}&start=1714557600&end=1714557601", 1, 3)
	f("start=1714557601&end=1714557603", 3, 0)
}

func TestHostileRequests(t *testing.T) {
	h := api(t, querytest.FullStore{Store: querytest.NewStore(querytest.Market())})
	for _, path := range []string{
		"traces/zz", "traces/" + strings.Repeat("1", 33), "traces/1%00", "traces/%2F", "v2/traces/-1", "traces/1?start=x",
		"traces/1?start=9&end=9",
		"search?limit=-1", "search?limit=0", "search?limit=1e9", "search?spss=-1", "search?limit=" + strings.Repeat("9", 1000),
		"search?q=" + strings.Repeat("(", 10_000), "search?q={name=~%22" + strings.Repeat("(a*)*", 1000) + "%22}", "search?q=%ff",
		"search?q=" + strings.Repeat("x", 1<<20),
		"search?tags=" + strings.Repeat("a%20", 100_000), "search?tags=a=%22", "search?tags==", "search?start=99999999999",
		"search?start=2&end=1", "search?start=4000000000",
		"search?q=%zz", "search?minDuration=x", "search?minDuration=2s&maxDuration=1s", "search?q={}&tags=a=b", "search/tags?scope=moon",
		"search/tags?limit=-5", "v2/search/tags?start=x", "v2/search/tag//values", "v2/search/tag/a,b/values",
		"v2/search/tag/span.x)%20%7C%20by(y/values",
		"v2/search/tag/span.x/values?limit=x", "search/tag/a/values?start=x",
	} {
		w := querytest.Ask(t, h, http.MethodGet, "/tempo/api/"+path)
		if redirected := w.Header().Get("Location"); redirected != "" {
			w = querytest.Ask(t, h, http.MethodGet, redirected)
		}
		if w.Code != http.StatusBadRequest && w.Code != http.StatusNotFound || w.Body.Len() > 2000 {
			t.Errorf("%.60s: %d with %d bytes: %.200s", path, w.Code, w.Body.Len(), w.Body)
		}
	}
}

func TestSlowStore(t *testing.T) {
	f := func(path string, failAt, status int, want string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			store := querytest.NewStore(querytest.Many(3, querytest.Unchanged))
			store.Hang, store.FailAt = true, failAt
			h := api(t, querytest.FullStore{Store: store})
			w := querytest.Ask(t, h, http.MethodGet, "/tempo/api/"+path)
			if w.Code != status || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		})
	}
	const text = "the store did not finish within query_timeout (1m0s); narrow the query"
	for _, path := range []string{"traces/1", "v2/traces/1", "search", "search/tags", "v2/search/tags", "search/tag/x/values",
		"v2/search/tag/.x/values",
		"v2/search/tag/name/values"} {
		f(path, 0, http.StatusGatewayTimeout, text)
	}
	f("search", 2, http.StatusOK, `"warnings":["result is incomplete: `+text+`"]}`)
}

func TestStoreFails(t *testing.T) {
	store := querytest.NewStore(querytest.Many(3, querytest.Unchanged))
	store.Fail, store.FailAt = querytest.ErrStore, 2
	h := api(t, store)
	if w := querytest.Ask(t, h, http.MethodGet, "/tempo/api/search"); w.Code != http.StatusInternalServerError ||
		!strings.Contains(w.Body.String(), "disk on fire") {
		t.Errorf("%d %.200s", w.Code, w.Body)
	}
}

func FuzzSearch(f *testing.F) {
	for _, s := range []string{"", "q={}&limit=50&spss=0&start=1&end=2", "tags=a=b&minDuration=1s&maxDuration=2s",
		"q={a=1}&tags=b", "q={.a=1}>>{.b=2}|select(.c)",
		"limit=-1", "spss=x", "start=4294967295", "end=1", "start=4294967295&end=4294967296", "q={}&maxDuration=-1s",
		"q=({}&&{})||{}&minDuration=1h", "%zz"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		q, err := parseSearch(traceql.Language{}, v, querytest.Noon, 50)
		if err != nil {
			return
		}
		if q.set == nil || q.limit < 1 || q.limit > 50 || q.spans < 1 || q.spans > maxSpans || len(q.fields) > maxShownFields ||
			!q.window.From.Before(q.window.To) {
			t.Errorf("%q is %+v", text, q)
		}
	})
}
