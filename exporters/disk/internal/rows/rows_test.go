package rows_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows/rowstest"
	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// styles are settings of the interner.
var styles = map[string]func(*rowstest.Interner){
	"plain":    nil,
	"no words": func(in *rowstest.Interner) { in.MaxWords = 0 },
	"encoded":  func(in *rowstest.Interner) { in.MaxEvents, in.MaxWords = 0, 2 },
	"names":    func(in *rowstest.Interner) { in.NameInRow = func(service string) bool { return service != "a" } },
	"extra":    func(in *rowstest.Interner) { in.IsExtra = func(key string) bool { return strings.HasPrefix(key, "x") } },
	"all extra": func(in *rowstest.Interner) {
		in.IsExtra = func(string) bool { return true }
	},
}

func TestSpansRoundTrip(t *testing.T) {
	for name, style := range styles {
		t.Run(name, func(t *testing.T) {
			in, records, want := interned(t, 1, 20, 20, style)
			var p replayed
			for range 2 { // known definitions are ignored
				p.rows = nil
				for _, r := range records {
					p.add(t, r)
				}
			}
			if !reflect.DeepEqual(&p.tables, in.Tables()) || !reflect.DeepEqual(p.rows, in.Rows()) {
				t.Error("records differ from what was interned")
			}
			if n := p.tables.Lost(); n != 0 {
				t.Errorf("%d definitions lost", n)
			}
			var r reading
			for i, row := range p.rows {
				if got, err := r.read(&p.tables, row); err != nil || got != want[i] {
					t.Fatalf("span %d: got %+v, %v\nwant %+v", i, got, err, want[i])
				}
			}
			if len(p.rows) != len(want) {
				t.Errorf("%d rows, want %d", len(p.rows), len(want))
			}
		})
	}
}

// TestCellsOfAnyColumns reads cells without their head.
func TestCellsOfAnyColumns(t *testing.T) {
	in, _, _ := interned(t, 8, 5, 10, nil)
	var h rows.Head
	for i, row := range in.Rows() {
		want, err := in.Tables().ReadRow(row, &h, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := rows.ReadHead(row, &h)
		if err != nil {
			t.Fatal(err)
		}
		got, err := in.Tables().ReadCells(b, in.Tables().Shapes[h.Shape].Columns, nil)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("row %d: got %v, %v, want %v", i, got, err, want)
		}
	}
}

// TestPositionsOfExtraAttributes stores every subset of five attributes as extra attributes.
func TestPositionsOfExtraAttributes(t *testing.T) {
	const n = 5
	s := otlpdata.Span{TraceID: otlpdata.TraceID{1}}
	for i := range n {
		s.Attributes = append(s.Attributes, otlpdata.KeyValue{Key: string(rune('a' + i)), Value: otlpdata.IntValue(int64(i))})
	}
	var asm rows.Assembler
	for subset := range 1 << n {
		var tables rows.Tables
		var positions []int
		var extra []otlpdata.KeyValue
		var cells []rows.Cell
		shape := rows.Shape{}
		add := func(c rows.Column, cell rows.Cell) {
			shape.Columns = append(shape.Columns, uint32(len(tables.Columns)))
			tables.Columns, cells = append(tables.Columns, c), append(cells, cell)
		}
		for i, kv := range s.Attributes {
			if subset>>i&1 == 1 {
				positions, extra = append(positions, i), append(extra, kv)
				continue
			}
			add(rows.Column{Kind: otlpdata.ValueInt, Key: kv.Key}, rows.CellOf(kv.Value))
		}
		add(rows.Column{Place: rows.Extra, Kind: otlpdata.ValueBytes}, rows.Cell{Data: string(rows.AppendExtra(nil, positions, extra))})
		tables.Shapes = []rows.Shape{shape}
		got, err := asm.Span(&tables, &rows.Head{TraceID: s.TraceID}, cells)
		if err != nil || !bytes.Equal(otlpdata.AppendSpan(nil, got), otlpdata.AppendSpan(nil, &s)) {
			t.Errorf("extra attributes %v: got %+v, %v", positions, got, err)
		}
	}
}

