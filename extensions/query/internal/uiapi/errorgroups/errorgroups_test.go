package errorgroups

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func routes(b *core.Backend) http.Handler { return httpapi.NewMux("", New(b).Routes()) }

func api(t testing.TB, store core.Store, change ...func(*core.Options)) http.Handler {
	t.Helper()
	b, _ := querytest.NewBackend(t, store, change...)
	return routes(b)
}

func TestAPI(t *testing.T) {
	g := querytest.Golden{Routes: routes, Store: querytest.ShopStore, Headers: []string{"Content-Type", "X-Content-Type-Options"}}
	g.Run(t, "testdata/*.txt")
}

// failures returns n traces with one failed span every second. Every third is of another type.
func failures(n int) ptrace.Traces {
	td := ptrace.NewTraces()
	ss := querytest.AddService(td, "shop")
	for i := range n {
		s := querytest.AddSpan(ss, pcommon.TraceID{14: byte(i >> 8), 15: byte(i)}, byte(i%200+1), 0, "buy", time.Duration(i)*time.Second)
		s.Status().SetCode(ptrace.StatusCodeError)
		s.Status().SetMessage(fmt.Sprintf("order %d failed", i))
		if i%3 == 0 {
			s.Attributes().PutStr("error.type", "timeout")
		}
		querytest.AddSpan(ss, s.TraceID(), 255, byte(i%200+1), "ok", time.Duration(i)*time.Second)
	}
	return td
}

// askErrors returns the response for the first 1000 seconds.
func askErrors(t *testing.T, h http.Handler) (a answerJSON) {
	t.Helper()
	return ask(t, h, 0, 1000, "")
}

// ask returns the response for a few seconds after querytest.Start.
func ask(t *testing.T, h http.Handler, from, to int, params string) (a answerJSON) {
	t.Helper()
	w := querytest.Ask(t, h, http.MethodGet, fmt.Sprintf("/api/ui/v1/errors?start=%s&end=%s%s", seconds(from), seconds(to), params))
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %v %s", w.Code, err, w.Body)
	}
	return a
}

type answerJSON struct {
	Data   errorsJSON
	Errors []struct{ Msg string }
}

// trendJSON is a trend in a response.
type trendJSON struct {
	Kind         string
	Factor       float64
	Since, Until string
}

// errorsJSON is what tests read of a response.
type errorsJSON struct {
	Spans    int
	Complete bool
	Share    float64
	Since    string
	Before   *struct {
		Spans    int
		Complete bool
	}
	Groups []struct {
		Service, Operation, Type, Pattern, Frame, Where, Message, First, Last, TraceID, ID string
		Count                                                                              int
		Before                                                                             *int
		Days                                                                               []int
		Points                                                                             []int
		Operations, Versions                                                               []countedText
		Trend                                                                              trendJSON
	}
}

func seconds(n int) string {
	return fmt.Sprint(querytest.Start.Add(time.Duration(n) * time.Second).UnixNano())
}

// All errors are counted in groups, by parts of the time range, with the newest as example.
func TestErrorGroups(t *testing.T) {
	const n = 900 // more than one page of traces
	a := askErrors(t, api(t, querytest.FilledMemory(t, failures(n)), func(o *core.Options) { o.Limits.Scanned = 1e6 })).Data
	if a.Spans != n || !a.Complete || a.Since != "" || len(a.Groups) != 2 {
		t.Fatalf("%+v", a)
	}
	orders, timeouts := a.Groups[0], a.Groups[1]
	if orders.Count != 600 || orders.Type != "" || orders.Pattern != "order <n> failed" || orders.Message != "order 899 failed" ||
		orders.First != seconds(1) ||
		orders.Last != seconds(899) || orders.Service != "shop" || orders.Operation != "buy" || !strings.HasSuffix(orders.TraceID, "0383") {
		t.Errorf("%+v", orders)
	}
	if timeouts.Count != 300 || timeouts.Type != "timeout" || timeouts.Message != "order 897 failed" {
		t.Errorf("%+v", timeouts)
	}
	for part, count := range orders.Points { // parts of 16.7 s
		if want := 11; part < 54 && (count < want-1 || count > want+1) || part > 54 && count > 0 {
			t.Errorf("part %d: %d spans", part, count)
		}
	}
}

