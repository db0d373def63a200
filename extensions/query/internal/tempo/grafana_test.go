package tempo

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/internal/wire/streaming"
)

// The requests of Grafana's data source for Tempo (Grafana 11.6 to 13) and of Traces Drilldown 2,
// as their sources build them. Each row is a request; the responses are decoded as these clients
// decode them.

// grafanaData returns 40 traces of a shop in the 20 minutes after querytest.Start: each has a root
// span of `web-gateway`, a span of `checkout` that calls a database and, in every second trace, a
// consumer. Every fifth trace fails with an exception. It uses the names of test/bench, so
// that `make compare-tempo` can send the same requests.
func grafanaData() ptrace.Traces {
	td := ptrace.NewTraces()
	for i := range 40 {
		id, at := pcommon.TraceID{0: 1, 15: byte(i + 1)}, time.Duration(i)*30*time.Second
		web, checkout, mail := addShopService(td, "web-gateway"), addShopService(td, "checkout"), addShopService(td, "mail")
		root := querytest.AddSpan(web, id, 1, 0, "GET /pages", at)
		root.SetKind(ptrace.SpanKindServer)
		root.SetEndTimestamp(pcommon.NewTimestampFromTime(querytest.Start.Add(at + time.Duration(100+10*i)*time.Millisecond)))
		root.Attributes().PutInt("http.response.status_code", int64(200+300*(i%5/4)))
		root.Attributes().PutStr("http.route", "/pages")
		server := querytest.AddSpan(checkout, id, 2, 1, "Checkout", at+time.Millisecond)
		server.SetKind(ptrace.SpanKindServer)
		db := querytest.AddSpan(checkout, id, 3, 2, "SELECT", at+2*time.Millisecond)
		db.SetKind(ptrace.SpanKindClient)
		db.Attributes().PutStr("db.system.name", "postgresql")
		if i%2 == 0 {
			querytest.AddSpan(mail, id, 4, 2, "orders receive", at+3*time.Millisecond).SetKind(ptrace.SpanKindConsumer)
		}
		if i%5 == 4 {
			root.Status().SetCode(ptrace.StatusCodeError)
			db.Status().SetCode(ptrace.StatusCodeError)
			e := db.Events().AppendEmpty()
			e.SetName("exception")
			e.Attributes().PutStr("exception.type", "TimeoutError")
			e.Attributes().PutStr("exception.message", "statement timed out\nafter 5s")
			e.Attributes().PutStr("exception.stacktrace", "at query (db.go:1)")
		}
	}
	return td
}

// addShopService adds a resource as SDKs send it.
func addShopService(td ptrace.Traces, name string) ptrace.ScopeSpans {
	ss := querytest.AddService(td, name)
	resource := td.ResourceSpans().At(td.ResourceSpans().Len() - 1).Resource().Attributes()
	resource.PutStr("service.namespace", "shop")
	resource.PutStr("deployment.environment", "production")
	return ss
}

// grafanaRequest is a row of the table.
type grafanaRequest struct {
	name   string
	path   string // below /tempo
	params url.Values
	accept string
	check  func(t *testing.T, body []byte)
}

const (
	grafanaFrom = 1714557600 // querytest.Start in seconds
	grafanaTo   = grafanaFrom + 20*60

	selectedFrom, selectedTo = grafanaFrom + 60, grafanaTo - 60

	grafanaTrace = "01000000000000000000000000000005"
)

func grafanaRange(params ...string) url.Values {
	v := url.Values{"start": {strconv.Itoa(grafanaFrom)}, "end": {strconv.Itoa(grafanaTo)}}
	for i := 0; i < len(params); i += 2 {
		v.Set(params[i], params[i+1])
	}
	return v
}

// search is a search as the data source sends it over HTTP.
func search(name, q string, limit, spss int, check func(*testing.T, []byte)) grafanaRequest {
	params := grafanaRange("q", q, "limit", strconv.Itoa(limit), "spss", strconv.Itoa(spss))
	return grafanaRequest{name, "api/search", params, "application/json", check}
}

