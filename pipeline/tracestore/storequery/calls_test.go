package storequery

import (
	"math"
	"reflect"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// callSpan describes a span of trace 1 with a duration of 10 ns.
type callSpan struct {
	id, parent byte
	service    string
	kind       ptrace.SpanKind
	start      uint64
	failed     bool
}

const (
	internal = ptrace.SpanKindInternal
	client   = ptrace.SpanKindClient
	server   = ptrace.SpanKindServer
	producer = ptrace.SpanKindProducer
	consumer = ptrace.SpanKindConsumer
)

// callBatches returns one batch for each span.
func callBatches(tb testing.TB, spans []callSpan) (out []*otlpdata.Batch) {
	tb.Helper()
	for _, l := range spans {
		out = append(out, batchOf(tb, func(rs ptrace.ResourceSpans, _ ptrace.ScopeSpans, s ptrace.Span) {
			rs.Resource().Attributes().PutStr("service.name", l.service)
			s.SetTraceID([16]byte{1})
			s.SetSpanID([8]byte{l.id})
			s.SetParentSpanID([8]byte{l.parent})
			s.SetKind(l.kind)
			s.SetStartTimestamp(pcommon.Timestamp(l.start))
			s.SetEndTimestamp(pcommon.Timestamp(l.start + 10))
			if l.failed {
				s.Status().SetCode(ptrace.StatusCodeError)
			}
		}))
	}
	return out
}

// edge returns an edge with calls of 10 ns each.
func edge(parent, child string, messaging bool, calls, errors uint64) tracestore.Edge {
	return tracestore.Edge{Parent: parent, Child: child, Messaging: messaging, Calls: calls, Errors: errors, Duration: 10 * calls}
}

func TestCountCalls(t *testing.T) {
	for _, c := range []struct {
		name  string
		spans []callSpan
		want  []tracestore.Edge
	}{
		{"chain", []callSpan{{1, 0, "a", server, 0, false}, {2, 1, "a", client, 1, false}, {3, 2, "b", server, 2, true}},
			[]tracestore.Edge{edge("a", "a", false, 1, 0), edge("a", "b", false, 1, 1)}},
		{"parent arrives later", []callSpan{{3, 2, "b", server, 2, false}, {2, 0, "a", client, 1, false}},
			[]tracestore.Edge{edge("a", "b", false, 1, 0)}},
		{"no parent", []callSpan{{3, 2, "b", server, 2, false}}, nil},
		{"own parent", []callSpan{{3, 3, "b", server, 2, false}}, nil},
		{"parents of each other", []callSpan{{1, 2, "a", client, 0, false}, {2, 1, "b", client, 0, false}},
			[]tracestore.Edge{edge("a", "b", false, 1, 0), edge("b", "a", false, 1, 0)}},
		{"duplicates", []callSpan{{1, 0, "a", client, 0, false}, {2, 1, "b", server, 1, false}, {2, 1, "b", server, 1, false}},
			[]tracestore.Edge{edge("a", "b", false, 1, 0)}},
		{"messages", []callSpan{{1, 0, "a", producer, 0, false}, {2, 1, "b", internal, 1, false}, {3, 1, "b", consumer, 1, false},
			{4, 2, "c", consumer, 1, false}, {5, 2, "c", server, 1, false}},
			[]tracestore.Edge{edge("a", "b", true, 2, 0), edge("b", "c", false, 1, 0), edge("b", "c", true, 1, 0)}},
		{"shared id: the client side is the parent", []callSpan{{1, 0, "a", server, 0, false}, {2, 1, "a", client, 1, false},
			{2, 1, "b", server, 2, false}}, []tracestore.Edge{edge("a", "a", false, 1, 0), edge("a", "b", false, 1, 0)}},
		{"shared id without a parent id", []callSpan{{2, 0, "b", server, 1, false}, {2, 0, "a", client, 2, false}},
			[]tracestore.Edge{edge("a", "b", false, 1, 0)}},
		{"children of a shared id: own service, else server side", []callSpan{{2, 0, "a", client, 1, false}, {2, 0, "b", server, 2, false},
			{3, 2, "a", internal, 3, false}, {4, 2, "b", internal, 3, false}, {5, 2, "c", internal, 3, false}},
			[]tracestore.Edge{edge("a", "a", false, 1, 0), edge("a", "b", false, 1, 0), edge("b", "b", false, 1, 0),
				edge("b", "c", false, 1, 0)}},
		{"earliest of several parents", []callSpan{{1, 0, "b", client, 7, false}, {1, 0, "a", client, 6, false}, {2, 1, "c", client, 8, false}},
			[]tracestore.Edge{edge("a", "c", false, 1, 0)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := CountCalls(time.Time{}, time.Time{}, callBatches(t, c.spans)...)
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

// TestCountCallsWindow checks that the start of the child decides, and that the bounds are
// inclusive.
func TestCountCallsWindow(t *testing.T) {
	batches := callBatches(t, []callSpan{{1, 0, "a", client, 100, false}, {2, 1, "b", server, 200, false}})
	for _, c := range []struct {
		from, to int64
		calls    int
	}{{200, 200, 1}, {201, 300, 0}, {0, 199, 0}, {150, 250, 1}, {100, 100, 0}, {300, 100, 0}} {
		got, err := CountCalls(time.Unix(0, c.from), time.Unix(0, c.to), batches...)
		if err != nil || len(got) != c.calls {
			t.Errorf("from %d to %d: %v, %v, want %d calls", c.from, c.to, got, err, c.calls)
		}
	}
}

// TestCountCallsOtherTraces checks that parents are not found in other traces.
func TestCountCallsOtherTraces(t *testing.T) {
	batches := callBatches(t, []callSpan{{2, 1, "b", server, 200, false}})
	other := batchOf(t, func(_ ptrace.ResourceSpans, _ ptrace.ScopeSpans, s ptrace.Span) {
		s.SetTraceID([16]byte{2})
		s.SetSpanID([8]byte{1})
	})
	if got, err := CountCalls(time.Time{}, time.Time{}, append(batches, other)...); err != nil || len(got) != 0 {
		t.Errorf("%v, error %v, want no calls", got, err)
	}
}

// TestManySpansWithOneID checks that finding parents takes linear time.
func TestManySpansWithOneID(t *testing.T) {
	spans := make([]CallSpan, 100_000)
	for i := range spans {
		spans[i] = CallSpan{Parent: otlpdata.SpanID{1}, Service: "a", Kind: otlpdata.KindServer}
	}
	spans = append(spans, CallSpan{ID: otlpdata.SpanID{1}, Service: "b"})
	found := 0
	var p ParentFinder
	p.Index(spans)
	p.Each(func(_, parent *CallSpan) {
		if parent != nil && parent.Service == "b" {
			found++
		}
	})
	if found != 100_000 {
		t.Errorf("%d spans have the parent, want 100000", found)
	}
}

func TestCallCounter(t *testing.T) {
	var c CallCounter
	long := &CallSpan{Service: "b", Duration: math.MaxUint64 - 1, Failed: true}
	for range 2 {
		c.AddCall(&CallSpan{Service: "a"}, long)
	}
	c.AddEdge(&tracestore.Edge{Parent: "a", Child: "a", Messaging: true, Calls: 5, Errors: 2, Duration: 3})
	want := []tracestore.Edge{{Parent: "a", Child: "a", Messaging: true, Calls: 5, Errors: 2, Duration: 3},
		{Parent: "a", Child: "b", Calls: 2, Errors: 2, Duration: math.MaxUint64}}
	if got := c.Edges(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