// readOnly hides that a store counts spans.
type readOnly struct{ core.Store }

// All errors are counted, although only the newest are read as examples. A group that is not among
// these has its last span as example.
func TestMoreErrorsThanAreRead(t *testing.T) {
	td := failures(900)
	rare := querytest.AddSpan(querytest.AddService(td, "mail"), pcommon.TraceID{1}, 1, 0, "send", 10*time.Second)
	rare.Status().SetCode(ptrace.StatusCodeError)
	h := api(t, querytest.FilledMemory(t, td), func(o *core.Options) {
		o.Limits.Errors, o.Limits.Scanned, o.Limits.Aggregated = 120, 1e6, 100
	})
	a := askErrors(t, h).Data
	if a.Spans != 901 || !a.Complete || a.Share != 1 || a.Since != "" || len(a.Groups) != 3 {
		t.Fatalf("%+v", a)
	}
	orders, timeouts, mail := a.Groups[0], a.Groups[1], a.Groups[2]
	if orders.Count != 600 || orders.First != seconds(1) || orders.Last != seconds(899) ||
		timeouts.Count != 300 || timeouts.First != seconds(0) {
		t.Errorf("%+v\n%+v", orders, timeouts)
	}
	if mail.Service != "mail" || mail.First != seconds(10) || mail.Last != seconds(10) || mail.TraceID != "01000000000000000000000000000000" {
		t.Errorf("%+v", mail)
	}
}

// Beyond the limit of what is examined, counts are estimates, and the response says so.
func TestSampledErrors(t *testing.T) {
	h := api(t, querytest.FilledMemory(t, failures(900)), func(o *core.Options) { o.Limits.ErrorScan, o.Limits.Scanned = 300, 1e6 })
	a := askErrors(t, h).Data
	if a.Complete || a.Share <= 0 || a.Share >= 1 || len(a.Groups) != 2 || a.Spans < 600 || a.Spans > 1200 ||
		a.Groups[0].Count < 400 || a.Groups[0].Count > 800 {
		t.Errorf("%+v", a)
	}
}

// Of a store that does not count, the newest errors are counted, and the response says which.
func TestErrorLimit(t *testing.T) {
	store := readOnly{querytest.FilledMemory(t, failures(900))}
	h := api(t, store, func(o *core.Options) { o.Limits.Errors, o.Limits.Scanned = 120, 1e6 })
	a := askErrors(t, h).Data
	if a.Spans != 120 || a.Complete || a.Since != seconds(780) || len(a.Groups) != 2 || a.Groups[0].Count != 80 || a.Groups[1].Count != 40 {
		t.Errorf("%+v", a)
	}
}

// If a part of the store cannot be read, the errors of all pages of the rest are examined.
func TestErrorsOfPartialStore(t *testing.T) {
	h := api(t, querytest.Partial(querytest.FilledMemory(t, failures(900))), func(o *core.Options) {
		o.Limits.Errors, o.Limits.Scanned = 1000, 1e6
	})
	a := askErrors(t, h)
	if a.Data.Spans != 900 || a.Data.Complete || a.Data.Since != "" || len(a.Errors) != 1 ||
		!strings.HasSuffix(a.Errors[0].Msg, ": "+querytest.PartialReason) {
		t.Errorf("%d examined, complete %t, errors %+v", a.Data.Spans, a.Data.Complete, a.Errors)
	}
}