// series is a query for time series; step "" is absent.
func series(name, q, step string, check func(*testing.T, []byte)) grafanaRequest {
	params := grafanaRange("q", q)
	if step != "" {
		params.Set("step", step)
	}
	return grafanaRequest{name, "api/metrics/query_range", params, "application/json", check}
}

// drilldownSignals are the choices of the primary signal, with what matches.
var drilldownSignals = []struct {
	signal                           string
	traces, failedTraces             int // with spans that match, and with failed ones
	spans, errors                    int // that match, and of which failed
	services, names, durationBuckets int // of the spans that match
}{
	{"nestedSetParent<0", 40, 8, 40, 8, 1, 1, 3},
	{"true", 40, 8, 140, 16, 3, 4, 3},
	{"kind=server", 40, 8, 80, 8, 2, 2, 3},
	{"kind=consumer", 20, 0, 20, 0, 1, 1, 1},
	{`span.db.system.name!=""`, 40, 8, 40, 8, 1, 1, 1},
}

// drilldownRequests returns the requests of Traces Drilldown for each primary signal.
func drilldownRequests() (all []grafanaRequest) {
	add := func(r grafanaRequest) { all = append(all, r) }
	add(series("probe", "{} | rate()", "", hasSeries(1, "__name__")))
	for _, s := range drilldownSignals {
		f := s.signal + " && true"
		name := func(panel string) string { return panel + " of " + s.signal }
		statuses := min(s.errors, 1)
		add(series(name("rate"), "{"+f+"} | rate() ", "15s", hasRate(s.spans, 15)))
		add(series(name("errors"), "{"+f+" && status=error} | rate() ", "15s", hasRate(s.errors, 15)))
		add(series(name("duration"), "{"+f+"} | quantile_over_time(duration, 0.9) ", "15s", hasSeries(1, "p")))
		add(series(name("histogram"), "{"+f+"} | histogram_over_time(duration) with(sample=true)", "15s",
			hasSeries(s.durationBuckets, "__bucket")))
		add(series(name("timeline"), "{"+f+"} | rate()  with(sample=true)", "30s", hasRate(s.spans, 30)))
		add(series(name("rate by service"), "{"+f+" && resource.service.name != nil} | rate() by(resource.service.name)", "15s",
			hasSeries(s.services, "resource.service.name")))
		add(series(name("errors by status"), "{"+f+" && status=error && status != nil} | rate() by(status)", "15s",
			hasSeries(statuses, "status")))
		add(series(name("duration by name"), "{"+f+" && name != nil} | quantile_over_time(duration, 0.5,0.9,0.99) by(name)", "15s",
			hasSeries(3*s.names, "name", "p")))
		add(series(name("comparison"), "{"+f+"} | compare({status = error}, 10)", "1200s", hasComparison(s.errors > 0)))
		add(series(name("selection"), fmt.Sprintf("{%s} | compare({duration >= 100ms && duration <= 300ms}, 10, %d000000000, %d000000000)",
			f, selectedFrom, selectedTo), "1200s", hasComparison(true)))
		add(search(name("structure"), "({"+f+" } &>> { kind = server }) || ({"+f+" }) | select(status, resource.service.name, name, "+
			"nestedSetParent, nestedSetLeft, nestedSetRight)", 200, 20, hasStructure(s.traces)))
		add(search(name("structure of errors"), "({"+f+" && status = error} &>> { status = error }) || ({"+f+" && status = error}) | "+
			"select(status, resource.service.name, name, nestedSetParent, nestedSetLeft, nestedSetRight)", 200, 20,
			hasStructure(s.failedTraces)))
		add(search(name("spans"), "{"+f+"} | select(status,resource.service.name,name)", 200, 10,
			hasSpans(s.traces, "status", "service.name")))
		add(search(name("spans with errors"), "{"+f+" && status = error} | select(status)", 200, 10, hasSpans(s.failedTraces, "status")))
		add(search(name("slow spans"), "{"+f+"&& duration > 90ms}", 200, 10, hasSpans(s.traces)))
		add(search(name("exceptions"), "{"+f+" && status = error} | select(resource.service.name, event.exception.message,"+
			"event.exception.stacktrace,event.exception.type) with(most_recent=true)", 400, 10, hasSpans(s.failedTraces, "service.name")))
	}
	add(series("tile", `{nestedSetParent<0 && true && span.http.response.status_code=500} | rate() by(span.http.response.status_code)`, "15s",
		hasSeries(1, "span.http.response.status_code")))
	const exception = `{true && resource.service.name="checkout" && status = error && event.exception.message = "statement timed out\nafter 5s" ` +
		`&& event.exception.type = "TimeoutError"}`
	add(search("traces of an exception", exception+" | select(resource.service.name)", 100, 10, hasSpans(8, "service.name")))
	add(search("distribution of an exception", exception+" | select(span.db.system.name)", 400, 10, hasSpans(8, "db.system.name")))
	add(series("filters", `{nestedSetParent<0 && resource.service.name="web-gateway"&&span.http.response.status_code>=200&&span.http.route=~"/page.*"} | rate() `,
		"15s", hasSeries(1, "__name__")))
	add(series("time seeker", "{nestedSetParent<0 && true} | rate()  with(sample=true)", "30s", hasSeries(1, "__name__")))
	return all
}

