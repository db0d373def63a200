package memtable

import (
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// TestConstants compares what is known of shapes with their rows.
func TestConstants(t *testing.T) {
	for name, o := range map[string]Options{"usual": {}, "tight": tight()} {
		batches := append(randomBatches(t, 11, 20), hostile(t, 4, 200, attacks()["none"])...)
		table := New(o)
		records := fill(t, table, batches)
		t.Run(name, func(t *testing.T) { checkConstants(t, table) })
		t.Run(name+", replayed", func(t *testing.T) { checkConstants(t, replayAll(t, o, records)) })
	}
}

// TestConstantsLater looks at constants that stop being some.
func TestConstantsLater(t *testing.T) {
	table := New(Options{})
	first := hostile(t, 1, 2, func(_, _ int, _ *otlpdata.Resource, s *otlpdata.Span) {
		s.Name, s.Attributes = "GET /", []otlpdata.KeyValue{text("a", "1"), {Key: "b", Value: otlpdata.IntValue(1)}}
	})
	second := hostile(t, 1, 1, func(_, _ int, _ *otlpdata.Resource, s *otlpdata.Span) {
		s.Name, s.Attributes = "GET /", []otlpdata.KeyValue{text("a", "2"), {Key: "b", Value: otlpdata.IntValue(2)}}
	})
	fill(t, table, first)
	before := table.Constants()
	fill(t, table, second)
	fill(t, table, first)
	after := table.Constants()
	for i, want := range []rows.Cell{{Word: 1}, {Num: 1}} {
		if c, ok := before.Of(0, i); !ok || c != want {
			t.Errorf("position %d: %+v, %t, want %+v", i, c, ok, want)
		}
		if c, ok := after.Of(0, i); ok {
			t.Errorf("position %d is still %+v", i, c)
		}
	}
}

// shared is what the rows of a shape have at a position.
type shared struct {
	cell   rows.Cell
	varies bool
}

func checkConstants(t *testing.T, table *Table) {
	t.Helper()
	in, known := table.Input(), table.Constants()
	have := map[[2]int]*shared{}
	for i := range in.Rows {
		var h rows.Head
		cells, err := in.Tables.ReadRow(in.Row(i), &h, nil)
		if err != nil {
			t.Fatal(err)
		}
		for p, c := range cells {
			at := [2]int{int(h.Shape), p}
			if have[at] == nil {
				have[at] = &shared{cell: c}
			}
			have[at].varies = have[at].varies || have[at].cell != c
		}
	}
	constant, varying := 0, 0
	for at, s := range have {
		column := in.Tables.Columns[in.Tables.Shapes[at[0]].Columns[at[1]]]
		want := !s.varies && compared(column.Kind, s.cell)
		switch c, ok := known.Of(uint32(at[0]), at[1]); {
		case ok != want || ok && c != s.cell:
			t.Errorf("shape %d, position %d: %+v, %t, but the rows have %+v", at[0], at[1], c, ok, *s)
		case ok:
			constant++
		default:
			varying++
		}
	}
	if constant == 0 || varying == 0 {
		t.Errorf("%d constants, %d others: this test compares nothing", constant, varying)
	}
}

// compared says which cells are compared at all.
func compared(kind otlpdata.ValueKind, c rows.Cell) bool {
	switch kind {
	case otlpdata.ValueString:
		return c.Word > 0
	case otlpdata.ValueBool, otlpdata.ValueInt, otlpdata.ValueDouble:
		return true
	}
	return false
}