func TestDamagedCellsAreRejected(t *testing.T) {
	one := []otlpdata.KeyValue{{Key: "k"}}
	for name, c := range map[string]struct {
		column rows.Column
		data   string
	}{
		"no positions":       {rows.Column{Place: rows.Extra}, ""},
		"too many positions": {rows.Column{Place: rows.Extra}, "\xff\xff\xff\xff\x0f"},
		"cut positions":      {rows.Column{Place: rows.Extra}, "\x02\x01"},
		"more positions":     {rows.Column{Place: rows.Extra}, string(rows.AppendExtra(nil, []int{0, 1}, one))},
		"fewer positions":    {rows.Column{Place: rows.Extra}, string(rows.AppendExtra(nil, nil, one))},
		"damaged extra":      {rows.Column{Place: rows.Extra}, "\x01\x00\x4a\x05"},
		"damaged events":     {rows.Column{Place: rows.Events}, "\x5a\x05"},
		"damaged links":      {rows.Column{Place: rows.Links}, "\x6a\x05"},
		"name of no event":   {rows.Column{Place: rows.EventName}, "a"},
		"count of no event":  {rows.Column{Place: rows.EventDropped}, ""},
		"part of no event":   {rows.Column{Place: rows.EventAttribute, Key: "k"}, "a"},
	} {
		tables := rows.Tables{Columns: []rows.Column{c.column}, Shapes: []rows.Shape{{Columns: []uint32{0}}}}
		var asm rows.Assembler
		if _, err := asm.Span(&tables, &rows.Head{}, []rows.Cell{{Data: c.data}}); !errors.Is(err, rows.ErrCorrupt) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := asm.Span(&tables, &rows.Head{}, nil); !errors.Is(err, rows.ErrCorrupt) {
			t.Errorf("%s, no cells: got %v", name, err)
		}
	}
}

func TestDamagedRowsAreRejected(t *testing.T) {
	in, _, _ := interned(t, 2, 10, 10, styles["encoded"])
	var h rows.Head
	var cells []rows.Cell
	for i, row := range in.Rows() {
		for n := range row {
			if _, err := in.Tables().ReadRow(row[:n:n], &h, cells[:0]); !errors.Is(err, rows.ErrCorrupt) {
				t.Fatalf("first %d of %d bytes of row %d: %v", n, len(row), i, err)
			}
		}
		if _, err := in.Tables().ReadRow(append(row[:len(row):len(row)], 0), &h, cells[:0]); !errors.Is(err, rows.ErrCorrupt) {
			t.Fatalf("row %d with a trailing byte: %v", i, err)
		}
		if _, err := new(rows.Tables).ReadRow(row, &h, nil); !errors.Is(err, rows.ErrCorrupt) {
			t.Fatalf("row %d without tables: %v", i, err)
		}
	}
}