// dataSourceRequests returns the requests of the data source itself: its health check, traces,
// completion, the search form and queries that users write.
func dataSourceRequests() []grafanaRequest {
	none := func(t *testing.T, body []byte) {
		if len(body) == 0 {
			t.Error("empty body")
		}
	}
	tags := func(params ...string) url.Values { return grafanaRange(append(params, "limit", "5000")...) }
	noTime := url.Values{"limit": {"5000"}}
	all := []grafanaRequest{
		{"health", "api/echo", nil, "", none},
		{"version", "api/status/buildinfo", nil, "application/json", hasVersion},
		{"trace", "api/v2/traces/" + grafanaTrace, grafanaRange(), "application/protobuf", hasTraceV2},
		{"trace without times", "api/v2/traces/" + grafanaTrace, nil, "application/protobuf", hasTraceV2},
		{"trace, older API", "api/traces/" + grafanaTrace, grafanaRange(), "application/protobuf", hasTraceV1},
		{"names of tags", "api/v2/search/tags", noTime, "", hasScopes("resource", "span", "event", "intrinsic")},
		{"names of tags in the range", "api/v2/search/tags", tags(), "", hasScopes("resource", "span", "event", "intrinsic")},
		{"intrinsic tags", "api/v2/search/tags", url.Values{"scope": {"intrinsic"}}, "", hasScopes("intrinsic")},
		{"tags, older API", "api/search/tags", nil, "", hasNames("tagNames", "http.response.status_code")},
		{"values, older API", "api/search/tag/service.name/values", nil, "", hasNames("tagValues", "checkout", "mail", "web-gateway")},
	}
	for _, tag := range []struct{ tag, valueType, value string }{
		{"resource.service.name", "string", "checkout"}, {".service.name", "string", "checkout"}, {"name", "string", "SELECT"},
		{"span.http.response.status_code", "int", "500"}, {"status", "keyword", "error"}, {"kind", "keyword", "server"},
		{"rootServiceName", "string", "web-gateway"}, {"rootName", "string", "GET /pages"}, {"span:name", "string", "SELECT"},
		{"event.exception.type", "string", "TimeoutError"}, {"span.db.system.name", "string", "postgresql"},
	} {
		path := "api/v2/search/tag/" + url.PathEscape(tag.tag) + "/values"
		all = append(all,
			grafanaRequest{"values of " + tag.tag, path, noTime, "", hasValue(tag.valueType, tag.value)},
			grafanaRequest{"narrowed values of " + tag.tag, path, tags("q", "{true}"), "", hasValue(tag.valueType, tag.value)})
	}
	twice := url.PathEscape(url.QueryEscape("resource.service.name"))
	all = append(all,
		grafanaRequest{"values with a tag that is escaped twice", "api/v2/search/tag/" + twice + "/values", tags("q", `{resource.service.name="web-gateway"}`),
			"", hasValue("string", "web-gateway")},
		search("builder", `{resource.service.name="web-gateway" && name="GET /pages" && duration>100ms}`, 20, 3, hasSpans(20, "service.name")),
		search("builder, several values", `{resource.service.name=~"web-gateway|checkout" && status=error}`, 20, 3, hasSpans(8, "service.name", "status")),
		search("builder, group by", `{} | by(resource.service.name)`, 20, 3, hasSpanSets("by(resource.service.name)")),
		search("builder, aggregate", `{} | by(resource.service.name) | count() > 1`, 20, 3, hasSpanSets("by(resource.service.name)", "count()")),
		search("no conditions", "{}", 20, 3, hasSpans(20)),
		search("structure", `{resource.service.name="web-gateway"} >> {status=error}`, 20, 3, hasSpans(8, "status")),
		search("union of structure", `{resource.service.name="web-gateway"} &>> {status=error}`, 20, 3, hasSpans(8, "status")),
		search("pipeline", `{kind=server} | count() > 1`, 20, 3, hasSpans(20)),
		search("two span sets", `{name="SELECT"} && {kind=consumer}`, 20, 3, hasSpans(20)),
		search("intrinsics", `{trace:rootService="web-gateway" && span:status=error && trace:duration>100ms}`, 20, 3, hasSpans(8)),
		search("trace by id in a search", "{trace:id=\""+grafanaTrace+"\"}", 20, 3, hasSpans(1)),
	)
	for _, q := range []struct {
		name, q string
		check   func(*testing.T, []byte)
	}{
		{"rate", `{status=error} | rate()`, hasSeries(1, "__name__")},
		{"count", `{} | count_over_time() by (resource.service.name, kind)`, hasSeries(4, "resource.service.name", "kind")},
		{"minimum", `{} | min_over_time(duration) by (name)`, hasSeries(4, "name")},
		{"maximum", `{} | max_over_time(duration)`, hasSeries(1, "__name__")},
		{"average", `{} | avg_over_time(duration) by (kind)`, hasSeries(3, "kind")},
		{"sum", `{span.http.response.status_code != nil} | sum_over_time(span.http.response.status_code)`, hasSeries(1, "__name__")},
		{"quantiles", `{kind=server} | quantile_over_time(duration, .5, .9, .99)`, hasSeries(3, "p")},
		{"histogram", `{kind=server} | histogram_over_time(duration) by (resource.service.name)`, hasSeries(4, "resource.service.name", "__bucket")},
		{"top", `{} | rate() by (name) | topk(2)`, hasSeries(3, "name")},
		{"share of errors", `({status=error} | rate()) / ({} | rate())`, hasSeries(1, "__name__")},
	} {
		all = append(all, series(q.name, q.q, "", q.check), series(q.name+", with a step", q.q, "60s", q.check),
			grafanaRequest{q.name + ", instant", "api/metrics/query", grafanaRange("q", q.q), "application/json", hasInstant})
	}
	for _, q := range []string{
		"{} | rate()", "{kind=server} | quantile_over_time(duration, .5, .9) by (kind)", "{} | histogram_over_time(duration)",
	} {
		all = append(all, grafanaRequest{"exemplars of " + q, "api/metrics/query_range", grafanaRange("q", q, "exemplars", "20"),
			"application/json", hasExemplars})
	}
	return all
}

