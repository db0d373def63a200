package segment

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// randomCells returns one column per kind of value in random order, cells of these columns, and the
// encoded cells.
func randomCells(r *rand.Rand, t *rows.Tables) (columns []uint32, cells []rows.Cell, b []byte) {
	for range r.IntN(12) {
		id := uint32(r.IntN(len(t.Columns)))
		var c rows.Cell
		switch kind := t.Columns[id].Kind; kind {
		case otlpdata.ValueEmpty:
		case otlpdata.ValueBool:
			c.Num = r.Uint64N(2)
		case otlpdata.ValueInt, otlpdata.ValueDouble:
			c.Num = r.Uint64() >> r.UintN(64)
		case otlpdata.ValueString:
			if c.Word = uint32(r.IntN(len(t.Words[id]) + 1)); c.Word == 0 {
				c.Data = fmt.Sprint("text ", r.IntN(3))
			}
		default:
			c.Data = fmt.Sprint("blob ", r.IntN(3))
		}
		columns, cells = append(columns, id), append(cells, c)
		b = rows.AppendCell(b, t.Columns[id].Kind, c)
	}
	return columns, cells, b
}

func cellTables() *rows.Tables {
	t := &rows.Tables{}
	for kind := otlpdata.ValueEmpty; kind <= otlpdata.ValueMap; kind++ {
		t.Columns, t.Words = append(t.Columns, rows.Column{Kind: kind}), append(t.Words, nil)
	}
	for i := range 300 {
		t.Words[otlpdata.ValueString] = append(t.Words[otlpdata.ValueString], fmt.Sprint("word ", i))
	}
	return t
}

// TestAnalyzerAgreesWithRows compares what the analyzer considers readable and constant with the
// results of package rows. Half of the rows are truncated or have a wrong byte.
func TestAnalyzerAgreesWithRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		tables := cellTables()
		columns, cells, first := randomCells(r, tables)
		tables.Shapes, tables.Resources = []rows.Shape{{Columns: columns}}, make([]rows.Resource, 1)
		p := newAnalyzer(tables)
		if n, ok := p.add(&rows.Head{}, first); n != len(columns) || !ok {
			t.Fatalf("%d cells, %t", n, ok)
		}
		constant := make([]bool, len(columns))
		for i := range constant {
			constant[i] = true
		}
		for range 6 {
			b := []byte{}
			for i, id := range columns {
				c := cells[i]
				if r.IntN(3) == 0 && tables.Columns[id].Kind == otlpdata.ValueString {
					c = rows.Cell{Word: 1 + uint32(r.IntN(300))}
				}
				b = rows.AppendCell(b, tables.Columns[id].Kind, c)
			}
			if len(b) > 0 && r.IntN(2) == 0 {
				b[r.IntN(len(b))] = byte(r.Uint32())
				b = b[:len(b)-r.IntN(2)]
			}
			got, err := tables.ReadCells(b, columns, nil)
			if _, ok := p.add(&rows.Head{}, b); ok != (err == nil) {
				t.Fatalf("%x: %t, but %v", b, ok, err)
			}
			for i := range got {
				constant[i] = constant[i] && (err != nil || got[i] == cells[i])
			}
		}
		for i, pos := range p.positionsOf(0) {
			if !pos.varies() && !constant[i] {
				t.Fatalf("position %d of %v is not constant", i, columns)
			}
		}
	}
}

// TestDictionaryIndex checks that words and texts get the ranks of the dictionary, and that others
// get none.
func TestDictionaryIndex(t *testing.T) {
	tables := cellTables()
	p := newAnalyzer(tables)
	const column = uint32(otlpdata.ValueString)
	for i := range 200 {
		p.count(column, rows.Cell{Word: uint32(i%20 + 1)}, 1)
		p.count(column, rows.Cell{Data: fmt.Sprint("text ", i%7)}, 2)
		p.count(column, rows.Cell{Data: "word 3"}, 1) // a word that occurs as a text
	}
	texts, byIndex, ok := p.columns[column].dictionary()
	if !ok || len(texts) != 27 {
		t.Fatal(texts, ok)
	}
	r := newDictionaryIndex(&p.columns[column], tables.Words[column], byIndex)
	for want, text := range texts {
		if got, ok := r.read(&cursor{b: rows.AppendCell(nil, otlpdata.ValueString, rows.Cell{Data: text})}); !ok || int(got) != want {
			t.Errorf("%q has rank %d (%t), want %d", text, got, ok, want)
		}
	}
	for word, text := range tables.Words[column] {
		rank, ok := r.read(&cursor{b: rows.AppendCell(nil, otlpdata.ValueString, rows.Cell{Word: uint32(word + 1)})})
		if ok != (word < 20) || ok && texts[rank] != text {
			t.Errorf("word %d has rank %d, %t", word, rank, ok)
		}
	}
	if _, ok := r.read(&cursor{b: rows.AppendCell(nil, otlpdata.ValueString, rows.Cell{Data: "absent"})}); ok {
		t.Error("unknown text has a rank")
	}
}

