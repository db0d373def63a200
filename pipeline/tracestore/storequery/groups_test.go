package storequery

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// describeGroups returns each group as "values: spans/errors".
func describeGroups(g *tracestore.Groups, fields int) string {
	var lines []string
	for i := range g.Groups {
		var values []string
		for _, v := range g.Groups[i].Values[:fields] {
			text := v.Text
			if !v.Present {
				text = "-"
			}
			values = append(values, text)
		}
		lines = append(lines, fmt.Sprintf("%s: %d/%d", strings.Join(values, ","), g.Groups[i].Durations.Count(), g.Groups[i].Errors))
	}
	return strings.Join(lines, "; ")
}

// GroupQuery.All requests all groups.
func TestAllGroups(t *testing.T) {
	c := NewGroupCounter(tracestore.Query{}, tracestore.GroupQuery{By: []tracestore.Field{{Place: tracestore.Name}}, Limit: 1, All: true})
	var one tracestore.Histogram
	one.Observe(1)
	for i := range 3 {
		c.AddGroup(&tracestore.Group{Values: GroupKey{{Text: fmt.Sprint(i), Present: true}}, Errors: 1, Durations: one})
	}
	if g := c.Answer(1); len(g.Groups) != 3 || g.Distinct != 3 {
		t.Errorf("%+v", g)
	}
}

// Whole traces are grouped by their root, and by each of their services.
func TestGroupsOfTraces(t *testing.T) {
	for _, c := range []struct {
		by   []tracestore.Place
		want string
	}{
		{[]tracestore.Place{tracestore.RootService}, "web: 2/1; cron: 1/0"},
		{[]tracestore.Place{tracestore.Service}, "web: 2/1; cron: 1/0; db: 1/1"},
		{[]tracestore.Place{tracestore.RootName, tracestore.Service}, "GET /,web: 2/1; GET /,db: 1/1; tick,cron: 1/0"},
		{[]tracestore.Place{tracestore.Kind}, "-: 3/1"},
	} {
		q := tracestore.GroupQuery{Limit: 10}
		for _, p := range c.by {
			q.By = append(q.By, tracestore.Field{Place: p})
		}
		counter := NewGroupCounter(tracestore.Query{}, q)
		for _, s := range []tracestore.Summary{
			{RootService: "web", RootName: "GET /", Start: 1, End: 10, Services: []tracestore.ServiceSummary{{Name: "web"}}},
			{RootService: "web", RootName: "GET /", Start: 1, End: 20, Errors: 1,
				Services: []tracestore.ServiceSummary{{Name: "db"}, {Name: "web"}}},
			{RootService: "cron", RootName: "tick", Start: 5, End: 6, Services: []tracestore.ServiceSummary{{Name: "cron"}}},
		} {
			counter.addTrace(&s, s.Start)
		}
		if got := describeGroups(counter.Answer(1), len(c.by)); got != c.want {
			t.Errorf("by %v: %s, want %s", c.by, got, c.want)
		}
	}
}

// A span with several values counts once in each combination, of a limited number of values.
func TestGroupsOfSeveralValues(t *testing.T) {
	span := &otlpdata.Span{Name: "op", Start: 1, End: 3}
	for i := range MaxGroupValues + 4 {
		span.Attributes = append(span.Attributes, otlpdata.KeyValue{Key: "a", Value: otlpdata.StringValue(fmt.Sprint(i))},
			otlpdata.KeyValue{Key: "a", Value: otlpdata.StringValue("0")})
	}
	span.Attributes = append(span.Attributes, otlpdata.KeyValue{Key: "b", Value: otlpdata.StringValue("x")},
		otlpdata.KeyValue{Key: "b", Value: otlpdata.StringValue("y")})
	field := func(key string) tracestore.Field { return tracestore.Field{Place: tracestore.SpanAttribute, Key: key} }
	by := []tracestore.Field{field("a"), field("b")}
	c := NewGroupCounter(tracestore.Query{}, tracestore.GroupQuery{By: by, Limit: tracestore.MaxGroups})
	c.AddSpan(tracestore.Span{Span: span, Resource: &otlpdata.Resource{}, Scope: &otlpdata.Scope{}})
	got := c.Answer(1)
	if got.Distinct != 2*MaxGroupValues || got.All.Durations.Count() != 1 || got.Groups[0].Durations.Sum != 2 {
		t.Errorf("%+v", got)
	}
}

// A span with many combinations of values counts in a limited number of groups.
func TestGroupCombinations(t *testing.T) {
	span, all := &otlpdata.Span{Name: "op", Start: 1, End: 3}, uint64(1)
	var by []tracestore.Field
	for i := range tracestore.MaxGroupFields {
		key := fmt.Sprint("k", i)
		by, all = append(by, spanKey(key)), all*MaxGroupValues
		for v := range MaxGroupValues {
			span.Attributes = append(span.Attributes, otlpdata.KeyValue{Key: key, Value: otlpdata.StringValue(fmt.Sprint(v))})
		}
	}
	c := NewGroupCounter(tracestore.Query{}, tracestore.GroupQuery{By: by, Limit: tracestore.MaxGroups})
	c.AddSpan(tracestore.Span{Span: span, Resource: &otlpdata.Resource{}, Scope: &otlpdata.Scope{}})
	got := c.Answer(1)
	if got.Distinct != MaxGroupCombinations || got.Other != all-MaxGroupCombinations || got.All.Durations.Count() != 1 {
		t.Errorf("%d groups, %d others, %d spans", got.Distinct, got.Other, got.All.Durations.Count())
	}
	if last := got.Groups[len(got.Groups)-1].Values; last[0].Text != "0" || last[tracestore.MaxGroupFields-1].Text == "0" {
		t.Errorf("last group is %v", last)
	}
}

