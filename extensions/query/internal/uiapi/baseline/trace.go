package baseline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// trace is what the routes need to know about a trace.
type trace struct {
	tracestore.Summary
	calls      map[tracestore.OperationKey]int // number of spans of each operation
	incomplete tracestore.Reasons              // what cannot be read
}

const (
	// spanMemory is the approximate number of bytes of a span in the answer of a store.
	spanMemory = 96
	// operationMemory is the approximate number of bytes of an operation and its histogram.
	operationMemory = 1 << 10
)

// readTrace reads a trace from the store, or from the archive if the store has none. A trace that
// does not exist has no calls. Beyond Limits.TraceSize, arbitrary spans are left out.
func readTrace(slot *core.Slot, ref tracestore.TraceRef) (*trace, error) {
	t := &trace{calls: make(map[tracestore.OperationKey]int)}
	var err error
	if t.incomplete, err = tracestore.DamageOf(t.readOutline(slot, ref)); err != nil {
		return nil, err
	}
	if len(t.calls) == 0 {
		if err := t.readSpans(slot, ref); err != nil {
			return nil, err
		}
	}
	return t, slot.SetHeld(int64(len(t.calls)) * operationMemory)
}

// readOutline reads a trace from a store that need not read whole spans for that.
func (t *trace) readOutline(slot *core.Slot, ref tracestore.TraceRef) error {
	store, ok := core.SlotAs[tracestore.SpanReader](slot)
	if !ok {
		return nil
	}
	hold := func(spans, text int) error { return slot.SetHeld(int64(spans)*spanMemory + int64(text)) }
	return store.Outline(slot.Context(), slot.Tenant(), ref.ID, slot.Limits().TraceSize, hold, func(spans []tracestore.SummarySpan) error {
		t.add(ref.ID, spans[:min(len(spans), slot.Limits().TraceSize)])
		return nil
	})
}

var errTraceFull = errors.New("trace has the maximum number of spans")

// readSpans reads a trace as a whole.
func (t *trace) readSpans(slot *core.Slot, ref tracestore.TraceRef) error {
	pieces, incomplete, err := slot.Trace(ref)
	if err != nil {
		return err
	}
	t.incomplete = incomplete
	var spans []tracestore.SummarySpan
	var hosts storequery.Hosts
	for _, b := range pieces {
		err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
			if len(spans) >= slot.Limits().TraceSize {
				return errTraceFull
			}
			spans = append(spans, hosts.OutlineSpan(s))
			return nil
		})
		if err != nil && !errors.Is(err, errTraceFull) {
			return fmt.Errorf("reading a trace: %w", err)
		}
	}
	t.add(ref.ID, spans)
	return nil
}

// add counts all spans of the trace. It copies names.
func (t *trace) add(id otlpdata.TraceID, spans []tracestore.SummarySpan) {
	t.Summary = storequery.SummarizeSpans(id, spans)
	t.RootService, t.RootName, t.Services = strings.Clone(t.RootService), strings.Clone(t.RootName), nil
	for i := range spans {
		s := &spans[i]
		span := otlpdata.Span{Kind: s.Kind}
		key := tracestore.OperationKey{Service: s.Service, Operation: s.Name, Kind: span.KindName()}
		if n, known := t.calls[key]; known {
			t.calls[key] = n + 1
			continue
		}
		key.Service, key.Operation = strings.Clone(s.Service), strings.Clone(s.Name)
		t.calls[key] = 1
	}
}

// operations returns the operations of the trace, those with the most spans first, then by name.
func (t *trace) operations() []tracestore.OperationKey {
	all := make([]tracestore.OperationKey, 0, len(t.calls))
	for key := range t.calls {
		all = append(all, key)
	}
	slices.SortFunc(all, func(a, b tracestore.OperationKey) int {
		if d := t.calls[b] - t.calls[a]; d != 0 {
			return d
		}
		return compareKeys(a, b)
	})
	return all
}

func compareKeys(a, b tracestore.OperationKey) int {
	return slices.Compare([]string{a.Service, a.Operation, a.Kind}, []string{b.Service, b.Operation, b.Kind})
}
