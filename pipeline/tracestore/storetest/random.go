package storetest

import (
	"math/rand/v2"
	"regexp"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// seedVariable is the environment variable with the seed of random checks.
const seedVariable = soak.SeedVariable

// checkRandom alternates between random requests and random queries. There are few distinct values,
// so that conditions hold often, traces consist of several requests, and many starts are equal.
func checkRandom(s *suite) {
	seed := randomSeed(s)
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	var last *otlpdata.Batch
	for range rounds(8, 4) {
		for range 5 {
			b := s.encode(g.tenant(), g.request())
			if last != nil && last.Meta().Tenant == b.Meta().Tenant && g.IntN(3) == 0 {
				joined, err := otlpdata.Concat(last, b)
				if err != nil {
					s.Fatalf("Concat: %v", err)
				}
				b = joined // resends the spans of last
			}
			s.consume(b)
			last = b
		}
		for range 15 {
			s.checkRandomQuery(&g)
		}
		if s.Failed() {
			s.Fatalf("failed with %s=%d", seedVariable, seed)
		}
	}
	for _, tenant := range tenants() {
		s.checkCatalogOf(tenant)
		for id := range s.sent.tenant(tenant).traces {
			s.checkTraces(tenant, id)
		}
	}
}

// randomSeed returns and logs the seed of a run.
func randomSeed(s *suite) uint64 {
	s.Helper()
	return soak.Seed(s)
}

// rounds returns the number of rounds of a random check: normal, or short with -short. TRACING_SOAK
// does not multiply it, because the time of a round grows with the number of rounds; `make soak`
// repeats the checks with other seeds.
func rounds(normal, short int) int {
	if testing.Short() {
		return short
	}
	return normal
}

// checkRandomQuery compares the results of a random query, sometimes in pages.
func (s *suite) checkRandomQuery(g *generator) {
	s.Helper()
	q := tracestore.Query{Tenant: g.tenant(), Where: g.expr(3)}
	if g.IntN(2) == 0 {
		q.From = at(base + g.Uint64N(randomTimes))
	}
	if g.IntN(2) == 0 {
		q.To = at(base + g.Uint64N(randomTimes))
	}
	if g.IntN(3) == 0 {
		s.comparePages(q, 1+g.IntN(9))
		return
	}
	if g.IntN(3) == 0 {
		q.After = tracestore.Cursor{Start: base + g.Uint64N(randomTimes), ID: traceID(g.Uint64N(randomTraces)), Set: true}
	}
	q.Limit = g.IntN(12)
	s.checkFind(q, tracestore.Want(g.IntN(3)))
}

const (
	randomTraces = 25
	randomTimes  = 40 // nanoseconds
)

func tenants() []string { return []string{"", "a"} }

type generator struct{ *rand.Rand }

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

func (g *generator) tenant() string { return pick(g, tenants()...) }

func (g *generator) key() string { return pick(g, "k", "l", "m", "service.name") }

func (g *generator) text() string {
	return pick(g, "", "a", "b", "true", "0", "-1", "2.5", "200", "cart", "error", "unset", "client", "op", "ü", "[1]", "AA==")
}

func (g *generator) request() ptrace.Traces {
	td := ptrace.NewTraces()
	for range 1 + g.IntN(3) {
		rs := td.ResourceSpans().AppendEmpty()
		g.attributes(rs.Resource().Attributes())
		if g.IntN(4) > 0 {
			rs.Resource().Attributes().PutStr("service.name", g.text())
		}
		for range 1 + g.IntN(2) {
			ss := rs.ScopeSpans().AppendEmpty()
			ss.Scope().SetName(g.text())
			ss.Scope().SetVersion(g.text())
			g.attributes(ss.Scope().Attributes())
			for range g.IntN(6) {
				g.span(&request{td, ss})
			}
		}
	}
	return td
}

func (g *generator) span(r *request) {
	s := r.span(g.Uint64N(randomTraces), g.Uint64N(50), g.text(), base+g.Uint64N(randomTimes))
	s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(g.IntN(5)))
	if g.IntN(2) == 0 {
		s.SetParentSpanID(pcommon.SpanID(spanID(g.Uint64N(50))))
	}
	s.SetKind(ptrace.SpanKind(g.IntN(7)))
	s.Status().SetCode(ptrace.StatusCode(g.IntN(4)))
	s.Status().SetMessage(g.text())
	s.TraceState().FromRaw(pick(g, tracestates()...))
	g.attributes(s.Attributes())
	for range g.IntN(3) {
		e := s.Events().AppendEmpty()
		e.SetName(g.text())
		g.attributes(e.Attributes())
		g.attributes(s.Links().AppendEmpty().Attributes())
	}
}

