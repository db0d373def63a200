package core

import (
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// FindSpans returns the spans of a trace that meet a condition, from the store or, if the store
// does not have the trace, from the archive. incomplete and err are as in Trace, and the error
// matches ErrTraceNotFound if there is no such trace.
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
	found, err = from.FindSpans(s.ctx, s.Tenant(), ref.ID, c)
	if herr := s.HoldMore(int64(len(found.IDs) * len(otlpdata.SpanID{}))); herr != nil {
		return tracestore.FoundSpans{}, herr
	}
	return found, err
}
