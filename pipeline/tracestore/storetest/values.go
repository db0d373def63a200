package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// arraySpans are the values of the attribute k of spans, which are named by a letter each.
func arraySpans() map[string]any {
	long := make([]any, otlpdata.MaxIndexedElements+1)
	for i := range long {
		long[i] = "element"
	}
	long[otlpdata.MaxIndexedElements] = "last element"
	return map[string]any{
		"a": []any{"x", "y"},
		"b": []any{"y", "y", "a \"quoted\" text", ""},
		"c": []any{int64(1), 2.5, math.NaN(), true},
		"d": []any{"1", []any{"nested"}, map[string]any{"m": "x"}, nil},
		"e": []any{},
		"f": []any{[]any{"x"}},
		"g": "x",
		"h": int64(1),
		"i": `["x","y"]`,
		"j": long,
		"k": []any{[]byte("x"), math.Copysign(0, -1), int64(1 << 62)},
	}
}

// arrayChecks are conditions on k, and the names of the spans for which they hold.
func arrayChecks() []arrayCheck {
	cond := func(op tracestore.Op, l tracestore.Literal) tracestore.Expr { return tracestore.Cond{Op: op, Value: l} }
	text, number := tracestore.String, tracestore.Number
	anyText := tracestore.Cond{Op: tracestore.Exists, Value: text("")}
	pattern := tracestore.Pattern(regexp.MustCompile("^(?:x|last .*)$"))
	pattern.Kind = otlpdata.ValueString
	return []arrayCheck{
		{cond(tracestore.Eq, text("x")), "a g"},
		{cond(tracestore.Eq, text("y")), "a b"},
		{cond(tracestore.Eq, text(`a "quoted" text`)), "b"},
		{cond(tracestore.Eq, text("")), "b"},
		{cond(tracestore.Eq, text("nested")), ""},
		{cond(tracestore.Eq, text("1")), "d"},
		{cond(tracestore.Eq, text("NaN")), "c"},
		{cond(tracestore.Eq, text("eA==")), "k"},
		{cond(tracestore.Eq, text("element")), "j"},
		{cond(tracestore.Eq, text("last element")), "j"},
		{cond(tracestore.Eq, number(1)), "c h"},
		{cond(tracestore.Eq, number(0)), "k"},
		{cond(tracestore.Eq, number(1<<62)), "k"},
		{cond(tracestore.Eq, tracestore.Bool(true)), "c"},
		{cond(tracestore.Eq, tracestore.Text("1")), "c d h"},
		{cond(tracestore.Eq, tracestore.Text(`["x","y"]`)), "a i"},
		{cond(tracestore.Eq, tracestore.Text(`[["x"]]`)), "f"},
		{cond(tracestore.Eq, tracestore.Text("[]")), "e"},
		{cond(tracestore.Ne, text("x")), "b c d i j k"},
		{cond(tracestore.Ne, text("y")), "c d g i j k"},
		{cond(tracestore.Ne, number(1)), "k"},
		{cond(tracestore.Ne, number(2.5)), "h k"},
		{cond(tracestore.Ne, tracestore.Text("x")), "b c d e f h i j k"},
		{cond(tracestore.Ne, tracestore.Text(`["x","y"]`)), "b c d e f g h j k"},
		{cond(tracestore.Gt, number(2)), "c k"},
		{cond(tracestore.Ge, text("y")), "a b"},
		{cond(tracestore.Like, pattern), "a g j"},
		{tracestore.And{anyText, tracestore.Not{Expr: cond(tracestore.Like, pattern)}}, "b c d i k"},
		{cond(tracestore.Exists, tracestore.Literal{}), "a b c d e f g h i j k"},
		{cond(tracestore.Exists, tracestore.Literal{Kind: otlpdata.ValueString}), "a b c d g i j k"},
		{tracestore.Not{Expr: cond(tracestore.Eq, text("y"))}, "c d e f g h i j k"},
	}
}

type arrayCheck struct {
	where tracestore.Expr // without fields
	want  string
}

// checkArrays checks that conditions look into arrays, in each place of attributes, and that facets
// and lists of values have their elements.
func checkArrays(s *suite) {
	const perPlace = 16 // or fewer spans
	spans := arraySpans()
	names := slices.Sorted(maps.Keys(spans))
	for place := tracestore.SpanAttribute; place <= tracestore.LinkAttribute; place++ {
		for i, name := range names {
			r := newRequest(fmt.Sprint("place ", place))
			span := r.span(uint64(place)*perPlace+uint64(i), 1, name, base+uint64(i))
			to := map[tracestore.Place]pcommon.Map{
				tracestore.SpanAttribute:     span.Attributes(),
				tracestore.ResourceAttribute: r.traces.ResourceSpans().At(0).Resource().Attributes(),
				tracestore.ScopeAttribute:    r.scope.Scope().Attributes(),
				tracestore.EventAttribute:    span.Events().AppendEmpty().Attributes(),
				tracestore.LinkAttribute:     span.Links().AppendEmpty().Attributes(),
			}[place]
			if err := to.PutEmpty("k").FromRaw(spans[name]); err != nil {
				s.Fatal(err)
			}
			s.send("", r.traces)
		}
	}
	for place := tracestore.AnyAttribute; place <= tracestore.LinkAttribute; place++ {
		field := tracestore.Field{Place: place, Key: "k"}
		for _, c := range arrayChecks() {
			where := tracestore.MapFields(c.where, func(tracestore.Field) tracestore.Field { return field })
			if place != tracestore.AnyAttribute {
				where = tracestore.And{where, property(tracestore.Service, fmt.Sprint("place ", place))}
			}
			var found []string
			for _, r := range s.checkFind(tracestore.Query{Where: where, Limit: len(names) * perPlace}, tracestore.WantIDs) {
				found = append(found, names[r.ID[len(r.ID)-1]%perPlace])
			}
			slices.Sort(found)
			if got := strings.Join(slices.Compact(found), " "); got != c.want {
				s.Errorf("Find(%s): %q, want %q", describe(tracestore.Query{Where: where}), got, c.want)
			}
		}
	}
	if s.listsAttributes() {
		s.checkAttributesOf("k", "k", "")
	}
	s.checkSeveralArrays()
	s.checkArrayFacets(s.aggregator())
}