// TestGrafanaFile checks the file of these requests for `make compare-tempo`. Its times and its trace
// are chosen when it is used.
func TestGrafanaFile(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Requests of Grafana. TestGrafanaFile writes this file.\n")
	for _, r := range slices.Concat(dataSourceRequests(), drilldownRequests()) {
		fmt.Fprintln(&b, strings.TrimSuffix("get "+r.path+"?"+r.params.Encode(), "?"))
	}
	number := strconv.Itoa
	text := strings.NewReplacer(number(grafanaFrom), "START", number(selectedFrom), "START", number(grafanaTo), "END",
		number(selectedTo), "END", grafanaTrace, "TRACE").Replace(b.String())
	golden.Check(t, "testdata/grafana/requests.txt", text)
}

func TestGrafanaRequests(t *testing.T) {
	store := querytest.FilledMemory(t, grafanaData())
	b, _ := querytest.NewBackend(t, store, func(o *core.Options) {
		o.Limits.Scanned, o.Limits.Aggregated = 1e6, 1e6
		o.Now = func() time.Time { return time.Unix(grafanaTo+3600, 0) }
	})
	h, conn := routes(b), dial(t, b)
	for _, r := range slices.Concat(dataSourceRequests(), drilldownRequests()) {
		t.Run(r.name, func(t *testing.T) {
			req := httptest.NewRequest(http.MethodGet, "/tempo/"+r.path+"?"+r.params.Encode(), nil)
			if r.accept != "" {
				req.Header.Set("Accept", r.accept)
			}
			w := querytest.Record(h, req)
			if w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", r.params.Get("q"), w.Code, w.Body)
			}
			r.check(t, w.Body.Bytes())
			if t.Failed() {
				t.Logf("%s: %.2000s", r.params.Get("q"), w.Body)
			}
			// The data source streams searches and metrics unless it is told not to.
			switch r.path {
			case "api/search":
				n := func(name string) uint32 { n, _ := strconv.Atoi(r.params.Get(name)); return uint32(n) }
				in := &streaming.SearchRequest{Query: r.params.Get("q"), Start: grafanaFrom, End: grafanaTo,
					Limit: n("limit"), SpansPerSpanSet: n("spss")}
				got, _, err := call[streaming.SearchResponse](t, conn, "Search", in)
				checkStreamed(t, got, err, w.Body.Bytes())
			case "api/metrics/query_range":
				in := &streaming.QueryRangeRequest{Query: r.params.Get("q"), Start: grafanaFrom * 1e9, End: grafanaTo * 1e9}
				if step, err := time.ParseDuration(r.params.Get("step")); err == nil {
					in.Step = uint64(step)
				}
				if n, err := strconv.Atoi(r.params.Get("exemplars")); err == nil {
					in.Exemplars = uint32(n)
				}
				got, _, err := call[streaming.QueryRangeResponse](t, conn, "MetricsQueryRange", in)
				checkStreamed(t, got, err, w.Body.Bytes())
			case "api/metrics/query":
				in := &streaming.QueryInstantRequest{Query: r.params.Get("q"), Start: grafanaFrom * 1e9, End: grafanaTo * 1e9}
				got, _, err := call[streaming.QueryInstantResponse](t, conn, "MetricsQueryInstant", in)
				checkStreamed(t, got, err, w.Body.Bytes())
			}
		})
	}
}

