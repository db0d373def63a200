package aggregate

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// scan counts the spans of a source that start within a window. If adjusted is set, each span is
// weighted by its adjusted count. Damaged data does not end the scan; it is recorded in the
// session.
func (m *metricsQuery) scan(ctx context.Context, src int, w scan.Window, adjusted bool) error {
	t, err := m.session.Tables(src)
	if err != nil || t == nil {
		return err
	}
	blocks, err := m.session.Blocks(src)
	if err != nil {
		return err
	}
	s := &metricsScan{reader: m, src: src, tables: t, blocks: blocks, window: w, adjusted: adjusted,
		shapes: make([]metricsShape, len(t.Shapes))}
	if _, ok := m.session.Sources[src].(source.Statistics); !ok {
		if err := s.findDuplicates(ctx); err != nil {
			return err
		}
	}
	if err := s.eachBlock(ctx, s.block); err != nil {
		return err
	}
	return s.countDuplicates(ctx)
}

// metricsScan reads the rows of one source.
type metricsScan struct {
	reader     *metricsQuery
	src        int
	tables     *rows.Tables
	blocks     []source.BlockInfo
	window     scan.Window
	adjusted   bool           // spans may have adjusted counts other than 1
	shapes     []metricsShape // by shape
	duplicates map[scan.SpanKey]struct{}
	content    scan.ContentReader
}

// metricsShape holds the properties of a shape (similar spans) that counting needs.
type metricsShape struct {
	use    shapeUse
	series int // if use is inSeries
	failed bool
	state  int // position of the tracestate cell; -1: none, or not needed
}

// shapeUse says how the spans of a shape are counted.
type shapeUse uint8

const (
	notSeen  shapeUse = iota
	skipped           // not requested, or the result is full
	inSeries          // all in one series
	byName            // in series by the names in rows
)

// eachBlock calls f with the blocks that may have rows within the window.
func (s *metricsScan) eachBlock(ctx context.Context, f func(b source.Block) (lost int, err error)) error {
	for i := range s.blocks {
		if !s.window.Touches(&s.blocks[i]) {
			continue
		}
		spans := s.blocks[i].Rows
		err := s.reader.session.OpenBlock(ctx, s.src, i, func(b source.Block) error {
			lost, err := f(b)
			if err == nil && lost > 0 {
				spans, err = lost, scan.ErrReference
			}
			return err
		})
		if err = s.reader.session.NoteDamage(s.src, scan.BlockPart(i), spans, err); err != nil {
			return err
		}
	}
	return nil
}

// block counts the spans of a block, except possible duplicates. It returns the number of spans
// whose shape definition is lost.
func (s *metricsScan) block(b source.Block) (lost int, _ error) {
	shapes, starts, ends, err := columns(b)
	if err != nil {
		return 0, err
	}
	var h rows.Head
	for row, start := range starts {
		if !s.window.Contains(start) {
			continue
		}
		shape := s.shape(shapes[row])
		if shape == nil {
			lost++
		}
		if shape == nil || shape.use == skipped {
			continue
		}
		if len(s.duplicates) > 0 {
			if err := b.Head(row, &h); err != nil {
				return 0, err
			}
			if s.mayBeDuplicate(&h) {
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

// shape returns the properties of a shape, or nil if its definition is lost.
func (s *metricsScan) shape(id uint32) *metricsShape {
	if int(id) >= len(s.shapes) {
		return nil
	}
	m := &s.shapes[id]
	if m.use != notSeen {
		return m
	}
	shape := &s.tables.Shapes[id]
	if shape.Service == "" || !scan.Readable(s.tables, shape) { // every shape has a service
		return nil
	}
	span := otlpdata.Span{Name: shape.Name, Kind: shape.Kind}
	m.use, m.failed, m.state = skipped, shape.Status == otlpdata.StatusError, -1
	if s.adjusted {
		m.state = s.tables.TraceStateOf(shape)
	}
	switch {
	case shape.Tenant != s.reader.tenant || !s.reader.counter.Wants(shape.Service, span.KindName()):
	case shape.NameInRow && s.reader.byOperation:
		m.use = byName
	default:
		var ok bool
		if m.series, ok = s.reader.counter.Series(shape.Service, span.Operation(), span.KindName()); ok {
			m.use = inSeries
		}
	}
	return m
}

// count counts a row of a shape that is not skipped.
func (s *metricsScan) count(b source.Block, row int, shape uint32, start, end uint64) error {
	m := &s.shapes[shape]
	series := m.series
	if m.use == byName {
		name, err := scan.SpanName(s.tables, &s.tables.Shapes[shape], b, row)
		if err != nil {
			return err
		}
		span := otlpdata.Span{Name: name, Kind: s.tables.Shapes[shape].Kind}
		var ok bool
		if series, ok = s.reader.counter.Series(s.tables.Shapes[shape].Service, span.Operation(), span.KindName()); !ok {
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
	s.reader.counter.AddSpan(series, start, h.Duration(), n, m.failed)
	return nil
}

// adjustedCount returns the adjusted count of a row whose tracestate is at a position. It reads ids
// only if there is a threshold, which is rare.
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
