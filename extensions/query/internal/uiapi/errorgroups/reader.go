package errorgroups

import (
	"errors"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	// tracePage is the number of traces per request to the store.
	tracePage = 500
	// maxSpans is the maximum number of spans in traces that are read. Reading takes about 1 us per
	// span.
	maxSpans = 200_000
)

// condition limits the failed spans.
type condition struct {
	where tracestore.Expr
	set   storequery.SpanSet // not nil if the spans depend on whole traces
}

// ofFailed returns the condition on single spans.
func (c condition) ofFailed() tracestore.Expr {
	if c.where == nil {
		return failed()
	}
	return tracestore.And{failed(), c.where}
}

// failed is the condition for failed spans.
func failed() tracestore.Cond {
	return tracestore.Cond{Field: tracestore.Field{Place: tracestore.Status}, Op: tracestore.Eq, Value: tracestore.Text("error")}
}

// reader reads the newest failed spans of a window, until Limits.Errors of them or maxSpans spans
// were read.
type reader struct {
	slot     *core.Slot
	window   core.Window
	from, to uint64
	where    tracestore.Expr
	set      storequery.SpanSet
	visit    func(tracestore.Span) error
	examined int    // failed spans
	scanned  int    // all spans of their traces
	since    uint64 // all readable failed spans that start after this were examined
	complete bool
}

func newReader(slot *core.Slot, w core.Window, c condition, visit func(tracestore.Span) error) *reader {
	r := &reader{slot: slot, window: w, set: c.set, visit: visit}
	r.where = tracestore.WithContext(slot.Context(), c.ofFailed())
	r.from, r.to, _ = tracestore.Query{From: w.From, To: w.To}.Window()
	r.since = r.to
	return r
}

// errEnough ends the search when enough spans were read.
var errEnough = errors.New("enough failed spans were read")

// read reads failed spans, newest first. incomplete says which spans are missing for reasons other
// than the limits.
func (r *reader) read() (incomplete tracestore.Reasons, _ error) {
	q := tracestore.Query{Tenant: r.slot.Tenant(), From: r.window.From, To: r.window.To, Where: r.where,
		Limit: tracePage, Budget: r.slot.Budget()}
	for {
		found := 0
		o, err := r.slot.Find(q, r.set, func(id otlpdata.TraceID, spans *otlpdata.Batch) error {
			found++
			return r.trace(id, spans)
		})
		if errors.Is(err, errEnough) {
			return incomplete, nil
		}
		if err != nil {
			return nil, err
		}
		if incomplete.Complete() {
			incomplete = o.Reasons
		}
		// A full page may be followed by others even if a part of the store cannot be read.
		if !o.Next.Set || o.Next == q.After || !o.Complete() && found < tracePage {
			r.complete = incomplete.Complete()
			if o.Complete() || !o.Next.Set { // everything readable was examined
				r.since = r.from
			}
			return incomplete, nil
		}
		q.After = o.Next
	}
}

// trace reads the failed spans of a trace.
func (r *reader) trace(id otlpdata.TraceID, spans *otlpdata.Batch) error {
	if r.examined >= r.slot.Limits().Errors || r.scanned > 0 && r.scanned+spans.Len() > maxSpans {
		return errEnough
	}
	r.scanned += spans.Len()
	newest := uint64(0)
	visit := func(s tracestore.Span) error {
		if s.Start < r.from || s.Start > r.to || !tracestore.Match(r.where, s) {
			return nil
		}
		newest = max(newest, s.Start)
		r.examined++
		return errors.Join(r.slot.Context().Err(), r.visit(s)) // stack traces take time
	}
	var err error
	if r.set != nil {
		err = storequery.VisitSelected(r.slot.Context(), r.set, id, false, visit, spans)
	} else {
		err = tracestore.WalkSpans(spans, visit)
	}
	r.since = min(r.since, newest)
	return errors.Join(err, r.slot.Context().Err()) // conditions may be wrong after that, see tracestore.WithContext
}
