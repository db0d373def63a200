package aggregates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// span returns an attribute of spans with several names, the newest first.
func span(key string, names ...string) tracestore.Field {
	return tracestore.Field{Place: tracestore.SpanAttribute, Key: key, Names: tracestore.JoinNames(names...)}
}

// sampledStore has spans with two values of each key. A quarter of them has the value a, the others
// have z. It examines a share of them that depends on the number of conditions.
type sampledStore struct {
	spans  map[string]uint64 // by key
	shares []float64
	asked  []string
	calls  int
}

func (s *sampledStore) Aggregate(_ context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	if err := a.Check(q); err != nil {
		return tracestore.Aggregate{}, err
	}
	where, _ := q.Where.(tracestore.And)
	share := s.shares[len(where)]
	out := &tracestore.Facets{Spans: 1000, Share: share}
	s.asked = append(s.asked, fmt.Sprintf("%d conditions, budget %d", len(where), q.Budget.Spans))
	s.calls++
	for _, f := range a.Facets.Fields {
		n := uint64(float64(s.spans[f.Key]) * share)
		facet := tracestore.Facet{Field: f, Spans: n}
		if n > 0 {
			facet.Values, facet.Distinct = []tracestore.FacetValue{{Text: "z", Count: n - n/4}, {Text: "a", Count: n / 4}}, 2
		}
		out.Facets = append(out.Facets, facet)
		s.asked = append(s.asked, f.Key)
	}
	return tracestore.Aggregate{Facets: out, Share: share, Scanned: 7}, nil
}

// TestSamplesOfNames checks the counts of names in samples with different shares of the spans: they
// are reduced to the share of the result.
func TestSamplesOfNames(t *testing.T) {
	const all, part = "0 conditions, budget 301", "1 conditions, budget 150"
	for _, c := range []struct {
		spans map[string]uint64
		field tracestore.Field
		asked []string
		want  uint64 // in a fifth of the spans
	}{
		{map[string]uint64{"new": 400, "old": 200}, span("old", "new", "old"), []string{all, "new", "old", part, "new", part, "old"}, 120},
		{map[string]uint64{"old": 200}, span("new", "new", "old"), []string{all, "new", "old"}, 40},
		{nil, span("old", "new", "old"), []string{all, "new", "old"}, 0},
	} {
		store := &sampledStore{spans: c.spans, shares: []float64{0.2, 0.5}}
		got, err := Aggregate(t.Context(), store, tracestore.Query{Budget: tracestore.Budget{Spans: 301}}, tracestore.Aggregation{
			Facets: tracestore.FacetQuery{Values: 5, Fields: []tracestore.Field{c.field}}})
		if err != nil || len(got.Facets.Facets) != 1 {
			t.Fatal(got, err)
		}
		f := got.Facets.Facets[0]
		var values []tracestore.FacetValue
		if c.want > 0 {
			values = []tracestore.FacetValue{{Text: "z", Count: c.want - c.want/4}, {Text: "a", Count: c.want / 4}}
		}
		if f.Field != c.field || f.Spans != c.want || !slices.Equal(f.Values, values) || !slices.Equal(store.asked, c.asked) {
			t.Errorf("%v: %+v, asked %q", c.spans, f, store.asked)
		}
		if want := 7 * store.calls; got.Scanned != want {
			t.Errorf("%v: %d spans examined, want %d", c.spans, got.Scanned, want)
		}
	}
}

// full is an account that refuses all memory.
type full struct{}

var errFull = errors.New("no memory")

func (full) Grow(int64) error { return errFull }

func (full) Shrink(int64) {}

// TestMemoryOfParts checks that the next part is requested only if there is memory for the results
// so far.
func TestMemoryOfParts(t *testing.T) {
	store := &sampledStore{spans: map[string]uint64{"new": 400, "old": 200}, shares: []float64{1, 1}}
	_, err := Aggregate(tracestore.WithAccount(t.Context(), full{}), store, tracestore.Query{}, tracestore.Aggregation{
		Facets: tracestore.FacetQuery{Values: 5, Fields: []tracestore.Field{span("old", "new", "old")}}})
	if !errors.Is(err, errFull) || store.calls != 2 { // all spans and the first part
		t.Errorf("%d calls, %v", store.calls, err)
	}
}

// TestFacetsOfManyNames checks that facets may have more names than a store counts in one call.
func TestFacetsOfManyNames(t *testing.T) {
	store := &sampledStore{spans: make(map[string]uint64), shares: []float64{0.5}}
	var fields []tracestore.Field
	for i := range tracestore.MaxFacets {
		names := []string{fmt.Sprint("new ", i), fmt.Sprint("middle ", i), fmt.Sprint("old ", i)}
		fields = append(fields, span(names[0], names...))
		store.spans[names[i%3]] = uint64(2 * i)
	}
	got, err := Aggregate(t.Context(), store, tracestore.Query{}, tracestore.Aggregation{
		Facets: tracestore.FacetQuery{Values: 5, Fields: fields}})
	if err != nil || len(got.Facets.Facets) != len(fields) || store.calls != 3 || got.Scanned != 21 {
		t.Fatalf("%d calls: %+v, %v", store.calls, got, err)
	}
	for i, f := range got.Facets.Facets {
		if f.Field != fields[i] || f.Spans != uint64(i) {
			t.Errorf("%d: %+v", i, f)
		}
	}
}

