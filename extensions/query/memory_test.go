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

// pieceStore has one trace, which it makes anew, in pieces, whenever it is asked.
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

// sameTrace writes the spans of a walk with the trace id 1.
type sameTrace struct {
	otlpdata.Builder
	spans int
}

func (o *sameTrace) Resource(r *otlpdata.Resource) error {
	o.Builder.Resource(r.Attributes)
	return nil
}

func (o *sameTrace) Scope(s *otlpdata.Scope) error {
	o.Builder.Scope(s.Name, s.Version, s.Attributes)
	return nil
}

func (o *sameTrace) Span(s *otlpdata.Span) error {
	out := *s
	out.TraceID = otlpdata.TraceID{15: 1}
	o.Builder.Span(&out)
	o.spans++
	return nil
}

// highWater is a client that looks how much memory is in use while it takes an answer, at every tenth part of it.
type highWater struct {
	querytest.Discard
	parts int
	peak  uint64
}

func (h *highWater) Write(p []byte) (int, error) {
	if h.parts++; h.parts%10 != 0 {
		return len(p), nil
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.peak = max(h.peak, m.HeapAlloc)
	return len(p), nil
}

// The largest trace that is shown takes at most three times its size, and 64 MiB.
func TestMemoryOfTheLargestTrace(t *testing.T) {
	if testing.Short() {
		t.Skip("tests are shortened: this one takes a second for each form of an answer; make test runs it")
	}
	store := &pieceStore{Store: querytest.NewStore(querytest.Shop())}
	most, size := defaults().MaxTraceSize, 0
	for r := range bench.New(3, querytest.Start).Requests(most, 2000) {
		var one sameTrace
		if err := otlpdata.Walk(r.Body, &one); err != nil {
			t.Fatal(err)
		}
		piece := one.Bytes()
		store.pieces, store.spans, size = append(store.pieces, piece), append(store.spans, one.spans), size+len(piece)
	}
	h, _ := api(t, store, func(o *core.Options) {
		o.Limits.TraceSize = most
		o.Memory = pipeline.NewBudget(0)
	})
	defer debug.SetGCPercent(debug.SetGCPercent(50)) // what is garbage is not asked for
	for _, path := range []string{"/api/traces/1?prettyPrint=true", "/api/v3/traces/1"} {
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		w := &highWater{Discard: querytest.NewDiscard()}
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		took := int64(w.peak) - int64(before.HeapAlloc)
		if limit := int64(3*size + 64<<20); took > limit || w.peak == 0 {
			t.Errorf("%s: %d MiB for a trace of %d MiB", path, took>>20, size>>20)
		}
		t.Logf("%s: %d MiB for a trace of %d MiB", path, took>>20, size>>20)
	}
}
