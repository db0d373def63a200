package find

import (
	"context"
	"iter"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// SelectSpans implements tracestore.Reader. It reads the heads of all rows of the trace, the
// links of those that have any, and the selected rows.
func (f *Finder) SelectSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, spans []otlpdata.SpanID,
) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		s := f.store.BeginQuery(ctx)
		defer s.Release()
		r := newTraceReader(s, tenant)
		r.selector = newSelector(id, spans)
		for b, err := range r.pieces(ctx, id) {
			if !yield(tracestore.Trace{ID: id, Spans: b}, err) || err != nil {
				return
			}
		}
		if err := s.Damaged(); err != nil {
			yield(tracestore.Trace{}, err)
		}
	}
}

// selector selects the rows of SelectSpans.
type selector struct {
	trace   otlpdata.TraceID
	ids     map[otlpdata.SpanID]struct{}
	decoder otlpdata.SpanReader

	// Of the current source.
	tables *rows.Tables
	links  []int32 // by shape: index of the links in Shape.Columns, -1 for none, or linksUnknown
}

const linksUnknown = -2

func newSelector(trace otlpdata.TraceID, spans []otlpdata.SpanID) *selector {
	s := &selector{trace: trace, ids: make(map[otlpdata.SpanID]struct{}, len(spans))}
	for _, id := range spans {
		s.ids[id] = struct{}{}
	}
	return s
}

// selects reports whether a row with the head h is selected. t is the vocabulary of its source.
func (s *selector) selects(t *rows.Tables, b source.Block, row int, h *rows.Head) (bool, error) {
	if _, is := s.ids[h.SpanID]; is {
		return true, nil
	}
	if s.tables != t {
		s.tables, s.links = t, slices.Repeat([]int32{linksUnknown}, len(t.Shapes))
	}
	if int(h.Shape) >= len(s.links) {
		return false, scan.ErrReference
	}
	place := &s.links[h.Shape]
	if *place == linksUnknown {
		*place = int32(slices.IndexFunc(t.Shapes[h.Shape].Columns, func(c uint32) bool {
			return int(c) < len(t.Columns) && t.Columns[c].Place == rows.Links
		}))
	}
	if *place < 0 {
		return false, nil
	}
	cell, err := b.Cell(row, int(*place))
	if err != nil {
		return false, err
	}
	span, err := s.decoder.Read([]byte(cell.Data))
	if err != nil {
		return false, err
	}
	return tracestore.LinksTo(span.Links, s.trace, s.ids), nil
}
