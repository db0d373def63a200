package core

import (
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// FindSpans returns the spans of a trace that meet a condition: those of the store, or of the
// archive if the store does not have the trace. Stores that cannot find single spans are read as a
// whole. incomplete and err are as in Trace, and the error matches ErrTraceNotFound if there is no
// such trace.
func (s *Slot) FindSpans(
	ref tracestore.TraceRef, c tracestore.SpanCondition,
) (found tracestore.FoundSpans, incomplete tracestore.Reasons, err error) {
	found, err = s.findIn(s.backend.opts.Store, ref, c)
	damage, err := tracestore.DamageOf(err)
	if err == nil && found.Spans == 0 && s.backend.HasArchive() {
		found, err = s.findIn(s.backend.opts.Archive, ref, c)
		var archived tracestore.Reasons
		if archived, err = tracestore.DamageOf(err); !archived.Complete() {
			damage = archived
		}
	}
	switch {
	case err != nil:
		return found, nil, err
	case found.Spans == 0 && damage.Complete():
		return found, nil, ErrTraceNotFound
	case found.Spans == 0:
		return found, nil, damaged(damage)
	}
	return found, damage, nil
}

func (s *Slot) findIn(
	from tracestore.Reader, ref tracestore.TraceRef, c tracestore.SpanCondition,
) (found tracestore.FoundSpans, err error) {
	if finder, ok := tracestore.As[tracestore.SpanReader](s.ctx, s.Tenant(), from); ok {
		found, err = finder.FindSpans(s.ctx, s.Tenant(), ref.ID, c)
		if herr := s.HoldMore(int64(len(found.IDs) * len(otlpdata.SpanID{}))); herr != nil {
			return tracestore.FoundSpans{}, herr
		}
		return found, err
	}
	m := c.Matcher(s.ctx)
	for piece, err := range from.Traces(s.ctx, s.Tenant(), []tracestore.TraceRef{ref}) {
		if err != nil {
			return found, err
		}
		err := tracestore.WalkSpans(piece.Spans, func(sp tracestore.Span) error {
			if found.Spans++; m.Matches(sp) {
				found.IDs = append(found.IDs, sp.SpanID)
			}
			return nil
		})
		if err == nil {
			err = s.HoldMore(int64(piece.Spans.Len() * len(otlpdata.SpanID{})))
		}
		if err != nil {
			return tracestore.FoundSpans{}, err
		}
	}
	return found, s.ctx.Err()
}