func (g *generator) attributes(m pcommon.Map) {
	for range g.IntN(4) {
		v := m.PutEmpty(g.key())
		switch g.IntN(8) {
		case 0:
			v.SetBool(g.IntN(2) == 0)
		case 1:
			v.SetInt(int64(g.IntN(4) - 1))
		case 2:
			v.SetDouble(pick(g, 0, -1, 2.5, 200))
		case 3:
			v.SetEmptyBytes().FromRaw([]byte{0})
		case 4:
			g.array(v.SetEmptySlice())
		case 5: // empty value
		default:
			v.SetStr(g.text())
		}
	}
}

// array adds elements, now and then more than indexes and filters hold.
func (g *generator) array(list pcommon.Slice) {
	n := g.IntN(4)
	if g.IntN(20) == 0 {
		n += otlpdata.MaxIndexedElements
	}
	for range n {
		switch e := list.AppendEmpty(); g.IntN(9) {
		case 0:
			e.SetBool(g.IntN(2) == 0)
		case 1:
			e.SetInt(int64(g.IntN(4) - 1))
		case 2:
			e.SetDouble(pick(g, 0, -1, 2.5, 200))
		case 3:
			e.SetEmptyBytes().FromRaw([]byte{0})
		case 4:
			e.SetEmptySlice().AppendEmpty().SetStr(g.text())
		case 5: // empty value
		default:
			e.SetStr(g.text())
		}
	}
}

// expr returns a condition of at most the given depth, sometimes nil.
func (g *generator) expr(depth int) tracestore.Expr {
	if depth == 0 {
		return g.cond()
	}
	switch g.IntN(7) {
	case 0:
		return nil
	case 1:
		return tracestore.Not{Expr: g.expr(depth - 1)}
	case 2, 3:
		and := tracestore.And{}
		for range g.IntN(4) {
			and = append(and, g.expr(depth-1))
		}
		return and
	case 4:
		or := tracestore.Or{}
		for range g.IntN(4) {
			or = append(or, g.expr(depth-1))
		}
		return or
	}
	return g.cond()
}

func (g *generator) cond() tracestore.Cond { return g.condOn(false) }

func (g *generator) condOn(ofParent bool) tracestore.Cond {
	c := tracestore.Cond{Op: tracestore.Op(g.IntN(int(tracestore.Exists) + 1))}
	if g.IntN(2) == 0 {
		c.Op = tracestore.Eq // stores have indexes for it
	}
	c.Field.Place = tracestore.Place(g.IntN(len(tracestore.Places())))
	if c.Field.Key = g.key(); ofParent {
		c.Field.Place, c.Field.Parent = c.Field.Place%(tracestore.LinkAttribute+1), true
	}
	switch {
	case c.Op == tracestore.Like:
		c.Value = tracestore.Pattern(pick(g, regexp.MustCompile("a"), regexp.MustCompile("^$"), regexp.MustCompile("[0-9]$")))
	case c.Field.Place == tracestore.TraceDuration && g.IntN(4) > 0:
		c.Value = tracestore.Number(float64(g.Uint64N(randomTimes)))
	case g.IntN(3) == 0:
		c.Value = tracestore.Number(pick(g, 0, -1, 1, 2.5, 3, 30, 200))
	case c.Field.Place == tracestore.ParentID:
		c.Value = tracestore.Text(spanID(g.Uint64N(50)).String())
	default:
		c.Value = tracestore.Text(g.text())
	}
	if c.Field.Place.HasKey() && !c.Value.IsNumber && g.IntN(3) == 0 {
		if c.Value.Kind = otlpdata.ValueString; g.IntN(3) == 0 {
			c.Value = tracestore.Bool(g.IntN(2) == 0)
		}
	}
	return c
}
