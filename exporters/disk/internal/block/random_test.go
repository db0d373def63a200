package block

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// generator generates random rows with all properties that a block must handle.
type generator struct {
	*rand.Rand
	*segment
}

// randomSegment returns the rows of some traces, of three tenants.
func randomSegment(seed uint64, traces int) (*segment, *Layout) {
	g := generator{rand.New(rand.NewPCG(seed, 0)), &segment{}}
	g.vocabulary()
	for range traces {
		g.trace()
	}
	return g.segment, g.plan()
}

func (g generator) vocabulary() {
	t := &g.tables
	for i := range 3 * int(otlpdata.ValueMap+1) {
		kind := otlpdata.ValueKind(i % int(otlpdata.ValueMap+1))
		t.Columns = append(t.Columns, rows.Column{Kind: kind, Key: fmt.Sprintf("key %d", i)})
	}
	t.Words = make([][]string, len(t.Columns))
	for i := range 12 {
		t.Resources = append(t.Resources, rows.Resource{Tenant: g.tenant(i), Resource: otlpdata.Resource{Service: g.service(i / 3)}})
	}
	for i := range 20 {
		// Some shapes are of a service that no resource has.
		s := rows.Shape{Tenant: g.tenant(g.IntN(3)), Service: g.service(g.IntN(4)), Name: fmt.Sprintf("name %d", i)}
		for range g.IntN(12) {
			s.Columns = append(s.Columns, uint32(g.IntN(len(t.Columns)))) // sometimes the same column twice
		}
		if i%5 == 0 && len(s.Columns) > 0 {
			s.Columns = append(s.Columns, s.Columns[0], s.Columns[0])
		}
		t.Shapes = append(t.Shapes, s)
	}
}

func (g generator) tenant(i int) string  { return fmt.Sprintf("tenant %d", i%3) }
func (g generator) service(i int) string { return fmt.Sprintf("service %d", i) }

// trace adds the rows of a trace. Few distinct span ids lead to parents before and after a row, to
// rows that are their own parent, and to duplicate ids.
func (g generator) trace() {
	var id otlpdata.TraceID
	binary.BigEndian.PutUint64(id[8:], g.Uint64())
	if g.IntN(2) == 0 {
		binary.BigEndian.PutUint64(id[:], g.Uint64())
	}
	tenant, clock := g.IntN(3), g.time()
	for range 1 + g.IntN(40) {
		h := rows.Head{TraceID: id, SpanID: g.spanID(), ParentID: g.spanID(), Start: clock, End: clock + uint64(g.IntN(1e9))}
		h.Resource = uint32(tenant + 3*g.IntN(4))
		h.Shape = uint32(g.IntN(len(g.tables.Shapes)))
		if g.IntN(20) == 0 {
			h.End = g.time()
		}
		if clock += uint64(g.IntN(1e6)); g.IntN(30) == 0 {
			clock = g.time()
		}
		var cells []rows.Cell
		for _, c := range g.tables.Shapes[h.Shape].Columns {
			cells = append(cells, g.cell(g.tables.Columns[c].Kind))
		}
		g.add(h, cells...)
	}
}

func (g generator) spanID() (id otlpdata.SpanID) {
	switch g.IntN(4) {
	case 0:
		id[7] = byte(g.IntN(4)) // sometimes zero
	case 1:
		binary.LittleEndian.PutUint64(id[:], g.Uint64())
	default:
		id[0] = byte(g.IntN(20))
	}
	return id
}

func (g generator) time() uint64 {
	extremes := []uint64{0, 1, math.MaxUint64, math.MaxInt64, 1 << 63, 1_700_000_000_000_000_000}
	return extremes[g.IntN(len(extremes))]
}

func (g generator) cell(kind otlpdata.ValueKind) rows.Cell {
	switch kind {
	case otlpdata.ValueEmpty:
		return rows.Cell{}
	case otlpdata.ValueBool:
		return rows.Cell{Num: g.Uint64N(2)}
	case otlpdata.ValueInt:
		return rows.Cell{Num: g.Uint64() >> g.IntN(64)}
	case otlpdata.ValueDouble:
		values := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), 1.25, g.Float64(), float64(g.IntN(1000)) / 100}
		return rows.Cell{Num: math.Float64bits(values[g.IntN(len(values))])}
	}
	texts := []string{"", "x", "\xff\x00", fmt.Sprint("user-", g.IntN(1e6)), fmt.Sprintf("%032x", g.Uint64()),
		fmt.Sprintf("/%d/items", g.IntN(9))}
	return rows.Cell{Data: texts[g.IntN(len(texts))]}
}
