package block

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows/rowstest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
)

// input is the input of Encode for a block.
type input struct {
	heads []rows.Head
	cells []rows.Cell
	first []int32
}

func (in *input) add(h rows.Head, cells ...rows.Cell) {
	in.heads = append(in.heads, h)
	in.first = append(in.first, int32(len(in.cells)))
	in.cells = append(in.cells, cells...)
}

func (in *input) row(t *rows.Tables, i int) []rows.Cell {
	return in.cells[in.first[i]:][:len(t.Shapes[in.heads[i].Shape].Columns)]
}

// varying returns the input without cells that are constants of the layout.
func (in *input) varying(l *Layout) input {
	out := input{heads: in.heads}
	for i := range in.heads {
		out.first = append(out.first, int32(len(out.cells)))
		for p, c := range in.row(l.tables, i) {
			if l.slotsOf(in.heads[i].Shape)[p].group != constant {
				out.cells = append(out.cells, c)
			}
		}
	}
	return out
}

func (in *input) encode(e *Encoder, dst []byte, l *Layout) ([]byte, Zone) {
	v := in.varying(l)
	return e.Encode(dst, l, v.heads, v.cells, v.first)
}

// segment is a simple, slow substitute for the segment writer: it holds rows in their final order,
// and determines constants, dictionaries and ranks.
type segment struct {
	tables rows.Tables
	input
}

// segmentOf returns the rows of an interner, of one tenant, in final order.
func segmentOf(in *rowstest.Interner) *segment {
	type row struct {
		rows.Head
		cells []rows.Cell
	}
	s := &segment{tables: *in.Tables().Snapshot()}
	traces := map[otlpdata.TraceID][]row{}
	for _, encoded := range in.Rows() {
		var r row
		var err error
		if r.cells, err = s.tables.ReadRow(encoded, &r.Head, nil); err != nil {
			panic(err)
		}
		for i, c := range r.cells { // texts, until plan finds words
			r.cells[i].Data, r.cells[i].Word = s.tables.Text(s.tables.Shapes[r.Shape].Columns[i], c), 0
		}
		traces[r.TraceID] = append(traces[r.TraceID], r)
	}
	for _, t := range traces {
		slices.SortStableFunc(t, func(a, b row) int { return cmp.Compare(a.Start, b.Start) })
	}
	for _, t := range slices.SortedFunc(maps.Values(traces), func(a, b []row) int { return cmp.Compare(a[0].Start, b[0].Start) }) {
		for _, r := range t {
			s.add(r.Head, r.cells...)
		}
	}
	s.tables.Words = make([][]string, len(s.tables.Columns))
	return s
}

// plan ranks shapes and words, finds constants, and turns cells of dictionary columns into words.
func (s *segment) plan() *Layout {
	s.rankShapes()
	dictionary := make([]bool, len(s.tables.Columns))
	for id, count := range s.countWords() {
		total := 0
		for _, n := range count {
			total += n
		}
		if len(count) == 0 || len(count) > 4096 || 2*len(count) > total {
			continue
		}
		dictionary[id] = true
		for w := range count {
			s.tables.Words[id] = append(s.tables.Words[id], w)
		}
		slices.SortFunc(s.tables.Words[id], func(a, b string) int {
			return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
		})
	}
	s.replaceWords(dictionary)
	l, err := NewLayout(&s.tables, s.constants(), dictionary)
	if err != nil {
		panic(err)
	}
	return l
}

func (s *segment) rankShapes() {
	count := make([]int, len(s.tables.Shapes))
	for i := range s.heads {
		count[s.heads[i].Shape]++
	}
	order, rank := make([]int, len(count)), make([]uint32, len(count))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(count[b], count[a]) })
	ranked := make([]rows.Shape, len(count))
	for r, i := range order {
		rank[i], ranked[r] = uint32(r), s.tables.Shapes[i]
	}
	s.tables.Shapes = ranked
	for i := range s.heads {
		s.heads[i].Shape = rank[s.heads[i].Shape]
	}
}

// minConstantRows is the minimum number of rows of a shape with constants: rows of a rare shape
// would take as much space as its cells.
const minConstantRows = 4

// constants returns by shape and position the cell that all rows have.
func (s *segment) constants() [][]*rows.Cell {
	constants, count := make([][]*rows.Cell, len(s.tables.Shapes)), make([]int, len(s.tables.Shapes))
	for id, shape := range s.tables.Shapes {
		constants[id] = make([]*rows.Cell, len(shape.Columns))
	}
	for i := range s.heads {
		cells, id := s.row(&s.tables, i), s.heads[i].Shape
		for p := range cells {
			if c := constants[id][p]; count[id] == 0 {
				constants[id][p] = &cells[p]
			} else if c != nil && *c != cells[p] {
				constants[id][p] = nil
			}
		}
		count[id]++
	}
	for id, n := range count {
		if n < minConstantRows {
			clear(constants[id])
		}
	}
	return constants
}

// countWords counts by column the texts of cells that vary.
func (s *segment) countWords() []map[string]int {
	constants := s.constants()
	counts := make([]map[string]int, len(s.tables.Columns))
	for i := range s.heads {
		id := s.heads[i].Shape
		for p, c := range s.row(&s.tables, i) {
			column := s.tables.Shapes[id].Columns[p]
			if constants[id][p] != nil || s.tables.Columns[column].Kind != otlpdata.ValueString {
				continue
			}
			if counts[column] == nil {
				counts[column] = map[string]int{}
			}
			counts[column][c.Data]++
		}
	}
	return counts
}

func (s *segment) replaceWords(dictionary []bool) {
	words := make([]map[string]uint32, len(dictionary))
	for i := range s.heads {
		cells := s.row(&s.tables, i)
		for p, column := range s.tables.Shapes[s.heads[i].Shape].Columns {
			if !dictionary[column] {
				continue
			}
			if words[column] == nil {
				words[column] = map[string]uint32{}
				for w, text := range s.tables.Words[column] {
					words[column][text] = uint32(w + 1)
				}
			}
			if w := words[column][cells[p].Data]; w > 0 {
				cells[p] = rows.Cell{Word: w}
			} else { // a constant
				s.tables.Words[column] = append(s.tables.Words[column], cells[p].Data)
				words[column][cells[p].Data] = uint32(len(s.tables.Words[column]))
				cells[p] = rows.Cell{Word: uint32(len(s.tables.Words[column]))}
			}
		}
	}
}

// blocks cuts the rows into blocks of about n rows, between traces.
func (s *segment) blocks(n int) []input {
	var out []input
	from := 0
	for i := 1; i <= len(s.heads); i++ {
		if i < len(s.heads) && (i-from < n || s.heads[i].TraceID == s.heads[i-1].TraceID) {
			continue
		}
		out = append(out, input{s.heads[from:i], s.cells, s.first[from:i]})
		from = i
	}
	return out
}

// workload returns spans of the synthetic workload.
func workload(spans int) (*segment, *Layout) {
	const perRequest = 512
	in := rowstest.New()
	for r := range bench.New(1, time.Unix(1_700_000_000, 0)).Requests(spans, perRequest) {
		b, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.DefaultLimits())
		if err != nil {
			panic(err)
		}
		in.Add(b)
	}
	s := segmentOf(in)
	return s, s.plan()
}
