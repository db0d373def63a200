package storequery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// namedSpans selects spans by name.
func namedSpans(name string) Select {
	return Select{equals(tracestore.Name, name)}
}

// family returns a trace with the names and parents that text describes: "a b<a c<b" is a chain.
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
	rooted := Select{equals(tracestore.RootName, "a")}
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
		{"a b<a c<b", Relation{Left: a, Right: Select{}}, "bc"},
		{"a b<a c<b", Relation{Kind: Child, Left: a, Right: Select{}}, "b"},
		{"c<b b<a a", Relation{Left: a, Right: c}, "c"},
		{"c<b b<a a", Relation{Left: Relation{Left: a, Right: b}, Right: c}, "c"},
		{"a<b b<a", Relation{Left: a, Right: Select{}}, "b"},
		{"a<b b<a c<a", Relation{Left: Or{a, b}, Right: Select{}}, "abc"},
		{"a<b b<a c<a d<c", Relation{Left: b, Right: Select{}}, "acd"},
		{"a<a b<a", Relation{Left: a, Right: Select{}}, "b"},
		{"a b<x", Relation{Left: a, Right: b}, ""},
		{"a b<x", rooted, "ab"},
		{"b<x a", Relation{Left: rooted, Right: Select{}}, ""},
		{"b<x a", Select{tracestore.Not{Expr: rooted.Where}}, ""},
	} {
		got := ""
		trace := family(tc.trace)
		for i, selected := range Evaluate(tc.set, trace) {
			if selected {
				got += trace[i].Name
			}
		}
		if got != tc.want {
			t.Errorf("%s: %#v selects %q, want %q", tc.trace, tc.set, got, tc.want)
		}
	}
	if got := Evaluate(a, nil); len(got) != 0 {
		t.Errorf("empty trace: %v", got)
	}
}

// TestSpansWithEqualIDs checks that the order of spans that differ only in their resource does not
// depend on the order of arrival.
func TestSpansWithEqualIDs(t *testing.T) {
	trace := family("c<a a a")
	trace[2].Start, trace[2].End = trace[1].Start, trace[1].End
	for i, host := range []string{"", "h2", "h1"} {
		trace[i].Resource = &otlpdata.Resource{Raw: []byte(host)}
		trace[i].Resource.Attributes = []otlpdata.KeyValue{{Key: "host", Value: otlpdata.StringValue(host)}}
	}
	below := func(host string) SpanSet {
		field := tracestore.Field{Place: tracestore.ResourceAttribute, Key: "host"}
		return Relation{Left: Select{tracestore.Cond{Field: field, Value: tracestore.Text(host)}}, Right: Select{}}
	}
	for range 2 {
		first, second := Evaluate(below("h1"), trace), Evaluate(below("h2"), trace)
		if !slices.Contains(first, true) || slices.Contains(second, true) {
			t.Errorf("descendants of the first: %v, of the second: %v, want only the first", first, second)
		}
		slices.Reverse(trace)
	}
}

// TestDeepTrace checks that a long chain takes linear time in either order.
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
		selected := Evaluate(Relation{Left: namedSpans("top"), Right: namedSpans("s")}, trace)
		n := 0
		for _, s := range selected {
			if s {
				n++
			}
		}
		if n != depth-1 {
			t.Errorf("%d spans are descendants of the first, want %d", n, depth-1)
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
	set := Relation{Left: namedSpans("a"), Right: Select{}}
	err := VisitSelected(t.Context(), set, otlpdata.TraceID{1}, true, func(s tracestore.Span) error {
		got = append(got, fmt.Sprint(s.Name, s.Trace.RootName, s.Trace.Spans, s.Trace.End))
		return nil
	}, batches...)
	if want := []string{"ba3 30", "ca3 30"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	for _, set := range []SpanSet{set, Select{tracestore.Not{Expr: equals(tracestore.Name, "a")}}, Select{equals(tracestore.RootName, "a")}} {
		var got []string
		err := VisitSelected(t.Context(), set, otlpdata.TraceID{1}, false, func(s tracestore.Span) error {
			if s.Name != "a" {
				got = append(got, s.Name)
			}
			return nil
		}, batches...)
		if want := []string{"b", "c"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: %q, %v, want %q", set, got, err, want)
		}
	}
	stop := errors.New("stop")
	fail := func(tracestore.Span) error { return stop }
	for _, ofTrace := range []bool{false, true} {
		if err := VisitSelected(t.Context(), nil, otlpdata.TraceID{1}, ofTrace, fail, batches...); !errors.Is(err, stop) {
			t.Errorf("error %v, want the error of visit", err)
		}
	}
}

// BenchmarkVisitSelected visits the matching spans of a trace of 1000 spans.
func BenchmarkVisitSelected(b *testing.B) {
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range 1000 {
		s := spans.AppendEmpty()
		s.SetName(fmt.Sprint("operation ", i%100))
		s.SetTraceID([16]byte{1})
		s.SetSpanID([8]byte{1, byte(i), byte(i >> 8)})
		s.SetParentSpanID([8]byte{1, byte((i - 1) / 2), byte((i - 1) / 2 >> 8)})
		s.SetStartTimestamp(pcommon.Timestamp(10 + i))
		s.SetEndTimestamp(3000)
		s.Attributes().PutStr("http.route", "/api/cart/{id}")
		s.Attributes().PutInt("http.response.status_code", 200)
	}
	batch := otlpdata.FromTraces(td, otlpdata.Meta{})
	for name, ofTrace := range map[string]bool{"spans": false, "ofTrace": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				visit := func(tracestore.Span) error { return nil }
				if err := VisitSelected(b.Context(), namedSpans("operation 7"), otlpdata.TraceID{1}, ofTrace, visit, batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
