package pageapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestErrorType(t *testing.T) {
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
		"order n of decade failed after n.ns at n-n-n; order 17 of decade failed after 1.5s at 550e8400-e29b-cafe1": func(s ptrace.Span) {
			s.Status().SetMessage("order 17 of decade failed after 1.5s at 550e8400-e29b-cafe1")
		},
	} {
		td := ptrace.NewTraces()
		change(querytest.AddSpan(querytest.AddService(td, "a"), pcommon.TraceID{1}, 1, 0, "op", 0))
		err := tracestore.WalkSpans(otlpdata.FromTraces(td, otlpdata.Meta{}), func(s tracestore.Span) error {
			if kind, message := errorType(s.Span); kind+"; "+message != want {
				t.Errorf("got %q; %q, want %q", kind, message, want)
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
func askErrors(t *testing.T, h http.Handler) (a struct{ Data errorsJSON }) {
	t.Helper()
	end := querytest.Start.Add(1000 * time.Second)
	w := querytest.Ask(t, h, http.MethodGet, fmt.Sprintf("/api/ui/v1/errors?start=%d&end=%d", querytest.Start.UnixNano(), end.UnixNano()))
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %v %s", w.Code, err, w.Body)
	}
	return a
}

// errorsJSON is what tests read of an answer.
type errorsJSON struct {
	Examined int
	Complete bool
	Since    string
	Groups   []struct {
		Service, Operation, Type, Message, First, Last, TraceID string
		Count                                                   int
		Points                                                  []int
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
	if orders.Count != 600 || orders.Type != "order n failed" || orders.Message != "order 899 failed" || orders.First != seconds(1) ||
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
