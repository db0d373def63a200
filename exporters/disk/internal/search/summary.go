package search

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// summary returns the summary of a trace. It reads heads; whole spans only where two have the same start and id and may be duplicates.
func (r *traceReader) summary(ctx context.Context, id otlpdata.TraceID) (*tracestore.Summary, error) {
	var spans []tracestore.SummarySpan
	err := r.eachPart(ctx, id, func(src int, t *rows.Tables, b source.Block, list []int32) error {
		for _, row := range list {
			s, err := summarySpan(t, b, int(row))
			if err == nil {
				spans = append(spans, s)
			} else if err = r.damage.note(r.sources[src], partOfTrace(id), 1, err); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if spans, err = r.withoutDuplicates(ctx, id, spans); err != nil {
		return nil, err
	}
	out := tracestore.SummarizeSpans(id, spans)
	return &out, nil
}

func summarySpan(t *rows.Tables, b source.Block, row int) (tracestore.SummarySpan, error) {
	var h rows.Head
	if err := b.Head(row, &h); err != nil {
		return tracestore.SummarySpan{}, err
	}
	if int(h.Shape) >= len(t.Shapes) {
		return tracestore.SummarySpan{}, errReference
	}
	shape := &t.Shapes[h.Shape]
	name := otlpdata.Span{Name: shape.Name}
	if shape.NameInRow {
		var err error
		if name.Name, err = nameOf(t, shape, b, row); err != nil {
			return tracestore.SummarySpan{}, err
		}
	}
	return tracestore.SummarySpan{
		ID: h.SpanID, Parent: h.ParentID, Start: h.Start, Duration: h.Duration(),
		Service: shape.Service, Name: name.Operation(), Failed: shape.Status == otlpdata.StatusError,
	}, nil
}

// nameOf returns the name in a row. It may be kept when the block is closed.
func nameOf(t *rows.Tables, shape *rows.Shape, b source.Block, row int) (string, error) {
	for i, id := range shape.Columns {
		if int(id) < len(t.Columns) && t.Columns[id].Place == rows.Name {
			c, err := b.Cell(row, i)
			if err != nil {
				return "", err
			}
			return strings.Clone(t.Text(id, c)), nil
		}
	}
	return "", nil
}

// withoutDuplicates reads spans that have the same start and id, and counts duplicates among them once.
func (r *traceReader) withoutDuplicates(
	ctx context.Context, id otlpdata.TraceID, spans []tracestore.SummarySpan,
) ([]tracestore.SummarySpan, error) {
	slices.SortFunc(spans, func(a, b tracestore.SummarySpan) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), bytes.Compare(a.ID[:], b.ID[:]))
	})
	shared := make(map[spanKey]struct{})
	for i := range spans {
		if i > 0 && spans[i].Start == spans[i-1].Start && spans[i].ID == spans[i-1].ID {
			shared[spanKey{spans[i].Start, spans[i].ID}] = struct{}{}
		}
	}
	if len(shared) == 0 {
		return spans, nil
	}
	spans = slices.DeleteFunc(spans, func(s tracestore.SummarySpan) bool {
		_, is := shared[spanKey{s.Start, s.ID}]
		return is
	})
	r.only = shared
	defer func() { r.only = nil }()
	for b, err := range r.pieces(ctx, id) {
		if err == nil {
			err = tracestore.WalkSpans(b, func(s tracestore.Span) error {
				ns, _ := s.Duration()
				spans = append(spans, tracestore.SummarySpan{
					ID: s.SpanID, Parent: s.ParentID, Start: s.Start, Duration: ns,
					Service: s.Resource.Service, Name: s.Operation(), Failed: s.StatusCode == otlpdata.StatusError,
				})
				return nil
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return spans, nil
}
