package tracestore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func namedSpans(name string) Select {
	return Select{Cond{Field: Field{Place: Name}, Value: Text(name)}}
}

// family returns a trace of spans with the names and parents that text says: "a b<a c<b" is a chain.
func family(text string) (out []Span) {
	id := func(name string) (id otlpdata.SpanID) {
		copy(id[:], name)
		return id
	}
	for i, field := range strings.Fields(text) {
		name, parent, _ := strings.Cut(field, "<")
		span := &otlpdata.Span{TraceID: otlpdata.TraceID{1}, SpanID: id(name), ParentID: id(parent), Name: name}
		span.Start, span.End = uint64(i), uint64(i)+1
		out = append(out, Span{Resource: &otlpdata.Resource{}, Scope: &otlpdata.Scope{}, Span: span})
	}
	return out
}

func TestEvaluateSet(t *testing.T) {
	a, b, c, x := namedSpans("a"), namedSpans("b"), namedSpans("c"), namedSpans("x")
	rooted := Select{Cond{Field: Field{Place: RootName}, Value: Text("a")}}
	for _, tc := range []struct {
		trace string
		set   SpanSet
		want  string
	}{
		{"a b<a", nil, "ab"},
		{"a b<a", a, "a"},
		{"a b<a", Both{a, b}, "ab"},
		{"a b<a", Both{a, x}, ""},
		{"a b<a", Either{x, Both{a, b}}, "ab"},
		{"a b<a c<b", Below{Above: a, Spans: Select{}}, "bc"},
		{"a b<a c<b", Below{Above: a, Spans: Select{}, Direct: true}, "b"},
		{"c<b b<a a", Below{Above: a, Spans: c}, "c"},
		{"c<b b<a a", Below{Above: Below{Above: a, Spans: b}, Spans: c}, "c"},
		{"a<b b<a", Below{Above: a, Spans: Select{}}, "b"},
		{"a<b b<a c<a", Below{Above: Either{a, b}, Spans: Select{}}, "abc"},
		{"a<b b<a c<a d<c", Below{Above: b, Spans: Select{}}, "acd"},
		{"a<a b<a", Below{Above: a, Spans: Select{}}, "b"},
		{"a b<x", Below{Above: a, Spans: b}, ""},
		{"a b<x", rooted, "ab"},
		{"b<x a", Below{Above: rooted, Spans: Select{}}, ""},
		{"b<x a", Select{Not{rooted.Where}}, ""},
	} {
		got := ""
		trace := family(tc.trace)
		for i, chosen := range EvaluateSet(tc.set, trace) {
			if chosen {
				got += trace[i].Name
			}
		}
		if got != tc.want {
			t.Errorf("%s: %#v chooses %q, want %q", tc.trace, tc.set, got, tc.want)
		}
	}
	if got := EvaluateSet(a, nil); len(got) != 0 {
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
		return Below{Above: Select{Cond{Field: Field{Place: ResourceAttribute, Key: "host"}, Value: Text(host)}}, Spans: Select{}}
	}
	for range 2 {
		first, second := EvaluateSet(on("h1"), trace), EvaluateSet(on("h2"), trace)
		if !slices.Contains(first, true) || slices.Contains(second, true) {
			t.Errorf("below the first: %v, below the second: %v", first, second)
		}
		slices.Reverse(trace)
	}
}

// TestDeepTrace: each span of a chain is gone over once, whatever order the spans come in.
func TestDeepTrace(t *testing.T) {
	const depth = 100_000
	trace := make([]Span, depth)
	for i := range trace {
		id := func(n int) (id otlpdata.SpanID) {
			copy(id[:], fmt.Sprintf("%08d", n))
			return id
		}
		span := &otlpdata.Span{SpanID: id(i), ParentID: id(i - 1), Name: "s"}
		trace[i] = Span{Resource: &otlpdata.Resource{}, Scope: &otlpdata.Scope{}, Span: span}
	}
	trace[0].Name = "top"
	for range 2 {
		chosen := EvaluateSet(Below{Above: namedSpans("top"), Spans: namedSpans("s")}, trace)
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

func TestVisitSet(t *testing.T) {
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
	err := VisitSet(t.Context(), Below{Above: namedSpans("a"), Spans: Select{}}, otlpdata.TraceID{1}, func(s Span) error {
		got = append(got, fmt.Sprint(s.Name, s.Trace.RootName, s.Trace.Spans, s.Trace.End))
		return nil
	}, batches...)
	if want := []string{"ba3 30", "ca3 30"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	stop := errors.New("stop")
	if err := VisitSet(t.Context(), nil, otlpdata.TraceID{1}, func(Span) error { return stop }, batches...); !errors.Is(err, stop) {
		t.Errorf("the error of visit is %v", err)
	}
}
