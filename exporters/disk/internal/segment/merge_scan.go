package segment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// shapeState is the state of a shape of an input in the first pass. undecided lists positions that
// vary in the input but may be constant in the merged segment, or whose texts are counted.
type shapeState struct {
	rows      uint32
	undecided []int32
}

// firstPass determines what the rows have in common, and the locations of the rows of each trace.
func (m *merger) firstPass() error {
	m.analyzer = newAnalyzer(m.tables.Tables())
	m.analyzer.copyTexts, m.analyzer.maxTexts = true, maxMergedDictionary
	m.traces = fragmentTable{traceTable: newTraceTable(m.tables.Tables())}
	m.traces.reserve(m.expectedTraces())
	for i := range m.blocks {
		if err := m.scanBlock(uint32(i)); err != nil {
			return err
		}
		if of := m.blocks[i].input; i+1 == len(m.blocks) || m.blocks[i+1].input != of {
			m.countVaryingConstants(&m.inputs[of])
		}
	}
	m.tables.Release()
	m.analyzer.finish()
	m.traces.sort()
	return nil
}

// expectedTraces returns an estimate of the number of traces: the sum over the inputs whose number
// of traces is known.
func (m *merger) expectedTraces() (traces int) {
	for i := range m.inputs {
		if s, ok := m.inputs[i].Source.(*Segment); ok {
			traces += min(s.info.Traces, s.info.Rows)
		}
	}
	return min(traces, maxExpectedTraces)
}

func (m *merger) scanBlock(number uint32) error {
	of := &m.inputs[m.blocks[number].input]
	b, err := of.Open(context.Background(), int(m.blocks[number].number))
	if err != nil {
		var d *source.DamageError
		if errors.As(err, &d) {
			m.info.Unreadable += d.Rows
		}
		return m.tolerate(err)
	}
	defer b.Close()
	if err := m.heads.read(b); err != nil {
		m.info.Unreadable += b.Len()
		return m.tolerate(err)
	}
	for row := range b.Len() {
		if err := m.scanRow(of, b, number, row); err != nil {
			return err
		}
		if err := m.pace(); err != nil {
			return err
		}
	}
	return nil
}

// headColumns are the parts of the heads of a block that the first pass needs.
type headColumns struct {
	shapes, resources []uint32
	starts            []uint64
	partial           source.Partial // nil: whole heads are read
	head              rows.Head      // of the current row
}

func (p *headColumns) read(b source.Block) (err error) {
	if p.shapes, err = b.Shapes(); err != nil {
		return err
	}
	if p.resources, err = b.Resources(); err != nil {
		return err
	}
	p.partial, _ = b.(source.Partial)
	p.starts, err = b.Starts()
	return err
}

// of reads the head of a row into p.head, as far as needed.
func (p *headColumns) of(b source.Block, row int) (err error) {
	h := &p.head
	if p.partial == nil {
		return b.Head(row, h)
	}
	h.Shape, h.Resource, h.Start = p.shapes[row], p.resources[row], p.starts[row]
	h.TraceID, err = p.partial.TraceID(row)
	return err
}

func (m *merger) scanRow(of *input, b source.Block, number uint32, row int) error {
	h := &m.heads.head
	err := m.heads.of(b, row)
	if err == nil {
		err = m.examineCells(of, b, row, h.Shape)
	}
	if err != nil {
		m.info.Unreadable++
		return m.tolerate(err)
	}
	if m.rowsSeen++; m.rowsSeen > math.MaxInt32 {
		return fmt.Errorf("%w: more than %d rows", ErrTooLarge, math.MaxInt32)
	}
	h.Resource = of.ids.Resources[h.Resource]
	m.analyzer.resources[h.Resource]++
	m.traces.add(h, number, row)
	return nil
}

// examineCells passes the needed cells of a row to the analyzer. If one of them is unreadable,
// others may be counted nevertheless: a dictionary then has an unnecessary word, or a position is
// not considered constant.
func (m *merger) examineCells(of *input, b source.Block, row int, id uint32) error {
	state, shape := &of.states[id], of.ids.Shapes[id]
	if state.rows == 0 {
		if err := m.examineFirstRow(of, b, row, id); err != nil {
			return err
		}
	} else {
		positions := m.analyzer.positionsOf(shape)
		for i := 0; i < len(state.undecided); {
			at := state.undecided[i]
			c, err := b.Cell(row, int(at))
			if err != nil {
				return err
			}
			pos := &positions[at]
			if m.analyzer.examine(shape, int(at), of.ids.Cell(pos.column, c)); pos.state != varies {
				i++
				continue
			}
			state.undecided[i] = state.undecided[len(state.undecided)-1]
			state.undecided = state.undecided[:len(state.undecided)-1]
		}
	}
	state.rows++
	m.analyzer.shapes[shape]++
	return nil
}

// examineFirstRow examines the first row of a shape in an input, including the constants of the
// shape.
func (m *merger) examineFirstRow(of *input, b source.Block, row int, id uint32) error {
	p, state, shape := m.analyzer, &of.states[id], of.ids.Shapes[id]
	state.undecided = state.undecided[:0]
	positions := p.positionsOf(shape)
	for i := range positions {
		pos := &positions[i]
		c, constant := of.Constant(id, i)
		if !constant {
			if p.shapes[shape] == 0 && isEncoded(p.in.Columns[pos.column].Place) {
				pos.state = varies
			}
			if pos.state == varies {
				continue // no need to decode the cell
			}
			var err error
			if c, err = b.Cell(row, i); err != nil {
				return err
			}
		}
		c = of.ids.Cell(pos.column, c)
		switch {
		case p.shapes[shape] == 0:
			p.startShape(shape, i, c)
		case constant:
			p.compare(shape, i, c)
		default:
			p.examine(shape, i, c)
		}
		if !constant && pos.state != varies {
			state.undecided = append(state.undecided, int32(i))
		}
	}
	return nil
}

// countVaryingConstants counts the constants of an input that are not constant in the merged
// segment. All rows of the input must have been examined.
func (m *merger) countVaryingConstants(of *input) {
	for id := range of.states {
		shape, n := of.ids.Shapes[id], of.states[id].rows
		if n == 0 {
			continue
		}
		positions := m.analyzer.positionsOf(shape)
		for i := range positions {
			pos := &positions[i]
			if pos.state != counting {
				continue
			}
			if c, constant := of.Constant(uint32(id), i); constant {
				m.analyzer.count(pos.column, of.ids.Cell(pos.column, c), n)
			}
		}
	}
	of.states = nil
}

// startShape sets the cell at a position from the first row of a shape.
func (p *analyzer) startShape(shape uint32, i int, c rows.Cell) {
	c.Data = strings.Clone(c.Data)
	p.cellsOf(shape)[i] = c
	if pos := &p.positionsOf(shape)[i]; isEncoded(p.in.Columns[pos.column].Place) {
		pos.state = varies
	} else {
		p.assumeConstant(pos, c)
	}
}
