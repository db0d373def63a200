package rows_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// item is an item of a record.
type item struct {
	tag     rows.Tag
	payload []byte
}

// needs returns the keys of the definitions that a row refers to: {record tag, id}, or {record tag,
// column, id} for dictionary entries (words).
func needs(t *testing.T, tables *rows.Tables, row []byte) map[[3]uint32]bool {
	t.Helper()
	var h rows.Head
	cells, err := tables.ReadRow(row, &h, nil)
	if err != nil {
		t.Fatal(err)
	}
	shape := &tables.Shapes[h.Shape]
	out := map[[3]uint32]bool{
		{uint32(rows.TagShape), h.Shape}:       true,
		{uint32(rows.TagResource), h.Resource}: true,
		{uint32(rows.TagScope), shape.Scope}:   true,
	}
	service := slices.Index(tables.Services, rows.Service{Tenant: shape.Tenant, Name: shape.Service})
	out[[3]uint32{uint32(rows.TagService), uint32(service)}] = true
	for i, c := range shape.Columns {
		out[[3]uint32{uint32(rows.TagColumn), c}] = true
		if w := cells[i].Word; w > 0 {
			out[[3]uint32{uint32(rows.TagWord), c, w - 1}] = true
		}
	}
	return out
}

// TestGaps leaves out each definition in turn and checks that exactly the rows that refer to it are
// unreadable.
func TestGaps(t *testing.T) {
	for name, style := range styles {
		in, records, want := interned(t, 6, 4, 6, style)
		var items []item
		for _, r := range records {
			for len(r) > 0 {
				tag, payload, rest, err := rows.NextItem(r)
				if err != nil {
					t.Fatal(err)
				}
				items, r = append(items, item{tag, payload}), rest
			}
		}
		var need []map[[3]uint32]bool
		for _, row := range in.Rows() {
			need = append(need, needs(t, in.Tables(), row))
		}
		given := map[[3]uint32]uint32{} // next id by kind
		for at, lost := range items {
			if lost.tag == rows.TagRow {
				continue
			}
			key := [3]uint32{uint32(lost.tag)}
			if lost.tag == rows.TagWord {
				key[1] = uvarint(lost.payload)
			}
			next := given[key]
			given[key]++
			if lost.tag == rows.TagWord {
				key[2] = next
			} else {
				key[1] = next
			}
			checkGap(t, name, items, at, func(row int) (bool, original) { return !need[row][key], want[row] })
		}
	}
}

// checkGap replays all items except one and compares the readable rows.
func checkGap(t *testing.T, name string, items []item, lost int, expect func(row int) (readable bool, want original)) {
	t.Helper()
	var p replayed
	for i, it := range items {
		if i != lost {
			p.item(t, it.tag, it.payload)
		}
	}
	var r reading
	for i, row := range p.rows {
		readable, want := expect(i)
		switch got, err := r.read(&p.tables, row); {
		case readable && (err != nil || got != want):
			t.Fatalf("%s: without item %d, of tag %d, row %d is %+v, %v", name, lost, items[lost].tag, i, got, err)
		case !readable && !errors.Is(err, rows.ErrCorrupt):
			t.Fatalf("%s: without item %d, of tag %d, row %d is readable: %v", name, lost, items[lost].tag, i, err)
		}
	}
}

// uvarint decodes a number of at most two bytes.
func uvarint(b []byte) uint32 {
	if b[0] >= 0x80 {
		return uint32(b[0]&0x7f) | uint32(b[1])<<7
	}
	return uint32(b[0])
}

// TestLostRecords leaves out each record in turn: rows that do not refer to it stay readable, and
// lost definitions are counted.
func TestLostRecords(t *testing.T) {
	_, records, want := interned(t, 7, 10, 10, nil)
	for lost := range records {
		var p replayed
		for i, record := range records {
			if i != lost {
				p.add(t, record)
			}
		}
		readable := 0
		var r reading
		for i, row := range p.rows {
			if i >= 10*lost {
				i += 10
			}
			got, err := r.read(&p.tables, row)
			if err == nil {
				readable++
			}
			if err == nil && got != want[i] || err != nil && (i < 10*lost || !errors.Is(err, rows.ErrCorrupt)) {
				t.Errorf("without record %d, span %d is %+v, %v", lost, i, got, err)
			}
		}
		if lost < 9 && (p.tables.Lost() == 0 || readable == len(p.rows)) {
			t.Errorf("without record %d: no definition is missing", lost)
		}
	}
}

// TestRepeatedDefinitions leaves out each record in turn. With definitions that are repeated at the
// end, all rows of the other records are readable.
func TestRepeatedDefinitions(t *testing.T) {
	_, records, want := interned(t, 7, 10, 10, nil)
	for lost := range records {
		var all rows.Definitions
		for i := range records {
			all.Add(records[(lost+1+i)%len(records)]) // the lost one comes last
		}
		var p replayed
		for tag, payload := range all.All() {
			p.item(t, tag, payload)
		}
		for i, record := range records {
			if i != lost {
				p.add(t, record)
			}
		}
		if n := p.tables.Lost(); n > 0 {
			t.Fatalf("without record %d: %d definitions are lost", lost, n)
		}
		var r reading
		for i, row := range p.rows {
			if i >= 10*lost {
				i += 10
			}
			if got, err := r.read(&p.tables, row); err != nil || got != want[i] {
				t.Errorf("without record %d, span %d is %+v, %v", lost, i, got, err)
			}
		}
	}
}
