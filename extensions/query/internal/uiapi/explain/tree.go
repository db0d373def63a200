package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/callpath"
)

// defaultTreeTraces is the default number of traces of a tree.
const defaultTreeTraces = 500

// tree merges the selected traces into one tree. The store samples them; they are then reread,
// because its counts have no durations.
func (r request) tree(slot *core.Slot) (any, tracestore.Reasons, error) {
	all, err := r.countSlowest(slot)
	if err != nil {
		return nil, nil, err
	}
	q := r.query
	q.From, q.To = later(q.From, r.selection.From), earlier(q.To, r.selection.To)
	q.Where = tracestore.And{q.Where, r.selection.Where}
	sets := r.sets()
	sample, err := r.profilePaths(slot, q, nothing, callpath.Sets{All: slices.Concat(sets.All, sets.Selected)})
	if err != nil {
		return nil, nil, err
	}
	if r.slowest == 0 && sample.Rest.Share < 1 {
		if all, err = r.count(slot); err != nil {
			return nil, nil, err
		}
	}
	sample.Reasons.Add(all.reasons...)
	memory, _ := tracestore.Reserve(slot.Context(), 0) // cannot fail: it reserves 0 bytes
	defer memory.Release()
	var w callpath.Waterfall
	w.ChargeTo(memory)
	reasons, err := addTraces(slot, sample.Rest.IDs, &w)
	if err != nil {
		return nil, nil, err
	}
	sample.Reasons.Add(reasons...)
	out := treeOf(&w, &sample)
	if n, ok := all.selected(&r); ok && !out.Set.Exact && n >= float64(out.Set.Traces) {
		out.Set.Estimated, out.Set.Exact, out.Set.Share = round(n), all.exact, float64(out.Set.Traces)/max(n, 1)
	}
	return out, sample.Reasons, nil
}

// addTraces reads traces into a waterfall. incomplete says what could not be read.
func addTraces(slot *core.Slot, ids []otlpdata.TraceID, w *callpath.Waterfall) (incomplete tracestore.Reasons, err error) {
	memory, _ := tracestore.Reserve(slot.Context(), 0) // cannot fail: it reserves 0 bytes
	defer memory.Release()
	hold := func(spans, textBytes int) error {
		return memory.Resize(int64(spans)*callpath.SpanMemory + int64(textBytes))
	}
	until, limit := earlyDeadline(slot.Context()), slot.Limits().TraceSize
	var tree callpath.Tree
	for i, id := range ids {
		if !until.IsZero() && time.Now().After(until) {
			err = errRead
		} else {
			err = slot.Store().Outline(slot.Context(), slot.Tenant(), id, limit, hold, func(spans []tracestore.SummarySpan) error {
				if limit > 0 && len(spans) > limit {
					spans = spans[:limit] // the store has said so
				}
				tree.Build(spans)
				return w.AddTrace(&tree, id)
			})
		}
		if errors.Is(err, errRead) || errors.Is(err, context.DeadlineExceeded) || tracestore.IsOutOfMemory(err) {
			incomplete.Add(tracestore.Reason{Kind: tracestore.KindOf(err), Text: fmt.Sprintf("%d of %d traces were read: %s", i, len(ids), err)})
			return incomplete, nil
		}
		damage, err := tracestore.DamageOf(err)
		if err != nil {
			return nil, err
		}
		if incomplete.Complete() { // each trace reports the same damage
			incomplete.Add(damage...)
		}
	}
	return incomplete, nil
}
