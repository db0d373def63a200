package baseline

import (
	"encoding/json"
	"fmt"
	"net/http"
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

func TestAnswers(t *testing.T) {
	g := querytest.Golden{Routes: routes, Store: querytest.ShopStore, Headers: []string{"Content-Type"}}
	g.Run(t, "testdata/*.txt")
}

// ask returns the data of a response.
func ask[T any](t *testing.T, h http.Handler, target string) (data T, errors int) {
	t.Helper()
	w := querytest.Ask(t, h, http.MethodGet, target)
	var a struct {
		Data   T
		Errors []struct{ Msg string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", target, w.Code, w.Body, err)
	}
	return a.Data, len(a.Errors)
}

// orders returns traces 1 to n of an operation of the service shop that calls stock, 10 s apart.
// Trace i takes i ms. more adds spans to some.
func orders(n int, more func(i int, ss ptrace.ScopeSpans, id pcommon.TraceID)) ptrace.Traces {
	td := ptrace.NewTraces()
	for i := 1; i <= n; i++ {
		id := pcommon.TraceID{14: byte(i >> 8), 15: byte(i)}
		ss := querytest.AddService(td, "shop")
		root := querytest.AddSpan(ss, id, 1, 0, "order", time.Duration(i)*10*time.Second)
		root.SetKind(ptrace.SpanKindServer)
		root.SetEndTimestamp(root.StartTimestamp() + pcommon.Timestamp(i)*1e6)
		call := querytest.AddSpan(ss, id, 2, 1, "stock", time.Duration(i)*10*time.Second)
		call.SetKind(ptrace.SpanKindClient)
		call.SetEndTimestamp(call.StartTimestamp() + 1e6)
		more(i, ss, id)
	}
	return td
}

// addCall adds a call of a millisecond at the start of an order.
func addCall(ss ptrace.ScopeSpans, id pcommon.TraceID, span byte, name string) {
	s := ss.Spans().AppendEmpty()
	ss.Spans().At(0).CopyTo(s)
	s.SetSpanID(pcommon.SpanID{7: span})
	s.SetParentSpanID(pcommon.SpanID{7: 1})
	s.SetName(name)
	s.SetEndTimestamp(s.StartTimestamp() + 1e6)
}

func TestTypical(t *testing.T) {
	td := orders(150, func(i int, ss ptrace.ScopeSpans, id pcommon.TraceID) {
		switch {
		case i == 150: // a call that no other order has
			addCall(ss, id, 3, "retry")
		case i%3 == 0: // a third of the orders
			addCall(ss, id, 3, "gift")
		}
	})
	store := querytest.FilledMemory(t, td)
	t.Run("whole", func(t *testing.T) { checkTypical(t, store, 0) })
	t.Run("partial", func(t *testing.T) { checkTypical(t, querytest.Partial(store), 1) })
}

func checkTypical(t *testing.T, store core.Store, wantErrors int) {
	t.Helper()
	b, _ := querytest.NewBackend(t, store, func(o *core.Options) { o.Limits.Scanned = 1e6 })
	h := routes(b)
	for _, c := range []struct {
		trace, of int
		same      bool
		low, high uint64 // of the duration
	}{
		{1, 99, true, 73e6, 77e6},     // the other 99 orders without gift take 2 to 149 ms
		{3, 48, true, 74e6, 79e6},     // the other 48 with gift take 6 to 147 ms
		{150, 100, false, 73e6, 77e6}, // most similar to those without gift
	} {
		a, errors := ask[typicalJSON](t, h, fmt.Sprintf("/api/ui/v1/typical/%x", c.trace))
		if a.ChosenFrom != c.of || a.Same != c.same || a.Duration < c.low || a.Duration > c.high || errors != wantErrors ||
			a.Calls != 150 || a.Service != "shop" || a.Name != "order" || a.TraceID == fmt.Sprintf("%032x", c.trace) {
			t.Errorf("order %d: %+v, want one of %d, same=%t, %d to %d ns", c.trace, a, c.of, c.same, c.low, c.high)
		}
	}
}

// What is usual for a trace of an incident comes from the quiet time before, and so does the
// typical trace: neither is of the incident of the trace, nor of an earlier one, with errors or
// only slow.
func TestUsualInIncident(t *testing.T) {
	td := orders(2160, func(i int, ss ptrace.ScopeSpans, _ pcommon.TraceID) {
		root := ss.Spans().At(0)
		slow, failed := i >= 720 && i < 1710, i >= 630 && i < 720 || i >= 1800 && i < 2000
		took := pcommon.Timestamp(50+i%10) * 1e6
		if slow || failed {
			took = 700e6
		}
		if failed {
			root.Status().SetCode(ptrace.StatusCodeError)
		}
		root.SetEndTimestamp(root.StartTimestamp() + took)
	})
	h := afterSixHours(t, td)
	a, _ := ask[durationsJSON](t, h, fmt.Sprintf("/api/ui/v1/baseline/%x", 1850))
	o := a.Operations
	if len(o.Name) != 2 || o.Name[0] != "order" || o.P99[0] > 70e6 || o.Calls[0] < 600 || o.Calls[0] > 730 {
		t.Errorf("usual: %v %v ms, %v calls", o.Name, o.P99, o.Calls)
	}
	c, _ := ask[typicalJSON](t, h, fmt.Sprintf("/api/ui/v1/typical/%x", 1850))
	if c.Duration < 53e6 || c.Duration > 56e6 || c.Calls != o.Calls[0] {
		t.Errorf("typical: %+v", c)
	}
}

// Times in which one service has no incident do not count if another one has. What remains is too
// short here.
func TestTooLittleQuietTime(t *testing.T) {
	fail := func(s ptrace.Span, i int, noisy func(quarter int) bool) {
		s.SetEndTimestamp(s.StartTimestamp() + 50e6)
		if noisy(i / 90) {
			s.Status().SetCode(ptrace.StatusCodeError)
		}
	}
	td := orders(2160, func(i int, ss ptrace.ScopeSpans, _ pcommon.TraceID) {
		fail(ss.Spans().At(0), i, func(quarter int) bool { return quarter > 13 })
	})
	ss := querytest.AddService(td, "stock")
	for i := 1; i <= 2160; i++ {
		s := querytest.AddSpan(ss, pcommon.TraceID{14: byte(i >> 8), 15: byte(i)}, 3, 2, "take", time.Duration(i)*10*time.Second)
		s.SetKind(ptrace.SpanKindServer)
		fail(s, i, func(quarter int) bool { return quarter < 12 })
	}
	a, _ := ask[durationsJSON](t, afterSixHours(t, td), fmt.Sprintf("/api/ui/v1/baseline/%x", 2100))
	if o := a.Operations; len(o.Calls) != 3 || o.Calls[0] != 2160 || o.Calls[1] != 2160 || o.Calls[2] != 2160 {
		t.Errorf("%v, want all calls", o.Calls)
	}
}

// The first traces of an operation are compared with those after it; other operations with quiet
// time.
func TestNewOperation(t *testing.T) {
	td := orders(2160, func(i int, ss ptrace.ScopeSpans, _ pcommon.TraceID) {
		root := ss.Spans().At(0)
		root.SetEndTimestamp(root.StartTimestamp() + 50e6)
		if i >= 2101 {
			root.SetName("refund")
		}
	})
	h := afterSixHours(t, td)
	a, _ := ask[durationsJSON](t, h, fmt.Sprintf("/api/ui/v1/baseline/%x", 2103))
	calls := make(map[string]uint64)
	for i, name := range a.Operations.Name {
		calls[name] = a.Operations.Calls[i]
	}
	end := fmt.Sprint(querytest.Start.Add(6*time.Hour + time.Minute).UnixNano())
	if calls["refund"] != 60 || calls["stock"] < 2000 || calls["stock"] > 2100 || a.End != end {
		t.Errorf("calls %v until %s, want %s", calls, a.End, end)
	}
	if c, _ := ask[typicalJSON](t, h, fmt.Sprintf("/api/ui/v1/typical/%x", 2103)); c.ChosenFrom != 59 || c.Calls != 60 || c.End != end {
		t.Errorf("typical: %+v", c)
	}
}

// afterSixHours returns the routes six hours after the first span.
func afterSixHours(t *testing.T, td ptrace.Traces) http.Handler {
	b, _ := querytest.NewBackend(t, querytest.FilledMemory(t, td), func(o *core.Options) {
		o.Limits.Scanned = 1e6
		o.Now = func() time.Time { return querytest.Start.Add(6 * time.Hour) }
	})
	return routes(b)
}

type durationsJSON struct {
	Operations operationColumns
	Start, End string
}

type typicalJSON struct {
	TraceID, Service, Name string
	Duration, Calls        uint64
	ChosenFrom, Examined   int
	Same                   bool
	Start, End             string
}

// TestTypicalWithoutUsualSet checks that the most similar traces count if each trace has other
// operations.
func TestTypicalWithoutUsualSet(t *testing.T) {
	td := orders(60, func(i int, ss ptrace.ScopeSpans, id pcommon.TraceID) {
		for k := range 6 {
			if i>>k&1 == 1 {
				addCall(ss, id, byte(3+k), fmt.Sprintf("call %d", k))
			}
		}
	})
	b, _ := querytest.NewBackend(t, querytest.FilledMemory(t, td), func(o *core.Options) { o.Limits.Scanned = 1e6 })
	a, _ := ask[typicalJSON](t, routes(b), "/api/ui/v1/typical/1")
	if a.TraceID == "" || a.Same || a.Examined != 59 || a.ChosenFrom != 30 {
		t.Errorf("%+v", a)
	}
}

// TestOmittedOperations checks that the operations with the most spans are counted if there are too
// many.
func TestOmittedOperations(t *testing.T) {
	td := orders(1, func(_ int, ss ptrace.ScopeSpans, id pcommon.TraceID) {
		for i := range maxOperations {
			s := querytest.AddSpan(ss, id, 0, 1, fmt.Sprintf("step %d", i), time.Minute)
			s.SetSpanID(pcommon.SpanID{6: byte(i >> 8), 7: byte(i), 5: 1})
		}
		querytest.AddSpan(ss, id, 200, 1, "step 7", time.Minute)
	})
	b, _ := querytest.NewBackend(t, querytest.FilledMemory(t, td), func(o *core.Options) { o.Limits.TraceSize = 1e4 })
	a, errors := ask[struct{ Operations operationColumns }](t, routes(b), "/api/ui/v1/baseline/1")
	o := a.Operations
	if len(o.Name) != maxOperations || len(o.Kind) != maxOperations || o.Name[0] != "step 7" || o.Calls[0] != 2 || errors != 1 {
		t.Errorf("%d operations, first %v, %d errors", len(o.Name), o.Name[:1], errors)
	}
}
