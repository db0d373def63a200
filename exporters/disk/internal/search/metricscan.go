package search

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// scan counts the spans of a source that start within a window, and what they stand for if they are to be adjusted. Damage is noted.
func (m *metricsReader) scan(ctx context.Context, src int, w window, adjusted bool) error {
	t, err := m.tablesOf(src)
	if err != nil || t == nil {
		return err
	}
	blocks, err := m.blocksOf(src)
	if err != nil {
		return err
	}
	s := &metricsScan{metricsReader: m, src: src, tables: t, blocks: blocks, window: w, adjusted: adjusted,
		shapes: make([]metricsShape, len(t.Shapes))}
	if _, ok := m.sources[src].(source.Statistics); !ok {
		if err := s.findTwins(ctx); err != nil {
			return err
		}
	}
	if err := s.eachBlock(ctx, s.block); err != nil {
		return err
	}
	return s.countTwins(ctx)
}

// metricsScan reads the rows of one source.
type metricsScan struct {
	*metricsReader
	src    int
	tables *rows.Tables
	blocks []source.BlockInfo
	window window
	// adjusted: spans may stand for others.
	adjusted bool
	shapes   []metricsShape // by shape
	twins    map[twin]struct{}
	contentReader
}

// metricsShape is what counting needs of a shape.
type metricsShape struct {
	use    shapeUse
	series int // if use is inSeries
	failed bool
	state  int // position of the tracestate; -1: there is none, or it does not matter
}

// shapeUse says what becomes of the spans of a shape.
type shapeUse uint8

const (
	unseen   shapeUse = iota
	passed            // not asked for, or there is no room
	inSeries          // counted in one series
	byNames           // counted in series by the names in rows
)

// eachBlock calls f with the blocks that touch the window.
func (s *metricsScan) eachBlock(ctx context.Context, f func(b source.Block) (lost int, err error)) error {
	for i := range s.blocks {
		if !s.window.touches(&s.blocks[i]) {
			continue
		}
		spans := s.blocks[i].Rows
		err := s.open(ctx, s.src, i, func(b source.Block) error {
			lost, err := f(b)
			if err == nil && lost > 0 {
				spans, err = lost, errReference
			}
			return err
		})
		if err = s.damage.note(s.sources[s.src], blockName(i), spans, err); err != nil {
			return err
		}
	}
	return nil
}

// block counts the spans of a block, but those that may have duplicates. It returns how many have lost what they refer to.
func (s *metricsScan) block(b source.Block) (lost int, _ error) {
	shapes, starts, ends, err := columns(b)
	if err != nil {
		return 0, err
	}
	var h rows.Head
	for row, start := range starts {
		if !s.window.has(start) {
			continue
		}
		shape := s.shape(shapes[row])
		if shape == nil {
			lost++
		}
		if shape == nil || shape.use == passed {
			continue
		}
		if len(s.twins) > 0 {
			if err := b.Head(row, &h); err != nil {
				return 0, err
			}
			if s.isTwin(&h) {
				continue
			}
		}
		if err := s.count(b, row, shapes[row], start, ends[row]); err != nil {
			return 0, err
		}
	}
	return lost, nil
}

func columns(b source.Block) (shapes []uint32, starts, ends []uint64, err error) {
	if shapes, err = b.Shapes(); err == nil {
		starts, err = b.Starts()
	}
	if err == nil {
		ends, err = b.Ends()
	}
	return shapes, starts, ends, err
}

// shape returns what is known of a shape, or nil where it was lost.
func (s *metricsScan) shape(id uint32) *metricsShape {
	if int(id) >= len(s.shapes) {
		return nil
	}
	m := &s.shapes[id]
	if m.use != unseen {
		return m
	}
	shape := &s.tables.Shapes[id]
	if shape.Service == "" || !readable(s.tables, shape) { // a service never is ""
		return nil
	}
	span := otlpdata.Span{Name: shape.Name, Kind: shape.Kind}
	m.use, m.failed, m.state = passed, shape.Status == otlpdata.StatusError, -1
	if s.adjusted {
		m.state = s.tables.TraceStateOf(shape)
	}
	switch {
	case shape.Tenant != s.tenant || !s.counter.Wants(shape.Service, span.KindName()):
	case shape.NameInRow && s.byOperation:
		m.use = byNames
	default:
		var room bool
		if m.series, room = s.counter.Series(shape.Service, span.Operation()); room {
			m.use = inSeries
		}
	}
	return m
}

// count counts a row of a shape that is not passed over.
func (s *metricsScan) count(b source.Block, row int, shape uint32, start, end uint64) error {
	m := &s.shapes[shape]
	series := m.series
	if m.use == byNames {
		name, err := nameOf(s.tables, &s.tables.Shapes[shape], b, row)
		if err != nil {
			return err
		}
		span := otlpdata.Span{Name: name}
		var room bool
		if series, room = s.counter.Series(s.tables.Shapes[shape].Service, span.Operation()); !room {
			return nil
		}
	}
	n := uint64(1)
	if m.state >= 0 {
		var err error
		if n, err = s.adjustedCount(b, row, shape, m.state); err != nil {
			return err
		}
	}
	h := rows.Head{Start: start, End: end}
	s.counter.AddSpan(series, start, h.Duration(), n, m.failed)
	return nil
}

// adjustedCount returns how many spans one stands for whose tracestate is at a position. Few have a threshold: the ids of others are not
// read.
func (s *metricsScan) adjustedCount(b source.Block, row int, shape uint32, position int) (uint64, error) {
	c, err := b.Cell(row, position)
	if err != nil {
		return 0, err
	}
	said := otlpdata.ParseSampling(s.tables.Text(s.tables.Shapes[shape].Columns[position], c))
	if !said.HasThreshold {
		return 1, nil
	}
	var h rows.Head
	if err := b.Head(row, &h); err != nil {
		return 0, err
	}
	return said.AdjustedCount(h.TraceID, h.SpanID), nil
}