// checkStreamed compares the last message of a call with the response over HTTP.
func checkStreamed[M any, P interface {
	*M
	proto.Message
}](t *testing.T, messages []*M, err error, body []byte) {
	t.Helper()
	want := P(new(M))
	err1 := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, want)
	if err != nil || err1 != nil || len(messages) == 0 {
		t.Fatalf("streaming: %v, decoding HTTP: %v, %d messages", err, err1, len(messages))
	}
	if got := P(messages[len(messages)-1]); !proto.Equal(got, want) {
		t.Errorf("last message\n%v\nis not the response over HTTP\n%v", got, want)
	}
}

// grafanaSearch is what the data source reads of the response to a search.
type grafanaSearch struct {
	Traces []struct {
		TraceID           string
		RootServiceName   string
		RootTraceName     string
		StartTimeUnixNano string
		DurationMs        uint32
		SpanSet           *grafanaSpanSet
		SpanSets          []grafanaSpanSet
		ServiceStats      map[string]struct{ SpanCount, ErrorCount uint32 }
	}
}

type grafanaSpanSet struct {
	Spans []struct {
		SpanID, Name, StartTimeUnixNano, DurationNanos string
		Attributes                                     []grafanaAttribute
	}
	Matched    uint32
	Attributes []grafanaAttribute
}

