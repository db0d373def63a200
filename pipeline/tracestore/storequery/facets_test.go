package storequery

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestFacetText checks that texts are cut between characters.
func TestFacetText(t *testing.T) {
	for _, c := range []struct {
		text string
		want int // bytes
	}{
		{"", 0}, {strings.Repeat("a", 256), 256}, {strings.Repeat("a", 257), 256},
		{strings.Repeat("ü", 128), 256}, {strings.Repeat("ü", 200), 256}, {"a" + strings.Repeat("ü", 200), 255},
		{"ab" + strings.Repeat("😀", 100), 254}, {"abc" + strings.Repeat("😀", 100), 255}, {strings.Repeat("\xbf", 300), 256},
	} {
		got := FacetText(c.text)
		if len(got) != c.want || !strings.HasPrefix(c.text, got) || utf8.ValidString(c.text) && !utf8.ValidString(got) {
			t.Errorf("%.8q of %d bytes was cut to %d bytes, want %d", c.text, len(c.text), len(got), c.want)
		}
	}
}

func TestFacetScore(t *testing.T) {
	for _, c := range []struct {
		count, selected, all, allSelected uint64
		want                              float64
	}{
		{5, 5, 10, 5, 1}, {5, 0, 10, 5, -1}, {10, 5, 10, 5, 0}, {3, 2, 10, 2, 1 - 1.0/8}, {3, 0, 10, 0, 0}, {3, 3, 10, 10, 0},
		{0, 0, 0, 0, 0},
	} {
		if got := FacetScore(c.count, c.selected, c.all, c.allSelected); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

// TestFacetCounterLimits checks the limits on keys, values and memory.
func TestFacetCounterLimits(t *testing.T) {
	c := NewFacetCounter(tracestore.FacetQuery{Values: 3})
	const long = 1 << 20
	counted := 0
	for i := range MaxFacetMemory/long + 10 {
		if c.Field(spanKey(strings.Repeat("k", long)+fmt.Sprint(i))) != nil {
			counted++
		}
	}
	if c.memory > MaxFacetMemory || counted < MaxFacetMemory/long-1 || counted > MaxFacetMemory/long {
		t.Errorf("%d long keys use %d bytes", counted, c.memory)
	}
	c = NewFacetCounter(tracestore.FacetQuery{Values: 3})
	for i := range MaxFacetKeys + 5 {
		if f := c.Field(resourceKey(fmt.Sprint(i))); f != nil {
			f.AddSpans(uint64(i), 0)
		}
	}
	if c.Field(resourceKey("1")) == nil {
		t.Error("a resource attribute is not counted")
	}
	for _, f := range []tracestore.Field{{Place: tracestore.ScopeAttribute, Key: "1"}, {Place: tracestore.Duration}} {
		if c.Field(f) != nil {
			t.Errorf("%+v is counted, but the query names no fields", f)
		}
	}
	const omitted = MaxFacetKeys - 1 - tracestore.MaxFacets
	if a := c.Answer(0.5); len(a.Facets) != tracestore.MaxFacets || a.Omitted != omitted || a.Facets[0].Spans != MaxFacetKeys-1 ||
		a.Share != 0.5 {
		t.Errorf("%d fields, %d omitted, %d spans with the first", len(a.Facets), a.Omitted, a.Facets[0].Spans)
	}
	c = NewFacetCounter(tracestore.FacetQuery{Values: 3, Fields: []tracestore.Field{{Place: tracestore.SpanAttribute, Key: "k"}}})
	f := c.Field(spanKey("k"))
	for i := range MaxFacetDistinct + 7 {
		f.AddValue(fmt.Sprint(i), 2, 0)
	}
	f.AddValue("123", 1, 0)
	a := c.Answer(1).Facets[0]
	want := []tracestore.FacetValue{{Text: "123", Count: 3}, {Text: "0", Count: 2}, {Text: "1", Count: 2}}
	if a.Distinct != MaxFacetDistinct || a.Other != 14 || !slices.Equal(a.Values, want) {
		t.Errorf("%d values, %d others, %+v", a.Distinct, a.Other, a.Values)
	}
}

// TestAllFacets checks that FacetQuery.All requests all keys and values.
func TestAllFacets(t *testing.T) {
	c := NewFacetCounter(tracestore.FacetQuery{Values: 1, All: true})
	c.AddTotal(1, 1)
	for i := range 2 * tracestore.MaxFacets {
		f := c.Field(spanKey(fmt.Sprint(i)))
		f.AddSpans(1, 1)
		f.AddValue("a", 1, 0)
		f.AddValue("b", 1, 1)
	}
	a := c.Answer(1)
	if len(a.Facets) != 2*tracestore.MaxFacets || a.Omitted != 0 {
		t.Fatalf("%d fields, %d omitted", len(a.Facets), a.Omitted)
	}
	for _, f := range a.Facets {
		slices.SortFunc(f.Values, func(a, b tracestore.FacetValue) int { return strings.Compare(a.Text, b.Text) })
		if want := []tracestore.FacetValue{{Text: "a", Count: 1}, {Text: "b", Count: 1, Selected: 1}}; !slices.Equal(f.Values, want) {
			t.Fatalf("%+v, want %+v", f.Values, want)
		}
	}
}

// TestAddAttributes checks that common attributes of spans count as if they were counted for each
// span.
func TestAddAttributes(t *testing.T) {
	kvs := func(texts ...string) (out []otlpdata.KeyValue) {
		for i := 0; i < len(texts); i += 2 {
			out = append(out, otlpdata.KeyValue{Key: texts[i], Value: otlpdata.StringValue(texts[i+1])})
		}
		return out
	}
	long := strings.Repeat("x", 300)
	once, each := NewFacetCounter(tracestore.FacetQuery{Values: 9}), NewFacetCounter(tracestore.FacetQuery{Values: 9})
	for i, list := range [][]otlpdata.KeyValue{
		kvs("k", "a", "k", "a", "k", "b", "l", long, "l", long+"y"), kvs("k", "a"), nil, kvs("k", "b", "m", ""),
	} {
		once.AddTotal(5, uint64(i))
		once.AddAttributes(tracestore.ResourceAttribute, list, 5, uint64(i))
		r := &otlpdata.Resource{Attributes: list, Service: "s"}
		for n := range 5 {
			each.AddSpan(tracestore.Span{Resource: r, Scope: &otlpdata.Scope{}, Span: &otlpdata.Span{}}, n < i)
		}
	}
	got, want := once.Answer(1), each.Answer(1)
	want.Facets = slices.DeleteFunc(want.Facets, func(f tracestore.Facet) bool { return f.Field.Place != tracestore.ResourceAttribute })
	if !reflect.DeepEqual(got, want) || len(got.Facets) != 3 {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

// TestAppendedFacets checks that Add counts what Append has appended, without the rare values of a
// field with too many.
func TestAppendedFacets(t *testing.T) {
	q := tracestore.FacetQuery{Values: 20}
	one, sum, want := NewFacetCounter(q), NewFacetCounter(q), NewFacetCounter(q)
	one.AddTotal(MaxFacetDistinct+7, 5)
	few, many := one.Field(resourceKey("few")), one.Field(spanKey("many"))
	few.AddSpans(9, 5)
	few.AddValue("", 4, 0)
	few.AddValue("b", 5, 5)
	for i := range MaxFacetDistinct + 7 {
		many.AddSpans(1, 0)
		many.AddValue(fmt.Sprint(i%(MaxFacetDistinct+2)), 1, 0)
	}
	const kept = 6
	b := string(one.Append(nil, kept))
	for range 2 {
		sum.Add(b)
		want.Merge(one)
	}
	got, all := sum.Answer(1), want.Answer(1)
	for i := range all.Facets {
		if f := &all.Facets[i]; f.Field == spanKey("many") {
			f.Values = f.Values[:kept]
			f.Other = f.Spans
			for _, v := range f.Values {
				f.Other -= v.Count
			}
		}
	}
	if !reflect.DeepEqual(got, all) {
		t.Errorf("\n got %+v\nwant %+v", got, all)
	}
	full := NewFacetCounter(q)
	full.limit = 0
	full.Add(b)
	if a := full.Answer(1); a.Spans != MaxFacetDistinct+7 || len(a.Facets) > 0 {
		t.Errorf("without memory: %+v", a)
	}
}
