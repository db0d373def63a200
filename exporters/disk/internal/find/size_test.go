package find

import (
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TraceSpans counts the rows of memtables, and blocks of segments that hold nothing else.
func TestTraceSpans(t *testing.T) {
	const spans = 20_000
	s := scantest.NewReal(t, 1)
	s.SegmentOf(t, scantest.WideTrace(t, spans))
	if _, err := s.Tables[0].Append(scantest.WideTrace(t, 100), 0); err != nil {
		t.Fatal(err)
	}
	f := New(scan.NewStore(s.View, scan.Options{}))
	if n, err := f.TraceSpans(t.Context(), "", otlpdata.TraceID{1}); err != nil || n < spans/4 || n > spans+100 {
		t.Errorf("%d spans, %v", n, err)
	}
	for _, tenant := range []string{"", "other"} {
		if n, err := f.TraceSpans(t.Context(), tenant, otlpdata.TraceID{2}); err != nil || n != 0 {
			t.Errorf("unknown trace of tenant %q: %d spans, %v", tenant, n, err)
		}
	}
}

// A query reserves memory before it reads, ends early if there is none, and gives everything back.
func TestQueriesReserveMemory(t *testing.T) {
	s := openStore(3, 1, scan.Options{})
	scantest.Must(s.Consume(t.Context(), scantest.WideTrace(t, 8000)))
	budget := pipeline.NewQueryBudget(64 << 20)
	// run returns the number of results.
	run := func(limit int64, query func(f *Finder) (int, error)) (int, error) {
		t.Helper()
		budget.SetLimit(limit)
		n, err := query(s.Finder)
		if used, peak := budget.Used(), budget.Peak(); used != 0 || peak > 64<<20 {
			t.Errorf("limit of %d bytes: %d bytes in use afterwards, %d at most", limit, used, peak)
		}
		return n, err
	}
	account, err := budget.Reserve(0)
	scantest.Must(err)
	ctx := tracestore.WithAccount(t.Context(), account)
	for name, query := range map[string]func(f *Finder) (int, error){
		"trace": func(f *Finder) (n int, err error) {
			for p, err := range f.Traces(ctx, "", []tracestore.TraceRef{{ID: otlpdata.TraceID{1}}}) {
				if err != nil {
					return n, err
				}
				n += p.Spans.Len()
			}
			return n, nil
		},
		"search": func(f *Finder) (int, error) { return results(f.Find(ctx, tracestore.Query{}, tracestore.WantFull)) },
		"summaries": func(f *Finder) (int, error) {
			return results(f.Find(ctx, tracestore.Query{}, tracestore.WantSummaries))
		},
	} {
		if n, err := run(64<<20, query); n == 0 || err != nil {
			t.Errorf("%s with memory: %d results, %v", name, n, err)
		}
		if n, err := run(64<<10, query); n != 0 || !tracestore.IsOutOfMemory(err) {
			t.Errorf("%s without memory: %d results, %v", name, n, err)
		}
	}
	if budget.Peak() < 1<<20 {
		t.Errorf("queries have reserved %d bytes at most", budget.Peak())
	}
}

// results returns the number of results of a search.
func results(r *tracestore.Results, err error) (n int, _ error) {
	if err != nil {
		return 0, err
	}
	for _, err := range r.All {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
