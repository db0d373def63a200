package segment

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows/rowstest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// storedSpan is a span as it was sent.
type storedSpan struct {
	tenant  string
	trace   otlpdata.TraceID
	content string // encoded span; equal for duplicates
}

// sample holds random requests as input of a segment, and the expected spans.
type sample struct {
	in    Input
	spans []storedSpan // without duplicates
	sent  int
}

// generator generates requests with all kinds of span fields. It uses few distinct values, so that
// many repeat.
type generator struct {
	*rand.Rand
	traces int // maximum number per tenant
}

// randomSample interns the spans of random requests.
func randomSample(tb testing.TB, seed uint64, requests int) *sample {
	g := generator{rand.New(rand.NewPCG(seed, 1)), 1 + requests/2}
	in := rowstest.New()
	in.MaxWords = []int{0, 3, 100}[g.IntN(3)]
	in.MaxEvents = g.IntN(5)
	if g.IntN(3) == 0 {
		in.NameInRow = func(service string) bool { return service == "service 1" }
	}
	in.IsExtra = func(key string) bool { return key == "rare" }
	s := &sample{}
	seen := map[string]bool{}
	var batches []*otlpdata.Batch
	for range requests {
		b := otlpdata.FromTraces(g.request(), otlpdata.Meta{Tenant: fmt.Sprintf("tenant %d", g.IntN(2))})
		if len(batches) > 0 && g.IntN(5) == 0 {
			b = batches[g.IntN(len(batches))] // resent
		}
		if g.IntN(4) == 0 {
			in.MaxWords = 0 // texts that are words in one row are in the cells of others
		}
		batches = append(batches, b)
		in.Add(b)
		for _, span := range spansOf(tb, b) {
			s.sent++
			if !seen[span.tenant+span.content] {
				seen[span.tenant+span.content] = true
				s.spans = append(s.spans, span)
			}
		}
	}
	s.in = inputOf(in)
	return s
}

// spansOf decodes the spans of a request without using code of the store.
func spansOf(tb testing.TB, b *otlpdata.Batch) []storedSpan {
	c := &contentVisitor{tenant: b.Meta().Tenant}
	if err := b.Walk(c); err != nil {
		tb.Fatal(err)
	}
	return c.spans
}

type contentVisitor struct {
	tenant   string
	resource *otlpdata.Resource
	scope    *otlpdata.Scope
	spans    []storedSpan
}

func (c *contentVisitor) Resource(r *otlpdata.Resource) error { c.resource = r; return nil }
func (c *contentVisitor) Scope(s *otlpdata.Scope) error       { c.scope = s; return nil }
func (c *contentVisitor) Span(s *otlpdata.Span) error {
	c.spans = append(c.spans, storedSpan{c.tenant, s.TraceID, contentOf(c.resource, c.scope, s)})
	return nil
}

func contentOf(r *otlpdata.Resource, sc *otlpdata.Scope, s *otlpdata.Span) string {
	var dst []byte
	for _, part := range [][]byte{r.Raw, []byte(r.SchemaURL), sc.Raw, []byte(sc.SchemaURL)} {
		dst = append(binary.AppendUvarint(dst, uint64(len(part))), part...)
	}
	return string(otlpdata.AppendSpan(dst, s))
}

func (g generator) request() ptrace.Traces {
	td := ptrace.NewTraces()
	for range 1 + g.IntN(2) {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", fmt.Sprintf("service %d", g.IntN(3)))
		rs.Resource().Attributes().PutInt("instance", int64(g.IntN(2)))
		rs.SetSchemaUrl([]string{"", "https://example.com/1"}[g.IntN(2)])
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName(fmt.Sprintf("scope %d", g.IntN(2)))
		for range g.IntN(12) {
			g.span(ss.Spans().AppendEmpty())
		}
	}
	return td
}

func (g generator) span(s ptrace.Span) {
	var id [16]byte
	id[0], id[15] = byte(g.IntN(g.traces)), 7
	s.SetTraceID(id)
	s.SetSpanID(g.spanID())
	s.SetParentSpanID(g.spanID())
	s.SetName(fmt.Sprintf("operation %d", g.IntN(3)))
	s.SetKind(ptrace.SpanKind(g.IntN(6)))
	s.SetStartTimestamp(pcommon.Timestamp(1_700_000_000_000_000_000 + g.Uint64N(1e9)))
	s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(g.Uint64N(1<<g.IntN(40))))
	if g.IntN(20) == 0 {
		s.SetStartTimestamp(pcommon.Timestamp([]uint64{0, 1, math.MaxUint64, 1 << 63}[g.IntN(4)]))
	}
	g.attributes(s.Attributes())
	if g.IntN(4) == 0 {
		s.Status().SetCode(ptrace.StatusCode(g.IntN(3)))
		s.Status().SetMessage([]string{"", "failed"}[g.IntN(2)])
		s.TraceState().FromRaw("a=b")
		s.SetFlags(g.Uint32N(3))
		s.SetDroppedAttributesCount(g.Uint32N(3))
	}
	for range g.IntN(6) / 2 * g.IntN(3) {
		e := s.Events().AppendEmpty()
		e.SetTimestamp(s.StartTimestamp() + pcommon.Timestamp(g.IntN(1000)))
		e.SetName("event")
		g.attributes(e.Attributes())
	}
	if g.IntN(10) == 0 {
		l := s.Links().AppendEmpty()
		l.SetSpanID(g.spanID())
		g.attributes(l.Attributes())
	}
}

// spanID returns one of few ids, so that parents are found, and sometimes zero.
func (g generator) spanID() (id [8]byte) {
	binary.LittleEndian.PutUint64(id[:], g.Uint64N(30))
	return id
}

func (g generator) attributes(m pcommon.Map) {
	keys := []string{"a", "b", "c", "constant", "rare", "unique"}
	for range g.IntN(6) {
		switch key := keys[g.IntN(len(keys))]; key {
		case "constant":
			m.PutStr(key, "always the same")
		case "unique":
			m.PutStr(key, fmt.Sprintf("%016x", g.Uint64()))
		default:
			g.value(m.PutEmpty(key))
		}
	}
}

func (g generator) value(v pcommon.Value) {
	switch g.IntN(9) {
	case 0:
		v.SetBool(g.IntN(2) == 0)
	case 1:
		v.SetInt(g.Int64N(1000) - 500)
	case 2:
		v.SetDouble(float64(g.IntN(100)) / 8)
	case 3:
		v.SetEmptyBytes().FromRaw([]byte{byte(g.IntN(256)), 0xff})
	case 4:
		list := v.SetEmptySlice()
		list.AppendEmpty().SetStr(fmt.Sprint(g.IntN(3)))
		for range []int{0, 0, 0, 0, 0, 0, 2, otlpdata.MaxIndexedElements}[g.IntN(8)] {
			list.AppendEmpty().SetInt(g.Int64N(1000))
		}
	case 5:
		v.SetEmptyMap().PutInt("k", int64(g.IntN(3)))
	case 6: // no value
	default:
		v.SetStr(fmt.Sprintf("text %d", g.IntN(10)))
	}
}
