package rows_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows/rowstest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// generator generates random spans with all kinds of fields.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 5))} }

func (g generator) text() string {
	return []string{"", "a", "b", "GET /cart", "\xff\x00", "Grüße", fmt.Sprint(g.IntN(1000))}[g.IntN(7)]
}

func (g generator) value() otlpdata.Value {
	list := string(otlpdata.AppendAttributes(nil, []otlpdata.KeyValue{{Key: "x", Value: otlpdata.IntValue(1)}}))
	switch g.IntN(9) {
	case 0:
		return otlpdata.Value{}
	case 1:
		return otlpdata.BoolValue(g.IntN(2) == 0)
	case 2:
		return otlpdata.IntValue(int64(g.Uint64() >> g.IntN(64)))
	case 3:
		return otlpdata.DoubleValue(math.Float64frombits(g.Uint64()))
	case 4:
		return otlpdata.EncodedValue(otlpdata.ValueBytes, g.text())
	case 5:
		return otlpdata.EncodedValue(otlpdata.ValueArray, "")
	case 6:
		return otlpdata.EncodedValue(otlpdata.ValueMap, "\x0a"+list[1:])
	}
	return otlpdata.StringValue(g.text())
}

func (g generator) attributes(maxCount int) (out []otlpdata.KeyValue) {
	for range g.IntN(maxCount + 1) {
		out = append(out, otlpdata.KeyValue{Key: []string{"k1", "k2", "k3", "x1", "x2", ""}[g.IntN(6)], Value: g.value()})
	}
	return out
}

// sometimes returns a small number, usually 0.
func (g generator) sometimes() uint32 { return uint32(max(0, g.IntN(12)-8)) }

func (g generator) span() otlpdata.Span {
	s := otlpdata.Span{TraceID: otlpdata.TraceID{0: byte(g.Uint32()), 15: byte(g.Uint32())}, SpanID: otlpdata.SpanID{7: byte(g.Uint32())},
		Name: g.text(), Kind: int32(g.IntN(7)) - 1, StatusCode: int32(g.IntN(3)), Flags: g.sometimes(), Start: g.Uint64() >> g.IntN(64),
		DroppedAttributes: g.sometimes(), DroppedEvents: g.sometimes(), DroppedLinks: g.sometimes(), Attributes: g.attributes(6)}
	s.End = s.Start + g.Uint64()>>g.IntN(64)
	if g.IntN(2) == 0 {
		s.ParentID[0] = byte(g.Uint32())
	}
	if g.IntN(4) == 0 {
		s.TraceState, s.StatusMessage = g.text(), g.text()
	}
	for range max(0, g.IntN(10)-4) {
		s.Events = append(s.Events, otlpdata.Event{Time: s.Start + g.Uint64()>>g.IntN(64), Name: g.text(), Attributes: g.attributes(2),
			DroppedAttributes: g.sometimes()})
	}
	for range max(0, g.IntN(6)-4) {
		s.Links = append(s.Links, otlpdata.Link{TraceID: otlpdata.TraceID{1}, SpanID: otlpdata.SpanID{2}, TraceState: g.text(),
			Attributes: g.attributes(2), Flags: g.sometimes()})
	}
	return s
}

// batch returns a request of one tenant.
func (g generator) batch(spans int) *otlpdata.Batch {
	var b []byte
	for range spans {
		service := []otlpdata.KeyValue{{Key: "service.name", Value: otlpdata.StringValue(g.text())}}
		r := otlpdata.Resource{Raw: resourceOf(service), SchemaURL: g.text()}
		sc := otlpdata.Scope{Raw: scopeOf(g.text()), SchemaURL: g.text()}
		s := g.span()
		b = otlpdata.AppendResourceSpans(b, &r, &sc, otlpdata.AppendSpan(nil, &s))
	}
	out, err := otlpdata.FromOTLP(b, otlpdata.Meta{Tenant: []string{"", "t1", "t2"}[g.IntN(3)]}, otlpdata.Limits{})
	if err != nil {
		panic(err)
	}
	return out
}

