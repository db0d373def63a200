package query

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// fullStore is a fakeStore that also knows attributes and describes spans.
type fullStore struct{ *fakeStore }

func (f fullStore) attributes(visit func(key, value string)) {
	f.each(func(s tracestore.Span, _ *otlpdata.Batch) {
		for _, kvs := range [][]otlpdata.KeyValue{s.Resource.Attributes, s.Attributes} {
			for _, kv := range kvs {
				visit(kv.Key, kv.Value.AsString())
			}
		}
		for _, e := range s.Events {
			for _, kv := range e.Attributes {
				visit(kv.Key, kv.Value.AsString())
			}
		}
	})
}

func (f fullStore) AttributeKeys(ctx context.Context, _, _ string, limit int) ([]string, error) {
	if err := f.broken(ctx, 0); err != nil {
		return nil, err
	}
	keys := make(map[string]bool)
	f.attributes(func(key, _ string) { keys[key] = true })
	all := slices.Sorted(maps.Keys(keys))
	return all[:min(len(all), limit)], nil
}

func (f fullStore) AttributeValues(ctx context.Context, _, key, _ string, limit int) ([]string, error) {
	if err := f.broken(ctx, 0); err != nil {
		return nil, err
	}
	values := make(map[string]bool)
	f.attributes(func(k, v string) {
		if k == key {
			values[v] = true
		}
	})
	all := slices.Sorted(maps.Keys(values))
	return all[:min(len(all), limit)], nil
}

func (f fullStore) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	if err := f.broken(ctx, 0); err != nil {
		return tracestore.Aggregate{}, err
	}
	return storequery.AggregateSpans(q, a, f.spans)
}

// market is shop with attributes of all kinds.
func market() ptrace.Traces {
	td := shop()
	s := put(service(td, "market"), pcommon.TraceID{15: 3}, 5, 0, "sell \"it\"", 3*time.Second)
	for key, value := range map[string]any{"http.status": "teapot", "price": 1.5, "paid": true, "a key": "v", "rare/slash": "x"} {
		if err := s.Attributes().PutEmpty(key).FromRaw(value); err != nil {
			panic(err)
		}
	}
	e := s.Events().AppendEmpty()
	e.SetName("exception")
	e.Attributes().PutStr("exception.type", "OutOfStock")
	e.Attributes().PutStr("shelf", "B2")
	s.Status().SetMessage("sold out")
	return td
}

func tempoStore(t *testing.T, name string) Store {
	store := newFakeStore(market())
	switch name {
	case "":
	case "empty":
		store = newFakeStore(ptrace.NewTraces())
	case "broken":
		store.fail = errStore
	case "partly":
		store.outcome = tracestore.Outcome{Reason: "a part is gone"}
	case "plain":
		return store
	default:
		t.Fatalf("unknown store %q", name)
	}
	return fullStore{store}
}

// TestTempo runs the files in testdata/tempo, which are as those of TestAPI.
func TestTempo(t *testing.T) {
	files, err := filepath.Glob("testdata/tempo/*.txt")
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
			request, rest, _ := strings.Cut(strings.TrimSpace(head), "\n")
			method, target, _ := strings.Cut(request, " ")
			h, _ := api(t, tempoStore(t, strings.TrimPrefix(strings.TrimSpace(rest), "store: ")))
			w := ask(t, h, method, target)
			if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
				t.Errorf("not JSON: %s", w.Body)
			}
			got := fmt.Sprintf("%s---\n%d\nContent-Type: %s\n\n%s", head, w.Code, w.Header().Get("Content-Type"), w.Body)
			golden.Check(t, file, got)
		})
	}
}

// tempoProtobuf asks for a trace as data sources do.
func tempoProtobuf(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept", "application/protobuf")
	w := record(h, r)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/protobuf" {
		t.Fatalf("%s: %d %v %s", path, w.Code, w.Header(), w.Body)
	}
	return w
}

// fields returns the fields of a protobuf message that has each once.
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

func TestTempoTraceAsProtobuf(t *testing.T) {
	f := func(size int, wantSpans int, wantStatus, wantMessage string) {
		t.Helper()
		h, _ := api(t, newFakeStore(long()), func(h *handler) { h.limits.traceSize = size })
		plain := tempoProtobuf(t, h, "/tempo/api/traces/1?start=1714550000&end=1714560000").Body.Bytes()
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(plain)
		if err != nil || td.SpanCount() != wantSpans {
			t.Errorf("%d spans, want %d: %v", td.SpanCount(), wantSpans, err)
		}
		w := tempoProtobuf(t, h, "/tempo/api/v2/traces/1?start=1714550000&end=1714560000")
		got := fields(t, w.Body.Bytes())
		if got[1] != string(plain) || got[3] != wantStatus || got[4] != wantMessage {
			t.Errorf("status %q, message %q, the trace is the same: %t", got[3], got[4], got[1] == string(plain))
		}
	}
	f(1000, 600, "", "")
	f(7, 7, "1", "the trace has more than max_trace_size (7) spans; the first ones are shown")
}

