package storequery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func namedSpans(name string) Select {
	return Select{tracestore.Cond{Field: tracestore.Field{Place: tracestore.Name}, Value: tracestore.Text(name)}}
}

// family returns a trace of spans with the names and parents that text says: "a b<a c<b" is a chain.
func family(text string) (out []tracestore.Span) {
	id := func(name string) (id otlpdata.SpanID) {
		copy(id[:], name)
		return id
	}
	for i, field := range strings.Fields(text) {
		name, parent, _ := strings.Cut(field, "<")
		span := &otlpdata.Span{TraceID: otlpdata.TraceID{1}, SpanID: id(name), ParentID: id(parent), Name: name}
		span.Start, span.End = uint64(i), uint64(i)+1
		out = append(out, tracestore.Span{Resource: &otlpdata.Resource{}, Scope: &otlpdata.Scope{}, Span: span})
	}
	return out
}

func TestEvaluate(t *testing.T) {
	a, b, c, x := namedSpans("a"), namedSpans("b"), namedSpans("c"), namedSpans("x")
	rooted := Select{tracestore.Cond{Field: tracestore.Field{Place: tracestore.RootName}, Value: tracestore.Text("a")}}
	for _, tc := range []struct {
		trace string
		set   SpanSet
		want  string
	}{
		{"a b<a", nil, "ab"},
		{"a b<a", a, "a"},
		{"a b<a", And{a, b}, "ab"},
		{"a b<a", And{a, x}, ""},
		{"a b<a", Or{x, And{a, b}}, "ab"},
		{"a b<a c<b", Descendant{Ancestors: a, Spans: Select{}}, "bc"},
		{"a b<a c<b", Child{Parents: a, Spans: Select{}}, "b"},
		{"c<b b<a a", Descendant{Ancestors: a, Spans: c}, "c"},
		{"c<b b<a a", Descendant{Ancestors: Descendant{Ancestors: a, Spans: b}, Spans: c}, "c"},
		{"a<b b<a", Descendant{Ancestors: a, Spans: Select{}}, "b"},
		{"a<b b<a c<a", Descendant{Ancestors: Or{a, b}, Spans: Select{}}, "abc"},
		{"a<b b<a c<a d<c", Descendant{Ancestors: b, Spans: Select{}}, "acd"},
		{"a<a b<a", Descendant{Ancestors: a, Spans: Select{}}, "b"},
		{"a b<x", Descendant{Ancestors: a, Spans: b}, ""},
		{"a b<x", rooted, "ab"},
		{"b<x a", Descendant{Ancestors: rooted, Spans: Select{}}, ""},
		{"b<x a", Select{tracestore.Not{Expr: rooted.Where}}, ""},
	} {
		got := ""
		trace := family(tc.trace)
		for i, chosen := range Evaluate(tc.set, trace) {
			if chosen {
				got += trace[i].Name
			}
		}
		if got != tc.want {
			t.Errorf("%s: %#v chooses %q, want %q", tc.trace, tc.set, got, tc.want)
		}
	}
	if got := Evaluate(a, nil); len(got) != 0 {
		t.Errorf("of no spans: %v", got)
	}
}

// TestAlike: spans that differ in their resource only have an order, whatever order they come in.
func TestAlike(t *testing.T) {
	trace := family("c<a a a")
	trace[2].Start, trace[2].End = trace[1].Start, trace[1].End
	for i, host := range []string{"", "h2", "h1"} {
		trace[i].Resource = &otlpdata.Resource{Raw: []byte(host)}
		trace[i].Resource.Attributes = []otlpdata.KeyValue{{Key: "host", Value: otlpdata.StringValue(host)}}
	}
	on := func(host string) SpanSet {
		return Descendant{Ancestors: Select{tracestore.Cond{Field: tracestore.Field{Place: tracestore.ResourceAttribute, Key: "host"}, Value: tracestore.Text(host)}}, Spans: Select{}}
	}
	for range 2 {
		first, second := Evaluate(on("h1"), trace), Evaluate(on("h2"), trace)
		if !slices.Contains(first, true) || slices.Contains(second, true) {
			t.Errorf("below the first: %v, below the second: %v", first, second)
		}
		slices.Reverse(trace)
	}
}

// TestDeepTrace: each span of a chain is gone over once, whatever order the spans come in.
func TestDeepTrace(t *testing.T) {
	const depth = 100_000
	trace := make([]tracestore.Span, depth)
	for i := range trace {
		id := func(n int) (id otlpdata.SpanID) {
			copy(id[:], fmt.Sprintf("%08d", n))
			return id
		}
		span := &otlpdata.Span{SpanID: id(i), ParentID: id(i - 1), Name: "s"}
		trace[i] = tracestore.Span{Resource: &otlpdata.Resource{}, Scope: &otlpdata.Scope{}, Span: span}
	}
	trace[0].Name = "top"
	for range 2 {
		chosen := Evaluate(Descendant{Ancestors: namedSpans("top"), Spans: namedSpans("s")}, trace)
		n := 0
		for _, is := range chosen {
			if is {
				n++
			}
		}
		if n != depth-1 {
			t.Errorf("%d spans are below the first, want %d", n, depth-1)
		}
		slices.Reverse(trace)
	}
}

func TestVisitSelected(t *testing.T) {
	one := func(name string, parent byte) *otlpdata.Batch {
		return batchOf(t, func(_ ptrace.ResourceSpans, _ ptrace.ScopeSpans, s ptrace.Span) {
			s.SetName(name)
			s.SetTraceID([16]byte{1})
			s.SetSpanID([8]byte{name[0]})
			s.SetParentSpanID([8]byte{parent})
			s.SetStartTimestamp(10)
			s.SetEndTimestamp(30)
		})
	}
	batches := []*otlpdata.Batch{one("b", 'a'), one("a", 0), one("b", 'a'), one("c", 'b')}
	var got []string
	err := VisitSelected(t.Context(), Descendant{Ancestors: namedSpans("a"), Spans: Select{}}, otlpdata.TraceID{1}, func(s tracestore.Span) error {
		got = append(got, fmt.Sprint(s.Name, s.Trace.RootName, s.Trace.Spans, s.Trace.End))
		return nil
	}, batches...)
	if want := []string{"ba3 30", "ca3 30"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	stop := errors.New("stop")
	if err := VisitSelected(t.Context(), nil, otlpdata.TraceID{1}, func(tracestore.Span) error { return stop }, batches...); !errors.Is(err, stop) {
		t.Errorf("the error of visit is %v", err)
	}
}
