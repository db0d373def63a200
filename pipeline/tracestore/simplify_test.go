package tracestore

import (
	"math/rand/v2"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// randomExpr returns an expression on names and root names of one letter.
func randomExpr(r *rand.Rand, depth int) Expr {
	parts := func() (out []Expr) {
		for range r.IntN(3) {
			out = append(out, randomExpr(r, depth-1))
		}
		return out
	}
	switch n := r.IntN(8); {
	case depth == 0 || n < 3:
		return Cond{Field: Field{Place: [...]Place{Name, RootName}[r.IntN(2)]}, Value: Text([...]string{"a", "b"}[r.IntN(2)])}
	case n < 4:
		return nil
	case n < 5:
		return Not{randomExpr(r, depth-1)}
	case n < 6:
		return Or(parts())
	default:
		return And(parts())
	}
}

// TestRewrittenConditions: what is made of a condition holds on the same spans, or on more where it says so.
func TestRewrittenConditions(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		e := randomExpr(r, 4)
		weak := weaken(e)
		if _, trace := placesOf(weak); trace {
			t.Fatalf("seed %d: %#v is weakened to %#v", seed, e, weak)
		}
		span, trace, mixed := splitTrace(e)
		if s, t2 := placesOf(trace); s || t2 && trace == nil {
			t.Fatalf("seed %d: %#v: %#v is the part on the trace", seed, e, trace)
		}
		if _, t2 := placesOf(span); t2 {
			t.Fatalf("seed %d: %#v: %#v is the part on the span", seed, e, span)
		}
		for _, s := range letterSpans() {
			holds := Match(e, s)
			if Match(simplify(e), s) != holds {
				t.Fatalf("seed %d: %#v is simplified to %#v", seed, e, simplify(e))
			}
			if holds && !Match(weak, s) {
				t.Fatalf("seed %d: %#v is weakened to %#v", seed, e, weak)
			}
			if !mixed && (Match(span, s) && Match(trace, s)) != holds {
				t.Fatalf("seed %d: %#v is split into %#v and %#v", seed, e, span, trace)
			}
		}
	}
}

// letterSpans are the spans that differ for randomExpr.
func letterSpans() (out []Span) {
	for _, name := range []string{"a", "b", "c"} {
		for _, root := range []string{"a", "b", "c"} {
			out = append(out, Span{Span: &otlpdata.Span{Name: name}, Resource: &otlpdata.Resource{}, Trace: &Summary{RootName: root}})
		}
	}
	return out
}

func TestCover(t *testing.T) {
	name := func(s string) Select { return Select{Cond{Field: Field{Place: Name}, Value: Text(s)}} }
	long := Select{Cond{Field: Field{Place: TraceDuration}, Op: Gt, Value: Number(5)}}
	a, b := name("a"), name("b")
	for _, c := range []struct {
		set  SpanSet
		want []string // names of spans that may be chosen
	}{
		{a, []string{"a"}},
		{Both{a, b}, []string{"a", "b"}},
		{Either{a, Both{b, a}}, []string{"a", "b"}},
		{Below{Above: a, Spans: b}, []string{"b"}},
		{Below{Above: b, Spans: Below{Above: b, Spans: a}}, []string{"a"}},
		{long, []string{"a", "b", "c"}},
		{Select{Not{long.Where}}, []string{"a", "b", "c"}},
		{Select{And{a.Where, Not{long.Where}}}, []string{"a"}},
		{Select{Or{a.Where, And{b.Where, long.Where}}}, []string{"a", "b"}},
		{Select{And{a.Where, b.Where}}, nil},
		{nil, []string{"a", "b", "c"}},
	} {
		var got []string
		for _, s := range letterSpans() {
			if s.Trace.RootName == "a" && Match(cover(simplifySet(c.set)), s) {
				got = append(got, s.Name)
			}
		}
		// The condition on names of And{a, b} is not seen through, and need not be.
		if len(got) != len(c.want) {
			t.Errorf("%#v: %q may be chosen, want %q", c.set, got, c.want)
		}
	}
}