// TestTextThatBecameAWord checks that a dictionary finds a word whose text was counted only as a
// text.
func TestTextThatBecameAWord(t *testing.T) {
	tables := cellTables()
	const column = uint32(otlpdata.ValueString)
	tables.Shapes, tables.Resources = []rows.Shape{{Columns: []uint32{column}}}, make([]rows.Resource, 1)
	tables.Scopes = make([]otlpdata.Scope, 1)
	p := newAnalyzer(tables)
	cells := []rows.Cell{{Data: "word 1"}, {Word: 2}, {Word: 3}, {Word: 3}, {Word: 3}, {Word: 3}, {Word: 3}, {Word: 3}, {Word: 3}, {Word: 3}}
	for _, c := range cells {
		if _, ok := p.add(&rows.Head{}, rows.AppendCell(nil, otlpdata.ValueString, c)); !ok {
			t.Fatal(c)
		}
	}
	p.finish()
	v, err := newVocabulary(p)
	if err != nil || !v.dictionaries[column].exists() {
		t.Fatal("no dictionary", err)
	}
	m := newFlushConverter(v, p, newFilterBuilder(v.layout))
	for _, c := range cells {
		got, _, err := m.convert(nil, 0, rows.AppendCell(nil, otlpdata.ValueString, c))
		if err != nil {
			t.Fatal(err)
		}
		checkConverted(t, v, []rows.Cell{c}, got)
	}
}

// TestArrange checks random permutations.
func TestArrange(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 20 {
		list, order := make([]int, n), make([]uint32, n)
		want := make([]int, n)
		for i, from := range r.Perm(n) {
			list[i] = 100 + i
			order[i] = uint32(from)
			want[i] = 100 + from
		}
		if arrange(list, order); fmt.Sprint(list) != fmt.Sprint(want) {
			t.Fatalf("%v, want %v", list, want)
		}
	}
}

// FuzzCells checks that the analyzer and the converter accept exactly the rows that package rows
// accepts.
func FuzzCells(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5}, []byte("\x05\x01\x02AAAAAAAA\x02ab"), []byte("\x05\x00\x02AAAAAAAA\x02ab"))
	f.Add([]byte{1, 1, 3}, []byte("\x00\x01a\x85\x01\x96\x01"), []byte("\x00\x01b\x85\x01\x96\x01"))
	f.Add([]byte{1}, []byte{5}, []byte{0x85, 0x00})
	f.Add([]byte{3, 5}, []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"), []byte("\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, kinds, a, b []byte) {
		tables := cellTables()
		var columns []uint32
		for _, k := range kinds {
			columns = append(columns, uint32(k)%uint32(len(tables.Columns)))
		}
		tables.Shapes, tables.Resources = []rows.Shape{{Columns: columns}}, make([]rows.Resource, 1)
		tables.Scopes = make([]otlpdata.Scope, 1)
		p := newAnalyzer(tables)
		var readable [][]byte
		for _, row := range [][]byte{a, b, a, b, a, b} {
			_, err := tables.ReadCells(row, columns, nil)
			if _, ok := p.add(&rows.Head{}, row); ok != (err == nil) {
				t.Fatalf("%x: %t, but %v", row, ok, err)
			}
			if err == nil {
				readable = append(readable, row)
			}
		}
		if len(readable) == 0 {
			return
		}
		p.finish()
		v, err := newVocabulary(p)
		if err != nil {
			t.Fatal(err)
		}
		m := newFlushConverter(v, p, newFilterBuilder(v.layout))
		for _, row := range readable {
			want, _ := tables.ReadCells(row, columns, nil)
			got, _, err := m.convert(nil, 0, row)
			if err != nil {
				t.Fatal(err)
			}
			checkConverted(t, v, want, got)
		}
	})
}

// checkConverted compares cells of the input with the varying cells of the segment.
func checkConverted(t *testing.T, v *vocabulary, want, got []rows.Cell) {
	t.Helper()
	out := v.layout.tables
	for i, constant := range v.layout.constants[0] {
		column := out.Shapes[0].Columns[i]
		if out.Columns[column].Kind == otlpdata.ValueEmpty {
			continue
		}
		var c rows.Cell
		if constant != nil {
			c = *constant
		} else {
			c, got = got[0], got[1:]
		}
		a := want[i]
		if text := v.in.Text(v.in.Shapes[0].Columns[i], a); c.Num != a.Num || out.Text(column, c) != text {
			t.Fatalf("position %d: %+v converted to %+v", i, a, c)
		}
	}
	if len(got) > 0 {
		t.Fatalf("%d unexpected cells", len(got))
	}
}