// Without memory, further groups are counted together, and the result says so.
func TestGroupMemory(t *testing.T) {
	field := tracestore.Field{Place: tracestore.Name}
	a, err := NewAggregateCounter(tracestore.Query{}, tracestore.Aggregation{
		Groups: tracestore.GroupQuery{By: []tracestore.Field{field}, Limit: tracestore.MaxGroups}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := tracestore.WithAccount(t.Context(), &smallAccount{left: 1 << 17})
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	a.ChargeTo(memory)
	const spans = 2000
	for i := range spans {
		a.AddSpan(tracestore.Span{Span: &otlpdata.Span{Name: fmt.Sprint("op ", i), Start: 1, End: 2}, Resource: &otlpdata.Resource{}})
	}
	got := a.Answer(1)
	if !slices.Equal(got.Reasons, tracestore.Reasons{ReasonGroupMemory}) || got.Groups.Other == 0 ||
		got.Groups.Other+uint64(got.Groups.Distinct) != spans {
		t.Errorf("%d groups, %d other spans, %q", got.Groups.Distinct, got.Groups.Other, got.Text())
	}
}

// An unused counter releases its memory, even if it did not get all it needed.
func TestGroupMemoryIsReleased(t *testing.T) {
	memory, err := tracestore.Reserve(tracestore.WithAccount(t.Context(), &smallAccount{left: 1 << 18}), 1000)
	if err != nil {
		t.Fatal(err)
	}
	c := NewGroupCounter(tracestore.Query{}, tracestore.GroupQuery{By: []tracestore.Field{{Place: tracestore.Name}}, Limit: 1})
	c.ChargeTo(memory)
	for i := range uint64(2000) {
		span := &otlpdata.Span{Name: fmt.Sprint("op ", i%500), Start: 1, End: 2 + i*i*i}
		c.AddSpan(tracestore.Span{Span: span, Resource: &otlpdata.Resource{}})
	}
	if !c.OutOfMemory() || memory.Held() <= 1000 {
		t.Fatalf("out of memory: %t, %d bytes", c.OutOfMemory(), memory.Held())
	}
	if c.Release(); memory.Held() != 1000 {
		t.Errorf("%d bytes are left, want the 1000 of others", memory.Held())
	}
}

// Add counts what Append has appended, like Merge.
func TestAppendedGroups(t *testing.T) {
	q := tracestore.GroupQuery{By: []tracestore.Field{{Place: tracestore.Name}, spanKey("k")}, Limit: 10}
	one, got, want := NewGroupCounter(tracestore.Query{}, q), NewGroupCounter(tracestore.Query{}, q), NewGroupCounter(tracestore.Query{}, q)
	for i := range uint64(2000) {
		span := &otlpdata.Span{Name: fmt.Sprint("op ", i%7), End: i * i * i}
		if i%3 == 0 {
			span.Attributes, span.StatusCode = []otlpdata.KeyValue{{Key: "k"}}, otlpdata.StatusError
		}
		one.AddSpan(tracestore.Span{Span: span, Resource: &otlpdata.Resource{}})
	}
	one.AddOther(3)
	for range 2 {
		got.Add(string(one.Append(nil)))
		want.Merge(one)
	}
	if got, want := got.Answer(1), want.Answer(1); !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

// Counters of parts together use as much memory as one for all.
func TestDividedMemory(t *testing.T) {
	const texts, parts = 4000, 2000
	facets, groups := NewFacetCounter(tracestore.FacetQuery{Values: 1, Fields: []tracestore.Field{{Place: tracestore.Name}}}),
		NewGroupCounter(tracestore.Query{}, tracestore.GroupQuery{By: []tracestore.Field{{Place: tracestore.Name}}, Limit: 1})
	facets.DivideMemory(parts)
	groups.DivideMemory(parts)
	for i := range texts {
		s := tracestore.Span{Span: &otlpdata.Span{Name: fmt.Sprint("op ", i), Start: 1, End: 2}, Resource: &otlpdata.Resource{}}
		facets.AddSpan(s, false)
		groups.AddSpan(s)
	}
	if facets.memory > MaxFacetMemory/parts || groups.memory > MaxGroupMemory/parts+bucketOverhead {
		t.Errorf("facets use %d bytes, groups %d", facets.memory, groups.memory)
	}
	if f, g := facets.Answer(1).Facets[0], groups.Answer(1); f.Other == 0 || g.Other == 0 || uint64(g.Distinct)+g.Other != texts {
		t.Errorf("%d values and %d others, %d groups and %d others", f.Distinct, f.Other, g.Distinct, g.Other)
	}
}

// smallAccount grants a number of bytes.
type smallAccount struct{ left int64 }

func (a *smallAccount) Grow(n int64) error {
	if n > a.left {
		return errors.New("no memory")
	}
	a.left -= n
	return nil
}

func (a *smallAccount) Shrink(n int64) { a.left += n }
