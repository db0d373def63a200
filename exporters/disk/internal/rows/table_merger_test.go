package rows_test

import (
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// TestTableMerger checks that translated rows of several sources decode to the same spans under the
// merged tables.
func TestTableMerger(t *testing.T) {
	m := rows.NewTableMerger()
	total := 0
	for seed := range uint64(3) {
		in, _, want := interned(t, seed, 5, 10, nil)
		tr, err := m.Add(in.Tables())
		if err != nil {
			t.Fatal(err)
		}
		total += len(in.Tables().Shapes)
		var r reading
		for i, row := range in.Rows() {
			var h rows.Head
			cells, err := in.Tables().ReadRow(row, &h, nil)
			if err != nil {
				t.Fatal(err)
			}
			h.Shape, h.Resource = tr.Shapes[h.Shape], tr.Resources[h.Resource]
			encoded := rows.AppendHead(nil, &h)
			for j, c := range m.Tables().Shapes[h.Shape].Columns {
				encoded = rows.AppendCell(encoded, m.Tables().Columns[c].Kind, tr.Cell(c, cells[j]))
			}
			if got, err := r.read(m.Tables(), encoded); err != nil || got != want[i] {
				t.Fatalf("source %d, row %d: got %+v, %v; want %+v", seed, i, got, err, want[i])
			}
		}
	}
	before := len(m.Tables().Shapes)
	in, _, _ := interned(t, 0, 5, 10, nil)
	if _, err := m.Add(in.Tables()); err != nil || len(m.Tables().Shapes) != before || before > total {
		t.Errorf("%d shapes after adding known tables again, %d before, %v", len(m.Tables().Shapes), before, err)
	}
	m.Release()
}

// TestTableMergerRejectsLoss checks that tables with missing definitions are rejected.
func TestTableMergerRejectsLoss(t *testing.T) {
	_, records, _ := interned(t, 3, 4, 10, nil)
	var p replayed
	for _, r := range records[1:] {
		p.add(t, r)
	}
	if p.tables.Lost() == 0 {
		t.Fatal("no definition was lost: the test needs other input")
	}
	if _, err := rows.NewTableMerger().Add(&p.tables); err == nil {
		t.Error("no error for tables with missing definitions")
	}
}