type grafanaAttribute struct {
	Key   string
	Value struct {
		StringValue, IntValue string
		DoubleValue           float64
		BoolValue             bool
	}
}

func decodeSearch(t *testing.T, body []byte) (out grafanaSearch) {
	t.Helper()
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, trace := range out.Traces {
		_, err := core.ParseTraceID(trace.TraceID)
		if err != nil || trace.RootServiceName != "web-gateway" || trace.SpanSet == nil || len(trace.SpanSets) == 0 {
			t.Errorf("trace %+v", trace)
		}
	}
	return out
}

// keysOf returns the keys of attributes, which must be unique.
func keysOf(t *testing.T, attributes []grafanaAttribute) map[string]grafanaAttribute {
	t.Helper()
	keys := make(map[string]grafanaAttribute)
	for _, a := range attributes {
		if _, twice := keys[a.Key]; twice {
			t.Errorf("attribute %s occurs twice", a.Key)
		}
		keys[a.Key] = a
	}
	return keys
}

// hasSpans checks the number of traces, and that each has one set of spans with
// the attributes.
func hasSpans(traces int, attributes ...string) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		found := decodeSearch(t, body)
		if len(found.Traces) != traces {
			t.Errorf("%d traces, want %d", len(found.Traces), traces)
		}
		for _, trace := range found.Traces {
			if len(trace.SpanSets) != 1 || len(trace.SpanSets[0].Spans) == 0 {
				t.Fatalf("sets %+v, want one with spans", trace.SpanSets)
			}
			for _, span := range trace.SpanSets[0].Spans {
				keys := keysOf(t, span.Attributes)
				for _, name := range attributes {
					if _, ok := keys[name]; !ok {
						t.Fatalf("span with attributes %+v, want %s", span.Attributes, name)
					}
				}
			}
		}
	}
}

// hasSpanSets checks that traces have several sets, each with the attributes.
func hasSpanSets(attributes ...string) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		found, several := decodeSearch(t, body), false
		for _, trace := range found.Traces {
			several = several || len(trace.SpanSets) > 1
			for _, set := range trace.SpanSets {
				keys := keysOf(t, set.Attributes)
				for _, name := range attributes {
					if _, ok := keys[name]; !ok {
						t.Errorf("set with attributes %+v, want %s", set.Attributes, name)
					}
				}
			}
		}
		if len(found.Traces) == 0 || attributes[len(attributes)-1] != "count()" && !several {
			t.Errorf("%d traces, several sets: %t", len(found.Traces), several)
		}
	}
}

// hasStructure checks what Drilldown needs to build a tree: one set for each trace, and spans with
// numbers of a walk through the tree, as text.
func hasStructure(traces int) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		found := decodeSearch(t, body)
		hasSpans(traces, "service.name", "status", "nestedSetParent", "nestedSetLeft", "nestedSetRight")(t, body)
		for _, trace := range found.Traces {
			for _, span := range trace.SpanSets[0].Spans {
				keys := keysOf(t, span.Attributes)
				number := func(name string) int {
					n, err := strconv.Atoi(keys[name].Value.IntValue)
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					return n
				}
				parent, left, right := number("nestedSetParent"), number("nestedSetLeft"), number("nestedSetRight")
				if left >= right || parent >= left || (parent == -1) != (span.Name == "GET /pages") {
					t.Errorf("span %s has the numbers %d, %d, %d", span.Name, parent, left, right)
				}
			}
		}
	}
}

func decodeSeries(t *testing.T, body []byte) *streaming.QueryRangeResponse {
	t.Helper()
	var out streaming.QueryRangeResponse
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, &out); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return &out
}

