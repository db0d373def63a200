package explain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// errRead stops reading traces when time runs out.
var errRead = errors.New("no more time to read traces")

// countAttributes reads the examined traces of a profile and counts their attributes. incomplete
// says what could not be read.
func countAttributes(slot *core.Slot, p *tracestore.PathProfile, c *counter) (incomplete tracestore.Reasons, err error) {
	refs, selected := examined(p)
	r := reader{slot: slot, counter: c, selected: selected, until: earlyDeadline(slot.Context())}
	r.memory, _ = tracestore.Reserve(slot.Context(), 0) // cannot fail: it reserves 0 bytes
	defer r.memory.Release()
	incomplete, err = tracestore.DamageOf(r.read(refs))
	if errors.Is(err, errRead) || errors.Is(err, context.DeadlineExceeded) || tracestore.IsOutOfMemory(err) {
		text := fmt.Sprintf("attributes were read from %d of %d traces: %s", len(c.traces), len(refs), err)
		return tracestore.Because(tracestore.KindOf(err), text), nil
	}
	return incomplete, err
}

// examined returns the traces of a profile, and which of them are selected. The two sides are mixed
// so that the first traces are a sample of both.
func examined(p *tracestore.PathProfile) ([]tracestore.TraceRef, map[otlpdata.TraceID]bool) {
	sides := [2][]otlpdata.TraceID{p.Rest.IDs, p.Selected.IDs}
	n := len(sides[0]) + len(sides[1])
	refs, selected := make([]tracestore.TraceRef, 0, n), make(map[otlpdata.TraceID]bool, n)
	taken := [2]int{}
	for range n {
		side := 0
		if taken[1]*len(sides[0]) < taken[0]*len(sides[1]) || taken[0] == len(sides[0]) {
			side = 1
		}
		id := sides[side][taken[side]]
		taken[side]++
		refs = append(refs, tracestore.TraceRef{ID: id})
		selected[id] = side == 1
	}
	return refs, selected
}

// reader reads traces into a counter.
type reader struct {
	slot     *core.Slot
	counter  *counter
	selected map[otlpdata.TraceID]bool
	until    time.Time          // zero: no limit
	memory   *tracestore.Memory // of the trace that is read
}

func (r *reader) read(refs []tracestore.TraceRef) error {
	var current otlpdata.TraceID
	spans := 0 // of the current trace
	for piece, err := range r.slot.Store().Traces(r.slot.Context(), r.slot.Tenant(), refs) {
		if err != nil {
			return err
		}
		if spans == 0 || piece.ID != current {
			if !r.until.IsZero() && time.Now().After(r.until) {
				return errRead
			}
			if err := r.counter.beginTrace(r.selected[piece.ID]); err != nil {
				return err
			}
			current, spans = piece.ID, 0
		}
		if err := r.memory.Resize(int64(piece.Spans.Size())); err != nil {
			return err
		}
		err = tracestore.WalkSpans(piece.Spans, func(s tracestore.Span) error {
			if spans++; spans > r.slot.Limits().TraceSize {
				return nil
			}
			r.counter.span(s)
			return r.counter.chargeLarge()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// earlyDeadline returns a time before the deadline of a query that leaves a tenth of the remaining
// time for the response. It is zero if there is no deadline.
func earlyDeadline(ctx context.Context) time.Time {
	end, ok := ctx.Deadline()
	if !ok {
		return end
	}
	return end.Add(-time.Until(end) / 10)
}