// long is a trace of 600 spans that takes several messages.
func long() ptrace.Traces {
	td := ptrace.NewTraces()
	ss := service(td, "svc")
	for i := range 600 {
		put(ss, pcommon.TraceID{15: 1}, byte(i), byte(i>>8), "op", time.Duration(i)).Attributes().PutStr("k", strings.Repeat("x", 1000))
	}
	return td
}

func TestTempoTraceThatIsCut(t *testing.T) {
	h, _ := api(t, newFakeStore(long()), func(h *handler) { h.limits.traceSize = 7 })
	const end = `]},"status":"PARTIAL","message":"the trace has more than max_trace_size (7) spans; the first ones are shown"}`
	w := ask(t, h, http.MethodGet, "/tempo/api/v2/traces/1")
	if !json.Valid(w.Body.Bytes()) || !strings.HasSuffix(w.Body.String(), end) || strings.Count(w.Body.String(), `"spanId"`) != 7 {
		t.Errorf("%d %.300s", w.Code, w.Body)
	}
}

// tempoFoundTraces is what data sources read of the answer to a search.
type tempoFoundTraces struct {
	Traces []struct {
		TraceID  string `json:"traceID"`
		SpanSets []struct {
			Spans   []struct{ SpanID string }
			Matched int
		}
	}
	Warnings []string
}

func tempoSearch200(t *testing.T, h http.Handler, query string) (a tempoFoundTraces) {
	t.Helper()
	w := ask(t, h, http.MethodGet, "/tempo/api/search?"+query)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", query, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestShownNames(t *testing.T) {
	for want, f := range map[string]tracestore.Field{"a b": {Place: tracestore.LinkAttribute, Key: "a b"}, "": {Place: tracestore.SpanAttribute},
		"service.name": {Place: tracestore.Service}, "kind": {Place: tracestore.Kind}, "event:name": {Place: tracestore.EventName}} {
		if got := shownName(f); got != want {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
}

func TestTempoSearchIsBounded(t *testing.T) {
	td := long()
	svc := service(td, "svc")
	for i := range 30 {
		put(svc, pcommon.TraceID{14: byte(i + 1)}, 1, 0, "op", time.Duration(i+1)*time.Second)
	}
	h, _ := api(t, newFakeStore(td), func(h *handler) { h.limits.traces = 25 })
	f := func(query string, traces, spans int) {
		t.Helper()
		a := tempoSearch200(t, h, query)
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
	f("q={}&limit=1000000000", 25, 3)
	f("q={}&limit=18446744073709551615", 25, 3)
	f("q={.k!=%22%22}&spss=7", 1, 7)
	f("q={.k!=%22%22}&spss=1000000000", 1, maxTempoSpans)
	f("q={.k!=%22%22}&spss=0", 1, maxTempoSpans)
	f("q={.k!=%22%22}&start=1714557600&end=1714557601", 1, 3)
	f("start=1714557601&end=1714557603", 3, 0)
}

func TestTempoHostileRequests(t *testing.T) {
	h, _ := api(t, fullStore{newFakeStore(market())})
	for _, path := range []string{
		"traces/zz", "traces/" + strings.Repeat("1", 33), "traces/1%00", "traces/%2F", "v2/traces/-1", "traces/1?start=x", "traces/1?start=9&end=9",
		"search?limit=-1", "search?limit=0", "search?limit=1e9", "search?spss=-1", "search?limit=" + strings.Repeat("9", 1000),
		"search?q=" + strings.Repeat("(", 10_000), "search?q={name=~%22" + strings.Repeat("(a*)*", 1000) + "%22}", "search?q=%ff", "search?q=" + strings.Repeat("x", 1<<20),
		"search?tags=" + strings.Repeat("a%20", 100_000), "search?tags=a=%22", "search?tags==", "search?start=99999999999", "search?start=2&end=1", "search?start=4000000000",
		"search?q=%zz", "search?minDuration=x", "search?minDuration=2s&maxDuration=1s", "search?q={}&tags=a=b", "search/tags?scope=moon",
		"search/tags?limit=-5", "v2/search/tags?start=x", "v2/search/tag//values", "v2/search/tag/a,b/values", "v2/search/tag/span.x)%20%7C%20by(y/values",
		"v2/search/tag/span.x/values?limit=x", "search/tag/a/values?start=x",
	} {
		w := ask(t, h, http.MethodGet, "/tempo/api/"+path)
		if redirected := w.Header().Get("Location"); redirected != "" {
			w = ask(t, h, http.MethodGet, redirected)
		}
		if w.Code != http.StatusBadRequest && w.Code != http.StatusNotFound || w.Body.Len() > 2000 {
			t.Errorf("%.60s: %d with %d bytes: %.200s", path, w.Code, w.Body.Len(), w.Body)
		}
	}
}

func TestTempoSlowStore(t *testing.T) {
	f := func(path string, failAt, status int, want string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			store := newFakeStore(many(3, func(int, ptrace.ResourceSpans, ptrace.Span) {}))
			store.hang, store.failAt = true, failAt
			h, _ := api(t, fullStore{store})
			w := ask(t, h, http.MethodGet, "/tempo/api/"+path)
			if w.Code != status || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		})
	}
	const text = "the store did not finish within query_timeout (1m0s); ask for less"
	for _, path := range []string{"traces/1", "v2/traces/1", "search", "search/tags", "v2/search/tags", "search/tag/x/values", "v2/search/tag/.x/values",
		"v2/search/tag/name/values"} {
		f(path, 0, http.StatusGatewayTimeout, text)
	}
	f("search", 2, http.StatusOK, `"warnings":["result is incomplete: `+text+`"]}`)
}

func TestTempoStoreThatBreaksOff(t *testing.T) {
	store := newFakeStore(many(3, func(int, ptrace.ResourceSpans, ptrace.Span) {}))
	store.fail, store.failAt = errStore, 2
	h, _ := api(t, store)
	if w := ask(t, h, http.MethodGet, "/tempo/api/search"); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "disk on fire") {
		t.Errorf("%d %.200s", w.Code, w.Body)
	}
}