// hasSeries checks that there are n series with exactly these labels.
func hasSeries(n int, labels ...string) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		found := decodeSeries(t, body)
		if len(found.Series) != n {
			t.Errorf("%d series, want %d", len(found.Series), n)
		}
		for _, s := range found.Series {
			var got []string
			for _, l := range s.Labels {
				got = append(got, l.Key)
			}
			if !slices.Equal(got, labels) || len(s.Samples) == 0 {
				t.Errorf("labels %q, want %q; %d samples", got, labels, len(s.Samples))
			}
			if !slices.IsSortedFunc(s.Samples, func(a, b *streaming.Sample) int { return int(a.TimestampMs - b.TimestampMs) }) {
				t.Errorf("samples of %v are not sorted", s.Labels)
			}
		}
	}
}

// hasRate checks that a series of rates per second counts a number of spans.
func hasRate(spans int, step float64) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		hasSeries(1, "__name__")(t, body)
		counted := 0.0
		for _, s := range decodeSeries(t, body).Series {
			for _, p := range s.Samples {
				counted += p.Value * step
			}
		}
		if math.Abs(counted-float64(spans)) > 1e-6 {
			t.Errorf("%g spans, want %d", counted, spans)
		}
	}
}

// hasComparison checks that each series has the label that names its part, and one attribute.
// selected says whether the selection has spans.
func hasComparison(selected bool) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		parts := make(map[string]bool)
		for _, s := range decodeSeries(t, body).Series {
			if len(s.Labels) != 2 || s.Labels[0].Key != "__meta_type" {
				t.Errorf("labels %v", s.Labels)
				continue
			}
			parts[s.Labels[0].Value.GetStringValue()] = true
		}
		want := []string{"baseline", "baseline_total"}
		if selected {
			want = append(want, "selection", "selection_total")
		}
		if got := slices.Sorted(maps.Keys(parts)); !slices.Equal(got, want) {
			t.Errorf("parts %q, want %q", got, want)
		}
	}
}

// hasInstant checks that the response has no members that the data source does not know.
func hasInstant(t *testing.T, body []byte) {
	var out streaming.QueryInstantResponse
	if err := protojson.Unmarshal(body, &out); err != nil || len(out.Series) == 0 {
		t.Errorf("%d series: %v", len(out.Series), err)
	}
}

func hasExemplars(t *testing.T, body []byte) {
	n := 0
	for _, s := range decodeSeries(t, body).Series {
		for _, e := range s.Exemplars {
			n++
			if len(e.Labels) == 0 || e.Labels[0].Key != "trace:id" || e.TimestampMs < grafanaFrom*1000 {
				t.Errorf("exemplar %v", e)
			}
		}
	}
	if n == 0 || n > 20 {
		t.Errorf("%d exemplars", n)
	}
}

func hasVersion(t *testing.T, body []byte) {
	var v struct{ Version *string }
	if err := json.Unmarshal(body, &v); err != nil || v.Version == nil {
		t.Errorf("version %v: %v", v, err)
	}
}

func hasTraceV1(t *testing.T, body []byte) {
	td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(body)
	if err != nil || td.SpanCount() != 4 {
		t.Errorf("%d spans: %v", td.SpanCount(), err)
	}
}

func hasTraceV2(t *testing.T, body []byte) { hasTraceV1(t, []byte(fields(t, body)[1])) }

func hasScopes(want ...string) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		var got struct {
			Scopes []struct {
				Name string
				Tags []string
			}
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range got.Scopes {
			names = append(names, s.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("scopes %q, want %q", names, want)
		}
	}
}

func hasNames(member string, want ...string) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		var got map[string]json.RawMessage
		var names []string
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got[member], &names); err != nil {
			t.Fatal(err)
		}
		for _, name := range want {
			if !slices.Contains(names, name) {
				t.Errorf("%q lacks %s", names, name)
			}
		}
	}
}

func hasValue(valueType, value string) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		var got struct {
			TagValues []struct{ Type, Value string }
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		for _, v := range got.TagValues {
			if v.Value == value {
				if v.Type != valueType {
					t.Errorf("type %s, want %s", v.Type, valueType)
				}
				return
			}
		}
		t.Errorf("%v lacks %s", got.TagValues, value)
	}
}