// resourceOf encodes a Resource: its attributes are field 1; a span's attributes are field 9.
func resourceOf(kvs []otlpdata.KeyValue) []byte {
	b := otlpdata.AppendAttributes(nil, kvs)
	b[0] = 1<<3 | 2
	return b
}

// scopeOf encodes an InstrumentationScope.
func scopeOf(name string) []byte { return append([]byte{1<<3 | 2, byte(len(name))}, name...) }

// original is a span as it was sent.
type original struct {
	tenant, service            string
	resource, resourceURL      string
	scope, scopeURL, operation string
	duration                   uint64
	span                       string // encoded
}

type originals struct {
	tenant   string
	resource *otlpdata.Resource
	scope    *otlpdata.Scope
	all      []original
}

func (v *originals) Resource(r *otlpdata.Resource) error { v.resource = r; return nil }
func (v *originals) Scope(s *otlpdata.Scope) error       { v.scope = s; return nil }

func (v *originals) Span(s *otlpdata.Span) error {
	v.all = append(v.all, originalOf(v.tenant, v.resource.Service, v.resource, v.scope, s))
	return nil
}

func originalOf(tenant, service string, r *otlpdata.Resource, sc *otlpdata.Scope, s *otlpdata.Span) original {
	duration, _ := s.Duration()
	return original{tenant, service, string(r.Raw), r.SchemaURL, string(sc.Raw), sc.SchemaURL, s.Operation(), duration,
		string(otlpdata.AppendSpan(nil, s))}
}

// interned interns random requests and returns the interner, the records and the original spans.
func interned(t testing.TB, seed uint64, requests, spans int, set func(*rowstest.Interner)) (
	in *rowstest.Interner, records [][]byte, want []original,
) {
	t.Helper()
	g := newGenerator(seed)
	in = rowstest.New()
	if set != nil {
		set(in)
	}
	var all originals
	for range requests {
		b := g.batch(spans)
		records = append(records, in.Add(b))
		all.tenant = b.Meta().Tenant
		if err := b.Walk(&all); err != nil {
			t.Fatal(err)
		}
	}
	return in, records, all.all
}

// reading decodes rows to spans.
type reading struct {
	head  rows.Head
	cells []rows.Cell
	asm   rows.Assembler
}

func (r *reading) read(t *rows.Tables, row []byte) (original, error) {
	var err error
	if r.cells, err = t.ReadRow(row, &r.head, r.cells[:0]); err != nil {
		return original{}, err
	}
	s, err := r.asm.Span(t, &r.head, r.cells)
	if err != nil {
		return original{}, err
	}
	res, shape := &t.Resources[r.head.Resource], &t.Shapes[r.head.Shape]
	out := originalOf(res.Tenant, res.Service, &res.Resource, &t.Scopes[shape.Scope], s)
	if shape.Tenant != res.Tenant || shape.Service != res.Service || r.head.Duration() != out.duration {
		return out, fmt.Errorf("tenant, service or duration of the head: %s, %s, %d", shape.Tenant, shape.Service, r.head.Duration())
	}
	return out, nil
}

// replayed holds the tables and rows decoded from records.
type replayed struct {
	tables rows.Tables
	rows   [][]byte
}

func (p *replayed) add(t testing.TB, record []byte) {
	t.Helper()
	for len(record) > 0 {
		tag, payload, rest, err := rows.NextItem(record)
		if err != nil {
			t.Fatal(err)
		}
		p.item(t, tag, payload)
		record = rest
	}
}

func (p *replayed) item(t testing.TB, tag rows.Tag, payload []byte) {
	t.Helper()
	defined, err := p.tables.Define(tag, payload)
	if err != nil || defined == (tag == rows.TagRow) {
		t.Fatalf("tag %d: %t, %v", tag, defined, err)
	}
	if !defined {
		p.rows = append(p.rows, payload)
	}
}