// failedSpans returns spans that fail in many ways, each with a text that identifies its group.
func failedSpans() (td ptrace.Traces, names []string) {
	td = ptrace.NewTraces()
	stack := func(file string, line int) string {
		return fmt.Sprintf("Traceback (most recent call last):\n  File \"/app/%s.py\", line %d, in charge\n    x()\n", file, line)
	}
	n := 0
	add := func(name, operation string, change func(s ptrace.Span, i int)) {
		rs := querytest.AddService(td, "shop")
		for i := range 3 {
			n++
			s := querytest.AddSpan(rs, pcommon.TraceID{15: byte(n)}, byte(n), 0, operation, time.Duration(n)*time.Second)
			s.Status().SetCode(ptrace.StatusCodeError)
			change(s, i)
			querytest.AddSpan(rs, s.TraceID(), 200, byte(n), "fine", time.Duration(n)*time.Second)
		}
		names = append(names, name)
	}
	exception := func(kind, message, stack string) func(ptrace.Span, int) {
		return func(s ptrace.Span, i int) {
			e := s.Events().AppendEmpty()
			e.SetName("exception")
			e.Attributes().PutStr("exception.type", kind)
			e.Attributes().PutStr("exception.message", strings.ReplaceAll(message, "%", fmt.Sprint(i)))
			if stack != "" {
				e.Attributes().PutStr("exception.stacktrace", strings.ReplaceAll(stack, "line 7", fmt.Sprint("line 7", i)))
			}
		}
	}
	add("Timeout|no answer from `<text>` after <n> ms|charge (a.py)", "op", exception("Timeout", "no answer from `host%` after 1% ms", stack("a", 7)))
	add("Timeout|no answer from `<text>` after <n> ms|charge (b.py)", "op", exception("Timeout", "no answer from `host%` after 1% ms", stack("b", 7)))
	add("Timeout|no answer from `<text>` after <n> ms|", "op", exception("Timeout", "no answer from `host%` after 1% ms", ""))
	add("Bytes|no answer|charge (\ufffd.py)", "op", exception("Bytes", "no answer", stack("\xff", 7)))
	add("Bytes|no answer|charge (b.py)", "op", exception("Bytes", "no answer", stack("b", 7)))
	add("a\"b|fixed (message)|", "op", exception(`a"b`, "fixed (message)", ""))
	add("Long|"+strings.Repeat("word ", 40)+"|", "op", exception("Long", strings.Repeat("word ", 100)+"%", ""))
	add("|failed with \ufffd <n>|", "op", func(s ptrace.Span, i int) { s.Status().SetMessage(fmt.Sprintf("failed with \xff %d\n\nmore", i)) })
	add("HTTP 503||", "op 1", func(s ptrace.Span, _ int) { s.Attributes().PutInt("http.response.status_code", 503) })
	add("HTTP 503||", "op 2", func(s ptrace.Span, _ int) { s.Attributes().PutStr("http.status_code", "503") })
	add("gRPC Unavailable|at <path>|", "op", func(s ptrace.Span, i int) {
		s.Attributes().PutInt("rpc.grpc.status_code", 14)
		s.Status().SetMessage(fmt.Sprintf("at /a/b/%d", i))
	})
	add("timeout||", "op", func(s ptrace.Span, _ int) { s.Attributes().PutStr("error.type", "timeout") })
	add("||", "op 3", func(ptrace.Span, int) {})
	return td, names
}

