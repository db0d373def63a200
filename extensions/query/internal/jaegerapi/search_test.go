package jaegerapi

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// tracesAnswer is the part of a response that tests check.
type tracesAnswer struct {
	Data []struct {
		TraceID string            `json:"traceID"`
		Spans   []json.RawMessage `json:"spans"`
	} `json:"data"`
	Errors []httpapi.Error `json:"errors"`
}

// ids returns the last digits of the traces' ids.
func (a tracesAnswer) ids() string {
	var out []string
	for _, t := range a.Data {
		out = append(out, strings.TrimLeft(t.TraceID, "0"))
	}
	return strings.Join(out, " ")
}

func search200(t testing.TB, h http.Handler, query string) (a tracesAnswer) {
	t.Helper()
	w := querytest.Ask(t, h, http.MethodGet, "/api/traces?"+query)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: status %d: %s", query, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatalf("%s: %v in %s", query, err, w.Body)
	}
	return a
}

func TestTagsMatchAllScopes(t *testing.T) {
	td := querytest.Many(9, func(i int, rs ptrace.ResourceSpans, s ptrace.Span) {
		switch i {
		case 1:
			s.Attributes().PutStr("k", "v")
		case 2:
			rs.Resource().Attributes().PutStr("k", "v")
		case 3:
			rs.ScopeSpans().At(0).Scope().Attributes().PutStr("k", "v")
		case 4:
			s.Events().AppendEmpty().Attributes().PutStr("k", "v")
		case 5:
			s.Links().AppendEmpty().Attributes().PutStr("k", "v")
		case 6:
			s.Attributes().PutStr("k", "w")
			s.Attributes().PutBool("b", true)
			s.Attributes().PutInt("i", -7)
			s.Attributes().PutDouble("f", 0.1)
			s.Attributes().PutEmptyBytes("y").FromRaw([]byte{0xfb, 0xff})
			s.Attributes().PutStr("c", "x:y")
		case 7:
			s.Attributes().PutStr("K", "v")
		}
	})
	h := api(t, querytest.NewStore(td))
	f := func(tags, want string) {
		t.Helper()
		if got := search200(t, h, "service=svc&"+tags).ids(); got != want {
			t.Errorf("%s: found %q, want %q", tags, got, want)
		}
	}
	object := func(json string) string { return "tags=" + url.QueryEscape(json) }
	f("tag=k:v", "5 4 3 2 1")
	f(object(`{"k":"v"}`), "5 4 3 2 1")
	f("tag=resource.k:v", "2")
	f("tag=k:w&tag=b:true", "6")
	f("tag=k:v&tag=b:true", "") // must hold on the same span
	f("tag=b:True", "")
	f("tag=i:-7&tag=f:0.1", "6")
	f("tag=y:"+url.QueryEscape("+/8="), "6")
	f("tag=c:x:y", "6")
	f("tag=k:v&tag=k:w", "6")                             // the last value of a key counts
	f("tag=k:v&"+object(`{"k":"w"}`), "6")                // tags override tag
	f(object(`{"k":"v"}`)+"&"+object(`{"b":"true"}`), "") // objects are combined
	f(object(`{"k":"w"}`)+"&"+object(`null`), "6")        // null has no effect
	f(object(`{"k":"w"}`)+"&"+object(`{"b":"true"}`), "6")
}

// Attributes that answers do not show cannot be searched for.
func TestReservedTagsAreNotFound(t *testing.T) {
	h := api(t, querytest.NewStore(querytest.Many(2, func(i int, _ ptrace.ResourceSpans, s ptrace.Span) {
		s.Attributes().PutInt(otlpdata.FlagsAttribute, 3)
		s.Attributes().PutStr("k", "v")
	})))
	if got := search200(t, h, "service=svc&tag=k:v").ids(); got != "2 1" {
		t.Errorf("found %q", got)
	}
	if got := search200(t, h, "service=svc&tag=k:v&tag="+url.QueryEscape(otlpdata.FlagsAttribute)+":3").ids(); got != "" {
		t.Errorf("found %q", got)
	}
}

