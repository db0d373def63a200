package core

import (
	"maps"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// SelectSpans returns the spans of a trace for which tracestore.SelectsSpan is true, from the store
// or, if it has none, from the archive. incomplete and err are as in Trace. The memory of the spans
// is added to the memory that the query holds.
func (s *Slot) SelectSpans(
	ref tracestore.TraceRef, ids map[otlpdata.SpanID]struct{},
) (spans []*otlpdata.Batch, incomplete tracestore.Reasons, err error) {
	spans, damage, err := s.selectFrom(s.backend.opts.Store, ref, ids)
	if err == nil && len(spans) == 0 && s.backend.HasArchive() {
		var archived tracestore.Reasons
		if spans, archived, err = s.selectFrom(s.backend.opts.Archive, ref, ids); damage.Complete() {
			damage = archived
		}
	}
	switch {
	case err != nil || damage.Complete():
		return spans, nil, err
	case len(spans) == 0:
		return nil, nil, damaged(damage)
	}
	return spans, damage, nil
}

// selectFrom returns the selected spans of a trace, and which parts cannot be read.
func (s *Slot) selectFrom(
	from tracestore.Reader, ref tracestore.TraceRef, ids map[otlpdata.SpanID]struct{},
) (spans []*otlpdata.Batch, damage tracestore.Reasons, err error) {
	for piece, err := range from.SelectSpans(s.ctx, s.Tenant(), ref.ID, slices.Collect(maps.Keys(ids))) {
		if damage, err = tracestore.DamageOf(err); !damage.Complete() {
			return spans, damage, nil
		}
		if err != nil {
			return nil, nil, err
		}
		selected, err := selectSpans(piece.Spans, ids)
		if err == nil && selected.Len() > 0 {
			spans = append(spans, selected)
			err = s.hold(selected)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return spans, nil, nil
}

// selectSpans returns a batch with the selected spans of another batch.
func selectSpans(b *otlpdata.Batch, ids map[otlpdata.SpanID]struct{}) (*otlpdata.Batch, error) {
	var chunk []byte
	var counts []otlpdata.ServiceCount
	err := tracestore.WalkSpans(b, func(sp tracestore.Span) error {
		if !tracestore.SelectsSpan(sp.Span, ids) {
			return nil
		}
		raw := sp.Raw
		if raw == nil {
			raw = otlpdata.AppendSpan(nil, sp.Span)
		}
		chunk = otlpdata.AppendResourceSpans(chunk, sp.Resource, sp.Scope, raw)
		count := otlpdata.ServiceCount{Service: sp.Resource.Service}
		count.Add(sp.ParentID.IsZero(), false)
		counts = append(counts, count)
		return nil
	})
	return otlpdata.FromStored(chunk, b.Meta(), counts...), err
}
