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

// metShape is what the first pass of a merge knows of a shape of an input.
type metShape struct {
	rows uint32
	open []int32 // positions that rows differ in and that may still be constant in the union, or whose texts are counted
}

// survey is the first pass: what the rows share, and where those of each trace are.
func (m *merger) survey() error {
	m.planner = newPlanner(m.union.tables)
	m.planner.borrowed, m.planner.largest = true, maxMergedDictionary
	m.traces = fragmentTable{traceTable: newTraceTable(m.union.tables)}
	m.traces.expect(m.expected())
	for i := range m.blocks {
		if err := m.surveyBlock(uint32(i)); err != nil {
			return err
		}
		if of := m.blocks[i].input; i+1 == len(m.blocks) || m.blocks[i+1].input != of {
			m.countConstants(&m.inputs[of])
		}
	}
	m.union.forget()
	m.planner.finish()
	m.traces.sort()
	return nil
}

// expected returns about how many traces there are: each once for each input, as far as inputs know.
func (m *merger) expected() (traces int) {
	for i := range m.inputs {
		if s, ok := m.inputs[i].Source.(*Segment); ok {
			traces += min(s.info.Traces, s.info.Rows)
		}
	}
	return min(traces, maxExpected)
}

func (m *merger) surveyBlock(number uint32) error {
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
		if err := m.surveyRow(of, b, number, row); err != nil {
			return err
		}
		if err := m.pace(); err != nil {
			return err
		}
	}
	return nil
}

// headParts are the parts of the heads of a block's rows that the first pass needs.
type headParts struct {
	shapes, resources []uint32
	starts            []uint64
	partial           source.Partial // nil: whole heads are read
	head              rows.Head      // of the row at hand
}

func (p *headParts) read(b source.Block) (err error) {
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

// of makes head that of a row, as far as it is needed.
func (p *headParts) of(b source.Block, row int) (err error) {
	h := &p.head
	if p.partial == nil {
		return b.Head(row, h)
	}
	h.Shape, h.Resource, h.Start = p.shapes[row], p.resources[row], p.starts[row]
	h.TraceID, err = p.partial.TraceID(row)
	return err
}

func (m *merger) surveyRow(of *input, b source.Block, number uint32, row int) error {
	h := &m.heads.head
	err := m.heads.of(b, row)
	if err == nil {
		err = m.look(of, b, row, h.Shape)
	}
	if err != nil {
		m.info.Unreadable++
		return m.tolerate(err)
	}
	if m.seen++; m.seen > math.MaxInt32 {
		return fmt.Errorf("%w: more than %d rows", ErrTooLarge, math.MaxInt32)
	}
	h.Resource = of.resources[h.Resource]
	m.planner.resources[h.Resource]++
	m.traces.add(h, number, row)
	return nil
}

// look gives the planner those cells of a row that it needs. If one cannot be read, some of the others may be counted all the same: a
// column then has a word too many, or a position no constant.
func (m *merger) look(of *input, b source.Block, row int, id uint32) error {
	met, shape := &of.met[id], of.shapes[id]
	if met.rows == 0 {
		if err := m.meet(of, b, row, id); err != nil {
			return err
		}
	} else {
		positions := m.planner.positionsOf(shape)
		for i := 0; i < len(met.open); {
			at := met.open[i]
			c, err := b.Cell(row, int(at))
			if err != nil {
				return err
			}
			pos := &positions[at]
			if m.planner.see(shape, int(at), of.cell(pos.column, c)); pos.state != varies {
				i++
				continue
			}
			met.open[i] = met.open[len(met.open)-1]
			met.open = met.open[:len(met.open)-1]
		}
	}
	met.rows++
	m.planner.shapes[shape]++
	return nil
}

// meet looks at the first row that an input has of a shape. The shape's constants are those of all its rows.
func (m *merger) meet(of *input, b source.Block, row int, id uint32) error {
	p, met, shape := m.planner, &of.met[id], of.shapes[id]
	met.open = met.open[:0]
	positions := p.positionsOf(shape)
	for i := range positions {
		pos := &positions[i]
		c, constant := of.Constant(id, i)
		if !constant {
			if p.shapes[shape] == 0 && isBlob(p.in.Columns[pos.column].Place) {
				pos.state = varies
			}
			if pos.state == varies {
				continue // without the time to decode what tells nothing new
			}
			var err error
			if c, err = b.Cell(row, i); err != nil {
				return err
			}
		}
		c = of.cell(pos.column, c)
		switch {
		case p.shapes[shape] == 0:
			p.start(shape, i, c)
		case constant:
			p.compare(shape, i, c)
		default:
			p.see(shape, i, c)
		}
		if !constant && pos.state != varies {
			met.open = append(met.open, int32(i))
		}
	}
	return nil
}

// countConstants counts the constants of an input's shapes that are none in the union. All its rows were seen.
func (m *merger) countConstants(of *input) {
	for id := range of.met {
		shape, n := of.shapes[id], of.met[id].rows
		if n == 0 {
			continue
		}
		positions := m.planner.positionsOf(shape)
		for i := range positions {
			pos := &positions[i]
			if pos.state != counts {
				continue
			}
			if c, constant := of.Constant(uint32(id), i); constant {
				m.planner.count(pos.column, of.cell(pos.column, c), n)
			}
		}
	}
	of.met = nil
}

// start takes in the cell at a position of the first row of a shape.
func (p *planner) start(shape uint32, i int, c rows.Cell) {
	c.Data = strings.Clone(c.Data)
	p.cellsOf(shape)[i] = c
	if pos := &p.positionsOf(shape)[i]; isBlob(p.in.Columns[pos.column].Place) {
		pos.state = varies
	} else {
		p.hold(pos, c)
	}
}
