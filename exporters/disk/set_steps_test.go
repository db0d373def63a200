package disk

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// countingStore counts the spans that are read.
type countingStore struct {
	*exporter
	spans map[otlpdata.TraceID]int
}

func (s *countingStore) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	res, err := s.exporter.Find(ctx, q, want)
	if err != nil {
		return nil, err
	}
	return &tracestore.Results{Outcome: res.Outcome, All: func(yield func(tracestore.Result, error) bool) {
		for r, err := range res.All {
			if r.Spans != nil {
				s.spans[r.ID] += r.Spans.Len()
			}
			if !yield(r, err) {
				return
			}
		}
	}}, nil
}

func (s *countingStore) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		for tr, err := range s.exporter.Traces(ctx, tenant, refs) {
			if tr.Spans != nil {
				s.spans[tr.ID] += tr.Spans.Len()
			}
			if !yield(tr, err) {
				return
			}
		}
	}
}

// sendLongTrace sends a trace of many spans below one root, and traces of two spans between them.
func sendLongTrace(t *testing.T, e *exporter, long, short int) {
	t.Helper()
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	add := func(trace, span, parent int, start int) {
		sp := spans.AppendEmpty()
		sp.SetTraceID(pcommon.TraceID{0: 1, 14: byte(trace >> 8), 15: byte(trace)})
		sp.SetSpanID(pcommon.SpanID{6: byte(span >> 8), 7: byte(span)})
		sp.SetParentSpanID(pcommon.SpanID{6: byte(parent >> 8), 7: byte(parent)})
		sp.SetName(fmt.Sprint("op ", min(span, 3)))
		sp.SetStartTimestamp(pcommon.Timestamp(start))
		sp.SetEndTimestamp(pcommon.Timestamp(start + 5))
	}
	for i := range long {
		add(0, i+1, min(i, 1), 1000+10*i)
	}
	for i := range short {
		add(i+1, 1, 0, 1000+10*i*long/short)
		add(i+1, 2, 1, 1001+10*i*long/short)
	}
	if err := e.Consume(t.Context(), batchOf(td)); err != nil {
		t.Fatal(err)
	}
	flushStore(t, e)
}

// TestStepsReadTracesOnce checks that a search which evaluates whole traces reads each of them
// once, although one of them is longer than a step and has spans at all times, and that it finds
// the same as a search in one step.
func TestStepsReadTracesOnce(t *testing.T) {
	soak.SkipIfRaced(t)
	const long, short, step = 3000, 400, 500
	e := newSetup(vfstest.NewMem()).start(t)
	defer stopStore(t, e)
	sendLongTrace(t, e, long, short)
	for _, text := range []string{
		`{ name = "op 1" } >> { }`, `{ } > { name = "op 1" }`, `{ name = "op 3" } >> { name = "op 2" }`, `{ name = "op 1" } > { name =~ "op [23]" }`,
		`{ } && { name = "op 3" }`,
	} {
		query, err := traceql.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		store := &countingStore{e, map[otlpdata.TraceID]int{}}
		var all []otlpdata.TraceID
		search, steps := storequery.NewSearch(store, query.Set, tracestore.WantSummaries), 0
		for q := (tracestore.Query{Budget: tracestore.Budget{Spans: step}}); ; steps++ {
			ids, o := idsOf(t, search.Find, q)
			if all = append(all, ids...); o.Complete() {
				break
			}
			if q.After = o.Next; !o.Next.Set || steps > 10*(long+short)/step {
				t.Fatalf("%s: step %d ends with %+v", text, steps, o)
			}
		}
		search.Close()
		want, _ := idsOf(t, storequery.NewSearch(e, query.Set, tracestore.WantIDs).Find, tracestore.Query{})
		if !slices.Equal(all, want) {
			t.Errorf("%s: %d steps find %d traces, one search finds %d", text, steps, len(all), len(want))
		}
		if n := store.spans[otlpdata.TraceID{0: 1}]; n > long {
			t.Errorf("%s: %d spans of the long trace were read in %d steps, want %d", text, n, steps, long)
		}
		for id, n := range store.spans {
			if id != (otlpdata.TraceID{0: 1}) && n > 2 {
				t.Errorf("%s: %d spans of trace %s were read, want 2", text, n, id)
			}
		}
	}
}

// idsOf runs a step of a search.
func idsOf(
	t *testing.T, find func(context.Context, tracestore.Query) (*tracestore.Results, error), q tracestore.Query,
) (ids []otlpdata.TraceID, o tracestore.Outcome) {
	t.Helper()
	res, err := find(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range res.All {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	return ids, res.Outcome()
}