// The conditions of each group find its spans. Those of a group without any sign of what failed
// find others, too.
func TestConditionsOfGroups(t *testing.T) {
	td, names := failedSpans()
	h := api(t, querytest.FilledMemory(t, td))
	all := askErrors(t, h).Data.Groups
	var got []string
	for _, g := range all {
		got = append(got, g.Type+"|"+g.Pattern+"|"+g.Frame)
		found := ask(t, h, 0, 1000, "&q="+url.QueryEscape("{ "+g.Where+" }")).Data
		if found.Spans != g.Count {
			t.Errorf("%s: %d spans with %s, want %d", got[len(got)-1], found.Spans, g.Where, g.Count)
		}
	}
	slices.Sort(got)
	slices.Sort(names)
	if !slices.Equal(got, names) {
		t.Errorf("groups\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(names, "\n"))
	}
}

// A search limits the spans, also one that depends on whole traces.
func TestErrorsOfASearch(t *testing.T) {
	td, _ := failedSpans()
	h := api(t, querytest.FilledMemory(t, td))
	for q, want := range map[string]int{
		`{ name = "op 1" }`:                      3,
		`{ name = "op 1" } > { name = "fine" }`:  0,
		`{ name = "op 1" } && { name = "fine" }`: 3,
		`{ name = "fine" }`:                      0,
		`{ trace.rootName =~ "op [12]" }`:        6,
	} {
		if got := ask(t, h, 0, 1000, "&q="+url.QueryEscape(q)).Data; got.Spans != want || !got.Complete {
			t.Errorf("%s: %+v, want %d spans", q, got, want)
		}
	}
}

// Groups say how often they occurred in the time before.
func TestErrorsBefore(t *testing.T) {
	h := api(t, querytest.FilledMemory(t, failures(90)))
	a := ask(t, h, 60, 89, "&before=1&q="+url.QueryEscape("{ name = \"buy\" }")).Data
	if a.Before == nil || a.Before.Spans != 29 || !a.Before.Complete || len(a.Groups) != 2 ||
		*a.Groups[0].Before != 20 || *a.Groups[1].Before != 9 {
		t.Errorf("%+v, before %+v", a, a.Before)
	}
	if a := ask(t, h, 0, 29, "&before=1").Data; a.Before.Spans != 0 || *a.Groups[0].Before != 0 || !a.Before.Complete {
		t.Errorf("%+v, before %+v", a, a.Before)
	}
}

// An error that occurs at the same time each day is usual. If it occurred on one of the days only,
// or much less often, it is new.
func TestDailyErrors(t *testing.T) {
	const day = 24 * 3600
	td := ptrace.NewTraces()
	shop, n := querytest.AddService(td, "shop"), 0
	add := func(kind string, from, spans int) {
		for i := range spans {
			n++
			s := querytest.AddSpan(shop, pcommon.TraceID{14: byte(n >> 8), 15: byte(n)}, 1, 0, "buy", time.Duration(from+i)*time.Second)
			s.Status().SetCode(ptrace.StatusCodeError)
			s.Attributes().PutStr("error.type", kind)
		}
	}
	add("all", 0, 1)
	for i := range 3 {
		add("nightly", i*day+2000, 40)
	}
	add("yesterday", day+2000, 40)
	add("yesterday", 2*day+2000, 40)
	add("rarely", 2000, 10)
	add("rarely", day+2000, 10)
	add("rarely", 2*day+2000, 40)
	add("all", 2*day-3000, 1)
	h := api(t, querytest.FilledMemory(t, td))
	want := map[string]string{"nightly": "usual [40 40]", "yesterday": "new [40 0]", "rarely": "new [10 10]"}
	got := make(map[string]string)
	for _, g := range ask(t, h, 2*day, 2*day+3599, "&before=1").Data.Groups {
		got[g.Type] = fmt.Sprint(g.Trend.Kind, " ", g.Days)
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// What is new or has grown is said, with the time since when and by how much.
func TestGrownErrors(t *testing.T) {
	td := ptrace.NewTraces()
	shop, n := querytest.AddService(td, "shop"), 0
	add := func(kind string, from, to, every int) {
		for at := from; at < to; at += every {
			n++
			s := querytest.AddSpan(shop, pcommon.TraceID{14: byte(n >> 8), 15: byte(n)}, 1, 0, "buy", time.Duration(at)*time.Second)
			s.Status().SetCode(ptrace.StatusCodeError)
			s.Attributes().PutStr("error.type", kind)
		}
	}
	add("steady", 0, 7200, 20)
	add("fresh", 5000, 7200, 30)
	add("over", 4800, 5400, 30)
	add("grown", 0, 6000, 100)
	add("grown", 6000, 7200, 10)
	add("once", 7000, 7001, 1)
	add("early", 60, 3000, 30)
	add("early", 3600, 3700, 100)
	h := api(t, querytest.FilledMemory(t, td))
	got := make(map[string]trendJSON)
	var order []string
	for _, g := range ask(t, h, 3600, 7199, "&before=1&sort=growth").Data.Groups {
		got[g.Type] = g.Trend
		order = append(order, g.Type)
	}
	want := map[string]trendJSON{
		"steady": {Kind: "usual"}, "early": {Kind: "usual"}, "fresh": {Kind: "new", Since: seconds(5000)},
		"over": {Kind: "new", Since: seconds(4800), Until: seconds(5370)}, "once": {Kind: "new", Since: seconds(7000)},
		"grown": {Kind: "growing", Factor: 10, Since: seconds(6000)},
	}
	grown := got["grown"]
	if since, err := strconv.ParseInt(grown.Since, 10, 64); err == nil && grown.Factor > 9 && grown.Factor < 11 &&
		time.Unix(0, since).Round(time.Minute).Equal(querytest.Start.Add(6000*time.Second)) {
		got["grown"] = want["grown"] // parts are no whole seconds
	}
	if !maps.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if w := []string{"grown", "fresh", "over", "once", "steady", "early"}; !slices.Equal(order, w) {
		t.Errorf("order %v, want %v", order, w)
	}
	if w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/errors?sort=name"); w.Code != http.StatusBadRequest {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