func TestSpecialTags(t *testing.T) {
	td := querytest.Many(6, func(i int, rs ptrace.ResourceSpans, s ptrace.Span) {
		switch i {
		case 1:
			s.Status().SetCode(ptrace.StatusCodeError)
			s.Status().SetMessage("boom")
		case 2:
			s.Status().SetCode(ptrace.StatusCodeOk)
		case 3:
			s.SetKind(ptrace.SpanKindProducer)
		case 4:
			rs.ScopeSpans().At(0).Scope().SetName("lib")
			rs.ScopeSpans().At(0).Scope().SetVersion("2")
		case 5:
			s.Attributes().PutStr("error", "timeout")
		case 6:
			s.Events().AppendEmpty().SetName("retry")
		}
	})
	h := api(t, querytest.NewStore(td))
	f := func(tag, want string) {
		t.Helper()
		if got := search200(t, h, "service=svc&tag="+tag).ids(); got != want {
			t.Errorf("%s: found %q, want %q", tag, got, want)
		}
	}
	f("error:true", "1")
	f("error:false", "6 5 4 3 2") // all other spans
	f("error:timeout", "5")
	f("span.status:error", "1")
	f("span.status:OK", "2")
	f("span.status:unset", "6 5 4 3")
	f("span.status:anything", "6 5 4 3")
	f("span.kind:producer", "3")
	f("span.kind:PRODUCER", "3")
	f("span.kind:unspecified", "6 5 4 2 1")
	f("span.kind:x", "")
	f("scope.name:lib&tag=scope.version:2", "4")
	f("scope.version:3", "")
	// Tags of the trace JSON can be searched for.
	f("otel.scope.name:lib", "4")
	f("otel.scope.version:2", "4")
	f("otel.status_code:ERROR", "1")
	f("otel.status_description:boom", "1")
	f("event:retry", "6")
}

func TestTimesAndDurations(t *testing.T) {
	td := querytest.Many(4, func(i int, _ ptrace.ResourceSpans, s ptrace.Span) {
		s.SetName("op" + strconv.Itoa(i))
		if i == 4 { // three days old, with a part of a microsecond
			s.SetStartTimestamp(pcommon.NewTimestampFromTime(querytest.Noon.Add(-72*time.Hour + 999)))
		}
		s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(i)*1_000_000)
	})
	h := api(t, querytest.NewStore(td))
	f := func(query, want string) {
		t.Helper()
		if got := search200(t, h, "service=svc&"+query).ids(); got != want {
			t.Errorf("%s: found %q, want %q", query, got, want)
		}
	}
	at := func(tm time.Time) string { return strconv.FormatInt(tm.UnixMicro(), 10) }
	old := at(querytest.Noon.Add(-72 * time.Hour))
	f("", "3 2 1") // the default lookback is 48 hours
	f("start=0", "3 2 1 4")
	f("start="+at(querytest.Start.Add(2*time.Millisecond)), "3 2")
	f("start=0&end="+at(querytest.Start.Add(2*time.Millisecond)), "2 1 4")
	f("start="+old+"&end="+old, "4") // both ends are inclusive, in microseconds
	f("start="+at(querytest.Start)+"&end="+old, "")
	f("start=-9223372036854775808&end=9223372036854775807", "3 2 1 4")
	f("start=9223372036854775807", "")
	f("start=0&end=-1", "")
	f("minDuration=2ms", "3 2")
	f("minDuration=2ms&maxDuration=2ms", "2")
	f("maxDuration=0.001s", "1")
	f("minDuration=0s&maxDuration=1500us", "1")
	f("operation=op2", "2")
	f("operation=op", "")
	f("operation=op2&minDuration=3ms", "")
}

func TestLimit(t *testing.T) {
	store := querytest.NewStore(querytest.Many(5, querytest.Unchanged))
	var asked tracestore.Query
	store.OnFind = func(q tracestore.Query) { asked = q }
	h := api(t, store, func(o *core.Options) { o.Limits.Traces = 200 })
	f := func(limit string, want int) {
		t.Helper()
		a := search200(t, h, "service=svc"+limit)
		if asked.Limit != want || asked.Budget.Spans != 1000 {
			t.Errorf("%q: store query for %d traces and %d spans", limit, asked.Limit, asked.Budget.Spans)
		}
		if len(a.Data) != min(5, want) || a.Errors != nil {
			t.Errorf("%q: %d traces, errors %v", limit, len(a.Data), a.Errors)
		}
	}
	f("", 100)
	f("&limit=2", 2)
	f("&limit=2&limit=3", 2)
	f("&limit=0", 200)
	f("&limit=-1", 200)
	f("&limit=201", 200)
	f("&limit="+strconv.Itoa(math.MaxInt32), 200)
}