func FuzzLogfmt(f *testing.F) {
	for _, s := range []string{"", "a=b", `a=b c="d e" f`, `a="\"\\\u00e9"`, "=", `a"`, `a="`, "a=b=c", "a=1 a=2", " \t\na = b", "é=\xff", strings.Repeat("a ", 100)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tags, err := parseLogfmt(text)
		if err != nil {
			return
		}
		// What was read reads back from its plainest form.
		var b bytes.Buffer
		for _, tag := range tags {
			b.WriteString(tag.key)
			if tag.hasValue {
				fmt.Fprintf(&b, "=%+q", tag.value)
			}
			b.WriteByte(' ')
		}
		again, err := parseLogfmt(b.String())
		if b.Len() <= maxLogfmtBytes && (err != nil || !slices.Equal(again, tags)) {
			t.Errorf("%q is %v, and %q is %v, %v", text, tags, b.String(), again, err)
		}
	})
}

func FuzzTempoSearch(f *testing.F) {
	for _, s := range []string{"", "q={}&limit=1000000000&spss=0&start=1&end=2", "tags=a=b&minDuration=1s&maxDuration=2s", "q={a=1}&tags=b", "q={.a=1}>>{.b=2}|select(.c)",
		"limit=-1", "spss=x", "start=4294967295", "end=1", "start=4294967295&end=4294967296", "q={}&maxDuration=-1s", "q=({}&&{})||{}&minDuration=1h", "%zz"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		q, err := parseTempoSearch(v, noon, 50)
		if err != nil {
			return
		}
		if q.set == nil || q.limit < 1 || q.limit > 50 || q.spans < 1 || q.spans > maxTempoSpans || len(q.fields) > maxShownFields || !q.from.Before(q.to) {
			t.Errorf("%q is %+v", text, q)
		}
	})
}

func TestLogfmt(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		tags, err := parseLogfmt(text)
		got := ""
		for _, tag := range tags {
			got += fmt.Sprintf("%s|%s|%t;", tag.key, tag.value, tag.hasValue)
		}
		if got = cmp.Or(got, fmt.Sprint(err)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	f(`service.name=web  http.status=500`, "service.name|web|true;http.status|500|true;")
	f(`name="GET /" error`, "name|GET /|true;error||false;")
	f(`a="x\"\n" b= c=""`, "a|x\"\n|true;b||true;c||true;")
	f("", "<nil>")
	f(`a=1 =2`, "no key at position 4")
	f(`a="x`, "no value between quotes at position 0")
	f(`a=x"y"`, `a value with '"' that is not between quotes at position 0`)
	f(`a=1 a=2`, "tag a has been set twice")
}
