package baseline

import (
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// trace holds the properties of a trace that the routes need.
type trace struct {
	tracestore.Summary
	calls      map[tracestore.OperationKey]int // number of spans of each operation
	incomplete tracestore.Reasons              // what cannot be read
}

const (
	// spanMemory is the approximate number of bytes of a span in the result of a store.
	spanMemory = 96
	// operationMemory is the approximate number of bytes of an operation and its histogram.
	operationMemory = 1 << 10
)

// readTrace reads a trace from the store or, if it has none, from the archive. A trace that does
// not exist has no calls. Of a trace above Limits.TraceSize, arbitrary spans are left out.
func readTrace(slot *core.Slot, ref tracestore.TraceRef) (*trace, error) {
	t := &trace{calls: make(map[tracestore.OperationKey]int)}
	hold := func(spans, text int) error { return slot.SetHeld(int64(spans)*spanMemory + int64(text)) }
	incomplete, err := slot.Outline(ref, hold, func(spans []tracestore.SummarySpan) {
		t.add(ref.ID, spans[:min(len(spans), slot.Limits().TraceSize)])
	})
	if t.incomplete = incomplete; err != nil {
		return nil, err
	}
	return t, slot.SetHeld(int64(len(t.calls)) * operationMemory)
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

// operations returns the operations of the trace by number of spans, the most frequent first, then
// by name.
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