func TestIncompleteResultsWarn(t *testing.T) {
	store := querytest.NewStore(querytest.Many(3, querytest.Unchanged))
	h := api(t, store, func(o *core.Options) { o.Limits.Traces = 2 })
	f := func(query string, outcome tracestore.Outcome, want ...httpapi.Error) {
		t.Helper()
		store.Outcome = outcome
		a := search200(t, h, "service=svc&"+query)
		if fmt.Sprint(a.Errors) != fmt.Sprint(want) || len(a.Data) == 0 {
			t.Errorf("%s: %d traces, errors %v", query, len(a.Data), a.Errors)
		}
	}
	more := tracestore.Outcome{Next: tracestore.Cursor{Set: true}}
	f("limit=1", more) // as requested
	f("limit=2", more)
	f("limit=3", more, httpapi.Error{Msg: "result is incomplete: a response contains at most max_limit (2) traces"})
	f("limit=0", more, httpapi.Error{Msg: "result is incomplete: a response contains at most max_limit (2) traces"})
	f("limit=3", tracestore.Outcome{})
	f("limit=1", tracestore.Outcome{Reasons: tracestore.Because(tracestore.ReasonDamage, "1000 spans were examined")},
		httpapi.Error{Msg: "result is incomplete: 1000 spans were examined"})
}

func TestTooManyIDs(t *testing.T) {
	h := api(t, querytest.NewStore(querytest.Shop()), func(o *core.Options) { o.Limits.Traces = 1 })
	if got := search200(t, h, "traceID=1&traceID=01").ids(); got != "1" {
		t.Errorf("found %q", got)
	}
	w := querytest.Ask(t, h, http.MethodGet, "/api/traces?traceID=1&traceID=2")
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "2 traceID parameters, more than max_limit (1)") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestHintsReachTheStore(t *testing.T) {
	store := querytest.NewStore(querytest.Shop())
	var refs []tracestore.TraceRef
	store.OnTraces = func(r []tracestore.TraceRef) { refs = r }
	h := api(t, store)
	querytest.Ask(t, h, http.MethodGet, "/api/traces/1?start=5&end=7")
	if len(refs) != 1 || refs[0].From.UnixMicro() != 5 || refs[0].To.UnixMicro() != 7 {
		t.Errorf("requested %v", refs)
	}
	querytest.Ask(t, h, http.MethodGet, "/api/traces/1")
	if len(refs) != 1 || !refs[0].From.IsZero() || !refs[0].To.IsZero() {
		t.Errorf("requested %v", refs)
	}
}

// FuzzSearch checks that no parameters cause an internal error, and that all successful answers are
// JSON.
func FuzzSearch(f *testing.F) {
	for _, seed := range []string{
		"service=web&operation=GET+%2F&start=1&end=9223372036854775807&minDuration=1ms&maxDuration=1h&limit=5&raw=true&prettyPrint=true",
		"service=web&tag=error:false&tag=resource.a:b&tags=%7B%22span.kind%22%3A%22server%22%7D",
		"traceID=1&traceID=ab000000000000000000000000000002&traceID=77",
		"service=%ff&tags=null&limit=-1&start=-62135596800000000",
		"traceID=&service=;",
		"service=web&service=a/b&groupByOperation=true&spanKind=client&quantile=0.5&endTs=1714557780000&lookback=180000&step=60001&ratePer=1",
	} {
		f.Add(seed, "1")
	}
	f.Add("raw=1&start=-1", "qwAAAAAAAAAAAAAAAAAAAg==")
	f.Add("", "../x")
	h := api(f, querytest.NewStore(querytest.Shop()))
	f.Fuzz(func(t *testing.T, query, id string) {
		id = url.PathEscape(id)
		for _, path := range []string{"/api/traces", "/api/traces/" + id, "/api/operations", "/api/services/" + id + "/operations",
			"/api/dependencies", "/api/metrics/calls", "/api/metrics/latencies"} {
			r := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: path, RawQuery: query}, Header: http.Header{}}
			if u, err := url.ParseRequestURI(path); err == nil {
				r.URL.Path, r.URL.RawPath = u.Path, u.RawPath
			}
			w := querytest.Record(h, r)
			switch {
			case w.Code >= http.StatusInternalServerError:
				t.Fatalf("%s?%s: %d %s", path, query, w.Code, w.Body)
			case w.Code == http.StatusOK && !json.Valid(w.Body.Bytes()):
				t.Fatalf("%s?%s: not JSON: %s", path, query, w.Body)
			}
		}
	})
}
