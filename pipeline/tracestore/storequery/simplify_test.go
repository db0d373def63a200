package storequery

import (
	"context"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// randomExpr returns a random condition on names and root names of one letter.
func randomExpr(r *rand.Rand, depth int) tracestore.Expr {
	parts := func() (out []tracestore.Expr) {
		for range r.IntN(3) {
			out = append(out, randomExpr(r, depth-1))
		}
		return out
	}
	switch n := r.IntN(8); {
	case depth == 0 || n < 3:
		place := [...]tracestore.Place{tracestore.Name, tracestore.RootName}[r.IntN(2)]
		return equals(place, [...]string{"a", "b"}[r.IntN(2)])
	case n < 4:
		return nil
	case n < 5:
		return tracestore.Not{Expr: randomExpr(r, depth-1)}
	case n < 6:
		return tracestore.Or(parts())
	default:
		return tracestore.And(parts())
	}
}

// TestRewrittenConditions checks that rewritten conditions hold for the same spans, and weakened
// ones for at least these.
func TestRewrittenConditions(t *testing.T) {
	seed := soak.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		e := randomExpr(r, 4)
		weak := weaken(e)
		if _, trace := PlacesOf(weak); trace {
			t.Fatalf("seed %d: %#v is weakened to %#v", seed, e, weak)
		}
		ofTrace := weakenToTrace(e)
		if span, _ := PlacesOf(ofTrace); span {
			t.Fatalf("seed %d: %#v is weakened to %#v", seed, e, ofTrace)
		}
		span, trace, mixed := splitTrace(e)
		if s, t2 := PlacesOf(trace); s || t2 && trace == nil {
			t.Fatalf("seed %d: %#v: %#v is the part on the trace", seed, e, trace)
		}
		if _, t2 := PlacesOf(span); t2 {
			t.Fatalf("seed %d: %#v: %#v is the part on the span", seed, e, span)
		}
		for _, s := range letterSpans() {
			holds := tracestore.Match(e, s)
			if tracestore.Match(simplify(e), s) != holds {
				t.Fatalf("seed %d: %#v is simplified to %#v", seed, e, simplify(e))
			}
			if holds && !(tracestore.Match(weak, s) && tracestore.Match(ofTrace, s)) {
				t.Fatalf("seed %d: %#v is weakened to %#v and %#v", seed, e, weak, ofTrace)
			}
			if !mixed && (tracestore.Match(span, s) && tracestore.Match(trace, s)) != holds {
				t.Fatalf("seed %d: %#v is split into %#v and %#v", seed, e, span, trace)
			}
		}
	}
}

// letterSpans returns spans for each combination of values that randomExpr distinguishes.
func letterSpans() (out []tracestore.Span) {
	for _, name := range []string{"a", "b", "c"} {
		for _, root := range []string{"a", "b", "c"} {
			span, trace := &otlpdata.Span{Name: name}, &tracestore.Summary{RootName: root}
			out = append(out, tracestore.Span{Span: span, Resource: &otlpdata.Resource{}, Trace: trace})
		}
	}
	return out
}

func TestCover(t *testing.T) {
	duration := tracestore.Field{Place: tracestore.TraceDuration}
	long := Select{tracestore.Cond{Field: duration, Op: tracestore.Gt, Value: tracestore.Number(5)}}
	a, b := namedSpans("a"), namedSpans("b")
	for _, c := range []struct {
		set  SpanSet
		want []string // names of spans that may be selected
	}{
		{a, []string{"a"}},
		{And{a, b}, []string{"a", "b"}},
		{Or{a, And{b, a}}, []string{"a", "b"}},
		{Relation{Left: a, Right: b}, []string{"b"}},
		{Relation{Left: b, Right: Relation{Left: b, Right: a}}, []string{"a"}},
		{long, []string{"a", "b", "c"}},
		{Select{tracestore.Not{Expr: long.Where}}, []string{"a", "b", "c"}},
		{Select{tracestore.And{a.Where, tracestore.Not{Expr: long.Where}}}, []string{"a"}},
		{Select{tracestore.Or{a.Where, tracestore.And{b.Where, long.Where}}}, []string{"a", "b"}},
		{Select{tracestore.And{a.Where, b.Where}}, nil},
		{nil, []string{"a", "b", "c"}},
	} {
		var got []string
		for _, s := range letterSpans() {
			if s.Trace.RootName == "a" && tracestore.Match(cover(simplifySet(c.set)), s) {
				got = append(got, s.Name)
			}
		}
		// The names are not compared: cover need not detect that a and b exclude each other.
		if len(got) != len(c.want) {
			t.Errorf("%#v: %q may be selected, want %q", c.set, got, c.want)
		}
	}
}

// TestCoverTrace checks that the condition on traces that a set implies is neither too strong nor
// missing.
func TestCoverTrace(t *testing.T) {
	rooted := func(names ...string) (set Select) {
		var any tracestore.Or
		for _, name := range names {
			any = append(any, equals(tracestore.RootName, name))
		}
		return Select{any}
	}
	a, ab, bc := namedSpans("a"), rooted("a", "b"), rooted("b", "c")
	for _, c := range []struct {
		set  SpanSet
		want string // root names of the traces that may match
	}{
		{nil, "abc"},
		{a, "abc"},
		{ab, "ab"},
		{And{ab, a}, "ab"},
		{And{ab, bc}, "b"},
		{Or{ab, bc}, "abc"},
		{Or{ab, And{ab, bc}}, "ab"},
		{Or{ab, a}, "abc"},
		{Relation{Left: ab, Right: a}, "ab"},
		{Relation{Kind: Child, Left: a, Right: Relation{Left: bc, Right: ab}}, "b"},
		{Select{tracestore.Or{ab.Where, a.Where}}, "abc"},
		{Select{tracestore.Or{tracestore.And{ab.Where, a.Where}, tracestore.Not{Expr: bc.Where}}}, "ab"},
	} {
		got := ""
		for _, name := range []string{"a", "b", "c"} {
			if tracestore.Match(coverTrace(simplifySet(c.set)), tracestore.Span{Trace: &tracestore.Summary{RootName: name}}) {
				got += name
			}
		}
		if got != c.want {
			t.Errorf("%#v: traces %q may match, want %q", c.set, got, c.want)
		}
	}
}

// TestOfTrace checks which condition on the trace each kind of search passes to the store.
func TestOfTrace(t *testing.T) {
	long := tracestore.Cond{Field: tracestore.Field{Place: tracestore.TraceDuration}, Op: tracestore.Gt, Value: tracestore.Number(5)}
	a := namedSpans("a").Where
	for _, c := range []struct {
		set  SpanSet
		want tracestore.Expr
	}{
		{Select{a}, nil},
		{Select{long}, long},
		{Select{tracestore.And{a, long}}, long},
		{And{Select{long}, Select{a}}, long},
		{Relation{Left: Select{tracestore.And{a, long}}, Right: Select{a}}, long},
		{Select{tracestore.Or{a, long}}, nil},
	} {
		r := &queryRecorder{}
		if _, err := Find(t.Context(), r, tracestore.Query{}, c.set, tracestore.WantIDs); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(r.query.OfTrace, c.want) {
			t.Errorf("%#v: the store gets %#v, want %#v", c.set, r.query.OfTrace, c.want)
		}
	}
}

// queryRecorder is a store that records the last query of Find.
type queryRecorder struct {
	tracestore.Reader
	query tracestore.Query
}

func (r *queryRecorder) Find(_ context.Context, q tracestore.Query, _ tracestore.Want) (*tracestore.Results, error) {
	r.query = q
	return &tracestore.Results{}, nil
}