// checkSeveralArrays checks that a condition examines each array of a span on its own.
func (s *suite) checkSeveralArrays() {
	s.Helper()
	r := newRequest("several")
	span := r.span(500, 1, "z", base)
	for _, element := range []string{"x", "y"} {
		span.Events().AppendEmpty().Attributes().PutEmptySlice("k").AppendEmpty().SetStr(element)
	}
	s.send("", r.traces)
	for _, place := range []tracestore.Place{tracestore.AnyAttribute, tracestore.EventAttribute} {
		where := tracestore.And{property(tracestore.Service, "several"),
			tracestore.Cond{Field: tracestore.Field{Place: place, Key: "k"}, Op: tracestore.Ne, Value: tracestore.String("x")}}
		if found := s.checkFind(tracestore.Query{Where: where}, tracestore.WantIDs); len(found) != 1 {
			s.Errorf("%d traces of which one array differs, want 1", len(found))
		}
	}
}

// checkArrayFacets checks that searches for the values of facets find the spans that were counted.
func (s *suite) checkArrayFacets(store tracestore.Aggregator) {
	s.Helper()
	for place := tracestore.AnyAttribute; place <= tracestore.LinkAttribute; place++ {
		field := tracestore.Field{Place: place, Key: "k"}
		a := tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: tracestore.MaxFacetValues, Fields: []tracestore.Field{field}}}
		s.checkAggregateOf(store, tracestore.Query{}, a)
		got, err := store.Aggregate(s.ctx, tracestore.Query{}, a)
		if err != nil {
			s.Fatalf("Aggregate: %v", err)
		}
		for _, v := range got.Facets.Facets[0].Values {
			if len(v.Text) == storequery.MaxFacetText { // perhaps cut
				continue
			}
			q := tracestore.Query{Where: tracestore.Cond{Field: field, Value: tracestore.Text(v.Text)}, Limit: math.MaxInt32}
			if found := s.checkFind(q, tracestore.WantIDs); uint64(len(found)) != v.Count {
				s.Errorf("%d spans in %v with %q, but %d in a facet", len(found), field, v.Text, v.Count)
			}
		}
	}
}

// endingContext is canceled by a number of calls of Err.
type endingContext struct {
	context.Context
	cancel context.CancelFunc
	left   int
}

func (c *endingContext) Err() error {
	if c.left--; c.left < 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// checkLongValues checks that a query whose context ends while a regular expression examines a long
// value returns the error of the context or the correct result.
func checkLongValues(s *suite) {
	r := newRequest("x")
	for id := range uint64(2) {
		events := r.span(1+id, 1, "a", base+id).Events()
		for n := range 3 {
			text := strings.Repeat("a", 20<<10)
			if id == 1 && n == 2 {
				text += "cx"
			}
			events.AppendEmpty().Attributes().PutStr("k", text)
		}
	}
	s.send("", r.traces)
	like := tracestore.Cond{
		Field: tracestore.Field{Place: tracestore.EventAttribute, Key: "k"}, Op: tracestore.Like,
		Value: tracestore.Pattern(regexp.MustCompile("a[bc]x")),
	}
	for _, where := range []tracestore.Expr{
		like, tracestore.Not{Expr: like}, tracestore.Or{like, property(tracestore.RootName, "b")},
	} {
		set := storequery.Select{Where: where}
		want := findSet(s.sent.fullTraces(s, ""), tracestore.Query{}, set)
		for n, ended := 0, true; ended && n < 1<<12; n = 2*n + 1 {
			ended = s.findUntil(n, set, want)
		}
	}
}

// findUntil searches with a context that ends when it has been checked a number of times. It
// reports whether the context ended.
func (s *suite) findUntil(checks int, set storequery.SpanSet, want []tracestore.Result) (ended bool) {
	s.Helper()
	inner, cancel := context.WithCancel(s.ctx)
	defer cancel()
	ctx := &endingContext{inner, cancel, checks}
	res, err := s.plan(ctx, s.store, tracestore.Query{}, set, tracestore.WantIDs)
	var got []tracestore.Result
	if err == nil {
		for r, e := range res.All {
			if err = e; err == nil {
				got = append(got, r)
			}
		}
	}
	what := describeSet(tracestore.Query{}, set)
	switch {
	case err != nil && !errors.Is(err, context.Canceled):
		s.Errorf("Find(%s): error %v, want context.Canceled", what, err)
	case err == nil && res.Outcome().Complete():
		s.sameResults(what, got, want)
	}
	return inner.Err() != nil
}
