package segment

import (
	"fmt"
	"math"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// flushScan is the first pass over the rows of an Input. It determines their order and what they
// have in common.
type flushScan struct {
	in       Input
	analyzer *analyzer
	order    *traceOrder
	info     Info
	lossy    bool // some rows may refer to lost definitions
	scratch  []rows.Cell
}

func newFlushScan(in Input) *flushScan {
	return &flushScan{in: in, analyzer: newAnalyzer(in.Tables), order: newTraceOrder(in.Tables, in.Rows), lossy: in.Tables.Lost() > 0}
}

// batchRows is the number of rows that are processed together: each operation is done for all of
// them before the next operation, so that their cache misses overlap.
const batchRows = 64

// scannedRow is a row of the current batch.
type scannedRow struct {
	head         rows.Head
	row          int
	bytes, cells int
}

func (s *flushScan) run() {
	var scannedRows [batchRows]scannedRow
	for from := 0; from < s.in.Rows; from += batchRows {
		n := 0
		for i := from; i < min(from+batchRows, s.in.Rows); i++ {
			e := &scannedRows[n]
			if e.row = i; s.read(e) {
				n++
			} else {
				s.info.Unreadable++
				s.order.traceOf[i] = noTrace
			}
		}
		for i := range scannedRows[:n] {
			e := &scannedRows[i]
			s.order.traceOf[e.row] = s.order.add(&e.head, e.bytes, e.cells)
		}
	}
	s.analyzer.finish()
	s.order.sort()
}

// read decodes and analyzes a row. It returns false if the row is unreadable.
func (s *flushScan) read(e *scannedRow) bool {
	t, row := s.in.Tables, s.in.Row(e.row)
	s.info.RowBytes += int64(len(row))
	cells, err := rows.ReadHead(row, &e.head)
	if err != nil || int(e.head.Shape) >= len(t.Shapes) || int(e.head.Resource) >= len(t.Resources) ||
		len(row) > maxRowBytes || len(t.Shapes[e.head.Shape].Columns) > maxRowCells {
		return false
	}
	if s.lossy {
		if s.scratch, err = t.ReadRow(row, &e.head, s.scratch[:0]); err != nil {
			return false
		}
	}
	var ok bool
	e.bytes = len(row)
	e.cells, ok = s.analyzer.add(&e.head, cells)
	return ok
}

// traceOrder collects the rows of each trace, and sorts the traces into the order of the segment.
type traceOrder struct {
	traceTable
	traceOf []uint32 // by row of the input: its trace, or noTrace if the row is left out
	rows    []uint32 // grouped by trace, in the order of arrival
}

const noTrace = math.MaxUint32

func newTraceOrder(t *rows.Tables, n int) *traceOrder {
	return &traceOrder{traceTable: newTraceTable(t), traceOf: make([]uint32, n)}
}

// sort sorts the traces and groups the rows.
func (o *traceOrder) sort() {
	byStart := o.byStart()
	from := uint32(0)
	for _, i := range byStart {
		o.list[i].from, from = from, from+o.list[i].rows
	}
	o.rows = make([]uint32, from)
	for row, i := range o.traceOf {
		if i == noTrace {
			continue
		}
		o.rows[o.list[i].from] = uint32(row)
		o.list[i].from++
	}
	o.traceOf = nil
	arrange(o.list, byStart)
	for i := range o.list {
		o.list[i].from -= o.list[i].rows
	}
}

func (o *traceOrder) rowsOf(t *trace) []uint32 { return o.rows[t.from : t.from+t.rows] }

// convertStep describes the conversion of a cell of the input. The steps of a shape are in the
// order of its columns; the last step is the end of the row.
type convertStep struct {
	column     uint32 // of the input
	skip       uint32
	filter     uint32 // column of the segment whose filter gets the value, or unused
	form       cellForm
	conversion conversion
	role       cellRole
}

// cellRole is the use of a cell by statistics.
type cellRole uint8

const (
	noRole cellRole = iota
	nameRole
	traceStateRole
)

// roleOf returns the role of the cells of a column in a shape.
func roleOf(s *rows.Shape, c *rows.Column) cellRole {
	switch {
	case s.NameInRow && c.Place == rows.Name:
		return nameRole
	case c.Place == rows.TraceState && c.Kind == otlpdata.ValueString:
		return traceStateRole
	}
	return noRole
}

// rowTexts holds the texts of a row that statistics use.
type rowTexts struct {
	name       string // "" if the name is part of the shape
	traceState string
}

// conversion is the kind of conversion of a cell.
type conversion uint8

const (
	drop      conversion = iota // the cell is constant
	asNumber                    // unchanged
	asInteger                   // unchanged, and added to the filter
	asText                      // a text; words are replaced by their texts
	asWord                      // texts are replaced by words of the segment
)

// flushConverter converts encoded rows of the input to rows of the segment.
type flushConverter struct {
	filters      *filterBuilder    // gets the values of varying cells
	words        [][]string        // by column of the input
	dictionaries []dictionaryIndex // by column of the input
	first        []int             // by shape of the input: index of its first step
	steps        []convertStep
}

func newFlushConverter(v *vocabulary, p *analyzer, s *filterBuilder) *flushConverter {
	m := &flushConverter{filters: s, words: v.in.Words, dictionaries: v.dictionaries, first: make([]int, len(v.in.Shapes)+1)}
	for id := range v.in.Shapes {
		m.first[id] = len(m.steps)
		if p.shapes[id] > 0 {
			m.plan(v, p, uint32(id))
		}
	}
	m.first[len(v.in.Shapes)] = len(m.steps)
	return m
}

func (m *flushConverter) plan(v *vocabulary, p *analyzer, id uint32) {
	shape, skip := &v.in.Shapes[id], uint32(0)
	constants := v.layout.constants[v.shapes[id]]
	for i, pos := range p.positionsOf(id) {
		c := &v.in.Columns[pos.column]
		next := convertStep{column: pos.column, filter: unused, form: pos.form, role: roleOf(shape, c)}
		switch {
		case constants[i] != nil || pos.form == cellNothing:
			if n, fixed := pos.fixed(); fixed && next.role == noRole {
				skip += n
				continue
			}
		case pos.form == cellString && v.dictionaries[pos.column].exists():
			next.conversion = asWord
		case pos.form == cellString || pos.form == cellText:
			next.conversion = asText
			if column := v.columns[pos.column]; m.filters.covers(column) {
				next.filter = column
			}
		default:
			next.conversion = asNumber
			if column := v.columns[pos.column]; m.filters.covers(column) {
				next.conversion, next.filter = asInteger, column
			}
		}
		next.skip, skip = skip, 0
		m.steps = append(m.steps, next)
	}
	m.steps = append(m.steps, convertStep{skip: skip, filter: unused})
}

// fixed returns the encoded length of the cells at a position. ok is false if their lengths may
// differ.
func (p *position) fixed() (bytes uint32, ok bool) {
	switch {
	case p.form == cellNothing:
		return 0, true
	case p.form == cellByte:
		return 1, true
	case p.form == cellFixed:
		return 8, true
	}
	return uint32(p.length), p.state == sameBytes
}

// convert appends the varying cells of a row to dst and adds their values to the filters. b holds
// the encoded cells of the row; shape is the id of its shape in the input.
func (m *flushConverter) convert(dst []rows.Cell, shape uint32, b []byte) (cells []rows.Cell, texts rowTexts, err error) {
	c := cursor{b: b}
	steps := m.steps[m.first[shape]:m.first[shape+1]]
	for i := range steps {
		p := &steps[i]
		c.at += int(p.skip)
		if p.role != noRole {
			ahead := c
			if text := m.text(p, &ahead); p.role == nameRole {
				texts.name = text
			} else {
				texts.traceState = text
			}
		}
		switch p.conversion {
		case drop:
			c.pass(p.form)
		case asNumber:
			dst = append(dst, rows.Cell{Num: c.number(p.form)})
		case asInteger:
			n := c.number(p.form)
			m.filters.addInteger(p.filter, n)
			dst = append(dst, rows.Cell{Num: n})
		case asText:
			text := m.text(p, &c)
			if p.filter != unused {
				m.filters.add(p.filter, text)
			}
			dst = append(dst, rows.Cell{Data: text})
		default:
			rank, ok := m.dictionaries[p.column].read(&c)
			if !ok {
				return dst, rowTexts{}, fmt.Errorf("BUG: first pass did not count a text in column %d", p.column)
			}
			dst = append(dst, rows.Cell{Word: rank + 1})
		}
	}
	if !c.done() {
		return dst, rowTexts{}, fmt.Errorf("BUG: row of shape %d changed between the two passes", shape)
	}
	return dst, texts, nil
}

// text decodes a text of a string column or another column.
func (m *flushConverter) text(p *convertStep, c *cursor) string {
	if p.form == cellText {
		return c.text()
	}
	if word := c.uvarint(); word > 0 {
		return m.words[p.column][word-1]
	}
	return c.text()
}
