package live

import (
	"context"
	"errors"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// reader reads summaries from the store of a backend. Because it reads the stored trace and not
// only the spans that were watched, a summary is complete even if parts of the trace arrived before
// the client or were missed.
type reader struct {
	ctx      context.Context
	backend  *core.Backend
	maxSpans int
}

// read implements summaryReader. All traces are one query.
func (r reader) read(ids []otlpdata.TraceID, found func(*tracestore.Summary)) (tooLong int) {
	slot, err := r.backend.Admit(r.ctx, core.OpFindSummaries)
	if err != nil {
		return 0
	}
	defer slot.Release()
	_ = slot.Measure(func() (n int, last error) {
		for _, id := range ids {
			s, err := r.summary(slot, id)
			switch {
			case errors.Is(err, errTooLong):
				tooLong++
			case err != nil:
				last = err
			case s.Spans > 0: // the store has the trace
				n++
				found(&s)
			}
		}
		return n, last
	})
	return tooLong
}

var errTooLong = errors.New("trace has more than tail.max_trace_spans spans")

// summaryMemory is the approximate memory in bytes that a span takes while its trace is summarized.
const summaryMemory = 256

func (r reader) summary(slot *core.Slot, id otlpdata.TraceID) (s tracestore.Summary, err error) {
	hold := func(spans, textBytes int) error {
		if spans > r.maxSpans {
			return errTooLong
		}
		return slot.SetHeld(int64(spans)*summaryMemory + int64(textBytes))
	}
	err = slot.Store().Outline(slot.Context(), slot.Tenant(), id, r.maxSpans, hold, func(spans []tracestore.SummarySpan) error {
		if len(spans) > r.maxSpans {
			return errTooLong
		}
		s = storequery.SummarizeSpans(id, spans)
		return nil
	})
	if damaged := (*tracestore.DamagedError)(nil); errors.As(err, &damaged) && s.Spans > 0 {
		err = nil // the rest of the trace is shown
	}
	return s, err
}
