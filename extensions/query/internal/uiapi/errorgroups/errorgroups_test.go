package errorgroups

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
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

func TestFailureOf(t *testing.T) {
	exception := func(s ptrace.Span, kind, message string) {
		e := s.Events().AppendEmpty()
		e.SetName("exception")
		if kind != "" {
			e.Attributes().PutStr("exception.type", kind)
		}
		e.Attributes().PutStr("exception.message", message)
	}
	for want, change := range map[string]func(s ptrace.Span){
		"; ": func(ptrace.Span) {},
		"OutOfStock; none left": func(s ptrace.Span) {
			exception(s, "First", "retried")
			exception(s, "OutOfStock", "none left")
			s.Events().AppendEmpty().SetName("log")
			s.Attributes().PutStr("error.type", "other")
			s.Status().SetMessage("failed")
		},
		"timeout; no answer": func(s ptrace.Span) {
			exception(s, "", "no answer")
			s.Attributes().PutStr("error.type", "timeout")
			s.Attributes().PutInt("http.response.status_code", 504)
		},
		"HTTP 504; ":       func(s ptrace.Span) { s.Attributes().PutInt("http.response.status_code", 504) },
		"HTTP 500; failed": func(s ptrace.Span) { s.Attributes().PutStr("http.status_code", "500"); s.Status().SetMessage("failed") },
		"gRPC Unavailable; ": func(s ptrace.Span) {
			s.Attributes().PutInt("http.status_code", 200)
			s.Attributes().PutInt("rpc.grpc.status_code", 14)
		},
		"gRPC Code(99); ": func(s ptrace.Span) { s.Attributes().PutInt("rpc.grpc.status_code", 99) },
		"bad code; bad code": func(s ptrace.Span) {
			s.Attributes().PutStr("http.status_code", "-1")
			s.Status().SetMessage("bad code")
		},
		"order <n> of decade failed after <n>s at <id>; order 17 of decade failed after 1.5s at 550e8400-e29b-cafe1": func(s ptrace.Span) {
			s.Status().SetMessage("order 17 of decade failed after 1.5s at 550e8400-e29b-cafe1")
		},
	} {
		td := ptrace.NewTraces()
		change(querytest.AddSpan(querytest.AddService(td, "a"), pcommon.TraceID{1}, 1, 0, "op", 0))
		err := tracestore.WalkSpans(otlpdata.FromTraces(td, otlpdata.Meta{}), func(s tracestore.Span) error {
			if f := failureOf(s.Span); Title(s.Span)+"; "+f.message != want {
				t.Errorf("got %q; %q, want %q", Title(s.Span), f.message, want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
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

// askErrors returns the answer for the first 1000 seconds.
func askErrors(t *testing.T, h http.Handler) (a answerJSON) {
	t.Helper()
	return ask(t, h, 0, 1000, "")
}

// ask returns the answer for some seconds after querytest.Start.
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

// errorsJSON is what tests read of an answer.
type errorsJSON struct {
	Examined int
	Complete bool
	Since    string
	Before   *struct {
		Examined int
		Complete bool
	}
	Groups []struct {
		Service, Operation, Type, Pattern, Frame, Where, Message, First, Last, TraceID string
		Count                                                                          int
		Before                                                                         *int
		Points                                                                         []int
		Operations, Versions                                                           []countedText
	}
}

func seconds(n int) string {
	return fmt.Sprint(querytest.Start.Add(time.Duration(n) * time.Second).UnixNano())
}

// All errors are counted in groups, by parts of the time range, with the newest as example.
func TestErrorGroups(t *testing.T) {
	const n = 900 // more than one page of traces
	a := askErrors(t, api(t, querytest.FilledMemory(t, failures(n)), func(o *core.Options) { o.Limits.Scanned = 1e6 })).Data
	if a.Examined != n || !a.Complete || a.Since != seconds(0) || len(a.Groups) != 2 {
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
	for part, count := range orders.Points { // parts of 33.3 s
		if want := 22; part < 27 && (count < want-1 || count > want+1) || part > 27 && count > 0 {
			t.Errorf("part %d: %d spans", part, count)
		}
	}
}

// Beyond the limit, older errors are not examined, and the answer says which.
func TestErrorLimit(t *testing.T) {
	h := api(t, querytest.FilledMemory(t, failures(900)), func(o *core.Options) { o.Limits.Errors, o.Limits.Scanned = 120, 1e6 })
	a := askErrors(t, h).Data
	if a.Examined != 120 || a.Complete || a.Since != seconds(780) || len(a.Groups) != 2 || a.Groups[0].Count != 80 || a.Groups[1].Count != 40 {
		t.Errorf("%+v", a)
	}
}

// If a part of the store cannot be read, the errors of all pages of the rest are examined.
func TestErrorsOfPartialStore(t *testing.T) {
	h := api(t, querytest.Partial(querytest.FilledMemory(t, failures(900))), func(o *core.Options) {
		o.Limits.Errors, o.Limits.Scanned = 1000, 1e6
	})
	a := askErrors(t, h)
	if a.Data.Examined != 900 || a.Data.Complete || a.Data.Since != seconds(0) || len(a.Errors) != 1 ||
		!strings.HasSuffix(a.Errors[0].Msg, ": "+querytest.PartialReason) {
		t.Errorf("%d examined, complete %t, errors %+v", a.Data.Examined, a.Data.Complete, a.Errors)
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
		if found.Examined != g.Count {
			t.Errorf("%s: %d spans with %s, want %d", got[len(got)-1], found.Examined, g.Where, g.Count)
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
		if got := ask(t, h, 0, 1000, "&q="+url.QueryEscape(q)).Data; got.Examined != want || !got.Complete {
			t.Errorf("%s: %+v, want %d spans", q, got, want)
		}
	}
}

// Groups say how often they occurred in the time before.
func TestErrorsBefore(t *testing.T) {
	h := api(t, querytest.FilledMemory(t, failures(90)))
	a := ask(t, h, 60, 89, "&before=1&q="+url.QueryEscape("{ name = \"buy\" }")).Data
	if a.Before == nil || a.Before.Examined != 29 || !a.Before.Complete || len(a.Groups) != 2 ||
		*a.Groups[0].Before != 20 || *a.Groups[1].Before != 9 {
		t.Errorf("%+v, before %+v", a, a.Before)
	}
	if a := ask(t, h, 0, 29, "&before=1").Data; a.Before.Examined != 0 || *a.Groups[0].Before != 0 || !a.Before.Complete {
		t.Errorf("%+v, before %+v", a, a.Before)
	}
}
