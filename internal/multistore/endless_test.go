package multistore

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// pieces is a store that sends pieces of a trace.
type pieces struct {
	down // other calls
	of   iter.Seq[*otlpdata.Batch]
}

func (p pieces) Traces(_ context.Context, _ string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		for b := range p.of {
			if !yield(tracestore.Trace{ID: refs[0].ID, Spans: b}, nil) {
				return
			}
		}
	}
}

// TestEndlessStore checks that a store that sends spans without end does not keep the caller from
// those of another store: its part is cut, with a warning that names it.
func TestEndlessStore(t *testing.T) {
	id := otlpdata.TraceID{1}
	span := func(n uint64, size int) *otlpdata.Batch {
		td := ptrace.NewTraces()
		sp := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		sp.SetTraceID(pcommon.TraceID(id))
		sp.SetSpanID(pcommon.SpanID(binary.BigEndian.AppendUint64(nil, n)))
		sp.SetName(strings.Repeat("x", size))
		return otlpdata.FromTraces(td, otlpdata.Meta{})
	}
	endless := pieces{of: func(yield func(*otlpdata.Batch) bool) {
		for n := uint64(1 << 32); yield(span(n, 100_000)); n++ {
		}
	}}
	good := pieces{of: func(yield func(*otlpdata.Batch) bool) {
		for n := range uint64(5) {
			if !yield(span(n+1, 10)) {
				return
			}
		}
	}}
	budget := pipeline.NewQueryBudget(8 << 20)
	for _, stores := range [][]Named{{{"bad", endless}, {"good", good}}, {{"good", good}, {"bad", endless}}} {
		account, err := budget.Reserve(0)
		if err != nil {
			t.Fatal(err)
		}
		ctx := tracestore.WithAccount(t.Context(), account)
		memory, err := tracestore.Reserve(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		small := 0
		for trace, err := range New(stores...).Traces(ctx, "", []tracestore.TraceRef{{ID: id}}) {
			var damaged *tracestore.DamagedError
			if errors.As(err, &damaged) && strings.Contains(damaged.Text(), "store bad: ") && !strings.Contains(damaged.Text(), "good") {
				break
			}
			if err == nil {
				err = memory.Grow(int64(trace.Spans.Size()))
			}
			if err != nil {
				t.Errorf("%s first: %v", stores[0].Name, err)
				break
			}
			if trace.Spans.Size() < 10_000 {
				small++
			}
		}
		if small != 5 {
			t.Errorf("%s first: %d spans of the good store, want 5", stores[0].Name, small)
		}
		memory.Release()
		account.Release()
	}
}