// TestAllFacetsWithNames checks that names of groups do not replace a request for all facets.
func TestAllFacetsWithNames(t *testing.T) {
	_, err := Aggregate(t.Context(), &sampledStore{}, tracestore.Query{}, tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 1},
		Groups: tracestore.GroupQuery{By: []tracestore.Field{span("old", "new", "old")}, Limit: 1}})
	if !errors.Is(err, errAllFacets) {
		t.Error(err)
	}
}

// TestManyNames checks that groups by fields with very many combinations of names are refused.
func TestManyNames(t *testing.T) {
	store := &sampledStore{spans: make(map[string]uint64), shares: []float64{1}}
	var by []tracestore.Field
	for i := range 3 {
		var names []string
		for j := range 5 {
			names = append(names, fmt.Sprint(i, j))
			store.spans[names[j]] = 1
		}
		by = append(by, span(names[0], names...))
	}
	_, err := Aggregate(t.Context(), store, tracestore.Query{}, tracestore.Aggregation{Groups: tracestore.GroupQuery{By: by, Limit: 1}})
	if !errors.Is(err, errManyNames) {
		t.Error(err)
	}
}

// TestJoinFacets checks which facets of a list are joined, and their names.
func TestJoinFacets(t *testing.T) {
	names := func(key string) string {
		switch key {
		case "a.new", "a.old":
			return tracestore.JoinNames("a.new", "a.old")
		case "b.new", "b.middle", "b.old":
			return tracestore.JoinNames("b.new", "b.middle", "b.old")
		}
		return ""
	}
	for omitted, want := range [][]tracestore.Field{
		{span("b.middle", "b.new", "b.middle", "b.old"), {Place: tracestore.Name}, span("a.old", "a.new", "a.old")},
		{span("b.middle", "b.new", "b.middle", "b.old"), span("a.old", "a.new", "a.old"), {Place: tracestore.Name}},
	} {
		found := &tracestore.Facets{Share: 1, Omitted: omitted, Facets: []tracestore.Facet{
			{Field: span("b.old"), Spans: 60}, {Field: tracestore.Field{Place: tracestore.Name}, Spans: 50},
			{Field: span("b.middle"), Spans: 40}, {Field: span("a.old"), Spans: 30},
		}}
		var counted []tracestore.Field
		err := JoinFacets(found, tracestore.FacetQuery{Values: 1}, names, func(q tracestore.FacetQuery) (*tracestore.Facets, error) {
			out := &tracestore.Facets{Share: 1}
			for i, f := range q.Fields {
				out.Facets = append(out.Facets, tracestore.Facet{Field: f, Spans: uint64(100 - i)})
			}
			counted = q.Fields
			return out, nil
		})
		var got []tracestore.Field
		for _, f := range found.Facets {
			got = append(got, f.Field)
		}
		if err != nil || !slices.Equal(got, want) || len(counted) != 1+omitted {
			t.Errorf("%d omitted: %+v, counted %+v, %v", omitted, got, counted, err)
		}
	}
}

// faultyStore returns less than was requested from its n-th call on.
type faultyStore struct{ n int }

func (f *faultyStore) Aggregate(_ context.Context, _ tracestore.Query, a tracestore.Aggregation) (out tracestore.Aggregate, _ error) {
	if f.n--; f.n <= 0 {
		return out, nil
	}
	out.Facets, out.Groups = &tracestore.Facets{Share: 1}, &tracestore.Groups{}
	for _, field := range a.Facets.Fields {
		out.Facets.Facets = append(out.Facets.Facets, tracestore.Facet{Field: field, Spans: 1})
	}
	return out, nil
}

// Responses that lack facets or groups are errors.
func TestFaultyStore(t *testing.T) {
	f := span("new", "new", "old")
	for _, a := range []tracestore.Aggregation{
		{Facets: tracestore.FacetQuery{Values: 3, Fields: []tracestore.Field{f}}},
		{Groups: tracestore.GroupQuery{Limit: 1, By: []tracestore.Field{f}}},
	} {
		for calls := 1; calls < 4; calls++ {
			q := tracestore.Query{From: time.Unix(1, 0), To: time.Unix(2, 0)}
			if _, err := Aggregate(t.Context(), &faultyStore{calls}, q, a); !errors.Is(err, errLacks) {
				t.Errorf("%+v, fault in call %d: %v", a, calls, err)
			}
		}
	}
}
