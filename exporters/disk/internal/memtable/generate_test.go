package memtable

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// generator generates requests with all fields of OTLP.
type generator struct {
	*rand.Rand
	keys, names, services, traces int // number of distinct ones
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 5)), keys: 6, names: 5, services: 3, traces: 20}
}

func (g *generator) batch(tb testing.TB, tenant string, spans int) *otlpdata.Batch {
	tb.Helper()
	td := ptrace.NewTraces()
	for range 1 + g.IntN(3) {
		rs := td.ResourceSpans().AppendEmpty()
		rs.SetSchemaUrl(g.pick("", "https://example.org/1"))
		if g.IntN(5) > 0 {
			rs.Resource().Attributes().PutStr("service.name", fmt.Sprint("service-", g.IntN(g.services)))
		}
		g.attributes(rs.Resource().Attributes(), 2)
		for range g.IntN(3) {
			ss := rs.ScopeSpans().AppendEmpty()
			ss.Scope().SetName(g.pick("", "http", "sql"))
			ss.SetSchemaUrl(g.pick("", "", "https://example.org/2"))
			for range g.IntN(spans) {
				g.span(ss.Spans().AppendEmpty())
			}
		}
	}
	body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := otlpdata.FromOTLP(body, otlpdata.Meta{Tenant: tenant, Received: time.Unix(1_800_000_000, 0)}, otlpdata.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func (g *generator) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g *generator) time() pcommon.Timestamp {
	extremes := []uint64{0, 1, math.MaxUint64, 1 << 63}
	if g.IntN(10) == 0 {
		return pcommon.Timestamp(extremes[g.IntN(len(extremes))])
	}
	return pcommon.Timestamp(1_800_000_000_000_000_000 + g.Uint64N(1e12))
}

func (g *generator) span(s ptrace.Span) {
	s.SetTraceID(pcommon.TraceID{9: 0xff, 15: byte(g.IntN(g.traces))})
	s.SetSpanID(pcommon.SpanID{byte(g.Uint32()), byte(g.Uint32()), 7})
	if g.IntN(3) > 0 {
		s.SetParentSpanID(pcommon.SpanID{byte(g.Uint32())})
	}
	s.SetName(g.pick("", "\xff\xfe", fmt.Sprint("GET /", g.IntN(g.names))))
	s.SetKind(ptrace.SpanKind(g.IntN(8) - 1))
	s.SetStartTimestamp(g.time())
	s.SetEndTimestamp(g.time())
	g.attributes(s.Attributes(), 1+g.IntN(8))
	if g.IntN(4) == 0 {
		s.Status().SetCode(ptrace.StatusCode(g.IntN(4) - 1))
		s.Status().SetMessage(g.pick("", "not available", "\xc0"))
		s.TraceState().FromRaw(g.pick("", "a=b", "ot=th:e666", "a=b,ot=th:b333", "ot=th:ffffff", "ot=th:x"))
		s.SetFlags(g.Uint32() >> g.IntN(32))
		s.SetDroppedAttributesCount(g.Uint32N(3))
		s.SetDroppedEventsCount(g.Uint32N(3))
		s.SetDroppedLinksCount(g.Uint32N(3))
	}
	for range max(0, g.IntN(12)-5) {
		e := s.Events().AppendEmpty()
		e.SetName(g.pick("", "exception", "retry"))
		e.SetTimestamp(g.time())
		e.SetDroppedAttributesCount(g.Uint32N(2))
		g.attributes(e.Attributes(), g.IntN(4))
	}
	for range max(0, g.IntN(6)-3) {
		l := s.Links().AppendEmpty()
		l.SetTraceID(pcommon.TraceID{byte(g.Uint32())})
		l.SetSpanID(pcommon.SpanID{1})
		l.TraceState().FromRaw(g.pick("", "x=y"))
		l.SetFlags(g.Uint32N(2))
		g.attributes(l.Attributes(), g.IntN(2))
	}
}

// attributes adds attributes, whose keys may repeat.
func (g *generator) attributes(m pcommon.Map, n int) {
	for i := range g.IntN(n + 1) {
		// A map has each key only once; doubled creates repeated keys.
		g.value(m.PutEmpty(fmt.Sprint("key-", g.IntN(g.keys), strings.Repeat("x", i%2*9))), 3)
	}
}

func (g *generator) value(v pcommon.Value, depth int) {
	switch g.IntN(12) {
	case 0:
		v.SetBool(g.IntN(2) == 0)
	case 1:
		v.SetInt(int64(g.Uint64()) >> g.IntN(64))
	case 2:
		v.SetDouble([]float64{0, math.Copysign(0, -1), 1.5, math.NaN(), math.Inf(1), g.Float64()}[g.IntN(6)])
	case 3:
		v.SetEmptyBytes().FromRaw([]byte(g.pick("", "\x00\xff")))
	case 4:
		if s := v.SetEmptySlice(); depth > 0 {
			for range g.IntN(3) {
				g.value(s.AppendEmpty(), depth-1)
			}
		}
	case 5:
		if m := v.SetEmptyMap(); depth > 0 {
			for range g.IntN(3) {
				g.value(m.PutEmpty(fmt.Sprint("k", g.IntN(3))), depth-1)
			}
		}
	case 6: // empty
	case 7:
		v.SetStr(strings.Repeat("long ", 40+g.IntN(30)))
	case 8:
		v.SetStr(fmt.Sprintf("%016x", g.Uint64()))
	default:
		v.SetStr(g.pick("", "GET", "a value", "\xff", "Grüße"))
	}
}

// doubled returns a batch in which the last attribute of each span is repeated with the key of the
// first.
func doubled(tb testing.TB, b *otlpdata.Batch) *otlpdata.Batch {
	tb.Helper()
	var c doubler
	if err := b.Walk(&c); err != nil {
		tb.Fatal(err)
	}
	out, err := otlpdata.FromOTLP(c.out, b.Meta(), otlpdata.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

type doubler struct {
	resource otlpdata.Resource
	scope    otlpdata.Scope
	out      []byte
}

func (c *doubler) Resource(r *otlpdata.Resource) error { c.resource = *r; return nil }
func (c *doubler) Scope(s *otlpdata.Scope) error       { c.scope = *s; return nil }
func (c *doubler) Span(s *otlpdata.Span) error {
	if n := len(s.Attributes); n > 0 {
		s.Attributes = append(s.Attributes, otlpdata.KeyValue{Key: s.Attributes[0].Key, Value: s.Attributes[n-1].Value})
	}
	c.out = otlpdata.AppendResourceSpans(c.out, &c.resource, &c.scope, otlpdata.AppendSpan(nil, s))
	return nil
}