func TestDamagedItemsAreRejected(t *testing.T) {
	for _, b := range []string{"", "\x80", "\x10a", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if _, _, _, err := rows.NextItem([]byte(b)); !errors.Is(err, rows.ErrCorrupt) {
			t.Errorf("%q: got %v", b, err)
		}
	}
	for name, c := range map[string]struct {
		tag     rows.Tag
		payload string
	}{
		"column of no place":     {rows.TagColumn, "\x00\x0f\x01"},
		"column of no kind":      {rows.TagColumn, "\x00\x00\x08"},
		"column cut":             {rows.TagColumn, "\x00\x00"},
		"column far away":        {rows.TagColumn, "\xff\xff\x7f\x00\x01"},
		"id out of range":        {rows.TagColumn, "\xff\xff\xff\xff\x0f\x00\x01"},
		"word cut":               {rows.TagWord, "\x00"},
		"word of a far column":   {rows.TagWord, "\xff\xff\x7f\x00a"},
		"word far away":          {rows.TagWord, "\x00\xff\xff\x7fa"},
		"scope cut":              {rows.TagScope, "\x00\x05a"},
		"scope damaged":          {rows.TagScope, "\x00\x00\x0a\x05"},
		"resource cut":           {rows.TagResource, "\x00\x00"},
		"resource damaged":       {rows.TagResource, "\x00\x00\x00\x0a\x05"},
		"shape cut":              {rows.TagShape, "\x00\x00\x00\x00\x00"},
		"service cut":            {rows.TagService, "\x00\x05a"},
		"service far away":       {rows.TagService, "\xff\xff\x7f\x00a"},
		"shape with a far id":    {rows.TagShape, "\x00\x00\xff\xff\xff\x7f\x00\x00\x00\x00"},
		"shape with half an id":  {rows.TagShape, "\x00\x00\x00\x00\x00\x00\x00\x80"},
		"shape far away":         {rows.TagShape, "\xff\xff\x7f\x00\x00\x00\x00\x00\x00"},
		"shape with a long text": {rows.TagShape, "\x00\x00\x00\x00\x00\x00\x05"},
	} {
		var tables rows.Tables
		if _, err := tables.Define(c.tag, []byte(c.payload)); !errors.Is(err, rows.ErrCorrupt) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestManyGaps checks that the number of recorded lost definitions is limited.
func TestManyGaps(t *testing.T) {
	var tables rows.Tables
	for id := uint32(1000); id < 1<<22; id += 1001 {
		_, payload, _, err := rows.NextItem(rows.AppendWord(nil, 0, id, "a"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tables.Define(rows.TagWord, payload); err != nil {
			if !errors.Is(err, rows.ErrCorrupt) || tables.Lost() < 200_000 {
				t.Errorf("after %d lost: %v", tables.Lost(), err)
			}
			return
		}
	}
	t.Errorf("%d lost definitions without an error", tables.Lost())
}

// TestSnapshots reads snapshots while the tables grow. It is most useful with the race detector.
func TestSnapshots(t *testing.T) {
	_, records, all := interned(t, 3, 40, 10, nil)
	var want []original
	var p replayed
	var wg sync.WaitGroup
	for i, record := range records {
		if i%5 == 4 {
			continue // lost
		}
		want = append(want, all[10*i:10*i+10]...)
		p.add(t, record)
		snapshot, rs, want := p.tables.Snapshot(), p.rows, want
		before := [3]int{len(snapshot.Columns), len(snapshot.Shapes), snapshot.Lost()}
		wg.Go(func() {
			var r reading
			for i, row := range rs {
				if got, err := r.read(snapshot, row); err == nil && got != want[i] {
					t.Errorf("span %d: got %+v, want %+v", i, got, want[i])
				} else if err != nil && (i < 40 || !errors.Is(err, rows.ErrCorrupt)) {
					t.Errorf("span %d: %v", i, err)
				}
			}
			if after := [3]int{len(snapshot.Columns), len(snapshot.Shapes), snapshot.Lost()}; after != before {
				t.Errorf("snapshot changed from %v to %v", before, after)
			}
		})
	}
	wg.Wait()
	if p.tables.Lost() == 0 {
		t.Error("no definition was lost: the test proves nothing")
	}
}

func TestGolden(t *testing.T) {
	const name = "testdata/record.golden"
	_, records, spans := interned(t, 4, 1, 8, styles["extra"])
	want := golden.Check(t, name, append(rows.AppendPosition(nil, 300), records[0]...))
	tag, payload, rest, err := rows.NextItem(want)
	if at, _ := rows.ReadPosition(payload); err != nil || tag != rows.TagPosition || at != 300 {
		t.Errorf("position: tag %d, %d, %v", tag, at, err)
	}
	var p replayed
	p.add(t, rest)
	var r reading
	for i, row := range p.rows {
		if got, err := r.read(&p.tables, row); err != nil || got != spans[i] {
			t.Errorf("span %d: %+v, %v", i, got, err)
		}
	}
}

func FuzzRecord(f *testing.F) {
	for _, style := range styles {
		_, records, _ := interned(f, 5, 2, 3, style)
		for _, r := range records {
			f.Add(r)
		}
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		var tables rows.Tables
		var r reading
		size := len(record)
		defer func() {
			const maxLost = 1 << 18
			if n := len(tables.Columns) + len(tables.Scopes) + len(tables.Resources) + len(tables.Shapes); n > size+maxLost {
				t.Errorf("%d definitions from %d bytes", n, size)
			}
		}()
		for len(record) > 0 {
			tag, payload, rest, err := rows.NextItem(record)
			if err != nil {
				if !errors.Is(err, rows.ErrCorrupt) {
					t.Fatal(err)
				}
				return
			}
			if len(rest) >= len(record) {
				t.Fatal("NextItem consumed no bytes")
			}
			record = rest
			if _, err := tables.Define(tag, payload); err != nil && !errors.Is(err, rows.ErrCorrupt) {
				t.Fatal(err)
			}
			if tag != rows.TagRow {
				continue
			}
			if r.cells, err = tables.ReadRow(payload, &r.head, r.cells[:0]); err == nil {
				_, err = r.asm.Span(&tables, &r.head, r.cells)
			}
			if err != nil && !errors.Is(err, rows.ErrCorrupt) {
				t.Fatal(err)
			}
		}
	})
}
