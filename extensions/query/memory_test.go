package query

import (
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/bench"
)

// pieceStore has one trace, which it copies, in pieces, for each request.
type pieceStore struct {
	*querytest.Store
	pieces [][]byte // of the trace
	spans  []int
}

func (s *pieceStore) Traces(context.Context, string, []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		for i, p := range s.pieces {
			b := otlpdata.FromStored(append([]byte(nil), p...), otlpdata.Meta{}, otlpdata.ServiceCount{Service: "x", Spans: s.spans[i]})
			if !yield(tracestore.Trace{ID: otlpdata.TraceID{15: 1}, Spans: b}, nil) {
				return
			}
		}
	}
}

// oneTraceWriter encodes the spans of a walk with the trace id 1.
type oneTraceWriter struct {
	otlpdata.Builder
	spans int
}

func (o *oneTraceWriter) Resource(r *otlpdata.Resource) error {
	o.Builder.Resource(r.Attributes)
	return nil
}

func (o *oneTraceWriter) Scope(s *otlpdata.Scope) error {
	o.Builder.Scope(s.Name, s.Version, s.Attributes)
	return nil
}

func (o *oneTraceWriter) Span(s *otlpdata.Span) error {
	out := *s
	out.TraceID = otlpdata.TraceID{15: 1}
	o.Builder.Span(&out)
	o.spans++
	return nil
}

// heapWatcher is a client that measures the heap at every tenth part of a response.
type heapWatcher struct {
	querytest.Discard
	parts int
	peak  uint64
}

func (h *heapWatcher) Write(p []byte) (int, error) {
	if h.parts++; h.parts%10 != 0 {
		return len(p), nil
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.peak = max(h.peak, m.HeapAlloc)
	return len(p), nil
}

// The largest trace that is shown takes at most three times its size plus 64 MiB.
func TestMemoryOfTheLargestTrace(t *testing.T) {
	if testing.Short() {
		t.Skip("tests are shortened: this one takes a second for each form of an answer; make test-long runs it")
	}
	store := &pieceStore{Store: querytest.NewStore(querytest.Shop())}
	most, size := defaults().MaxTraceSize, 0
	for r := range bench.New(3, querytest.Start).Requests(most, 2000) {
		var one oneTraceWriter
		if err := otlpdata.Walk(r.Body, &one); err != nil {
			t.Fatal(err)
		}
		piece := one.Bytes()
		store.pieces, store.spans, size = append(store.pieces, piece), append(store.spans, one.spans), size+len(piece)
	}
	h, _ := api(t, store, func(o *core.Options) {
		o.Limits.TraceSize = most
		o.Memory = pipeline.NewQueryBudget(0)
	})
	defer debug.SetGCPercent(debug.SetGCPercent(50)) // so that less garbage is measured
	for _, path := range []string{"/api/traces/1?prettyPrint=true", "/api/v3/traces/1"} {
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		w := &heapWatcher{Discard: querytest.NewDiscard()}
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		took := int64(w.peak) - int64(before.HeapAlloc)
		if limit := int64(3*size + 64<<20); took > limit || w.peak == 0 {
			t.Errorf("%s: %d MiB for a trace of %d MiB", path, took>>20, size>>20)
		}
		t.Logf("%s: %d MiB for a trace of %d MiB", path, took>>20, size>>20)
	}
}
