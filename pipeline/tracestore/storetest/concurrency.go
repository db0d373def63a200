package storetest

import (
	"sync"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// checkConcurrency writes from several goroutines while others read. A trace that was sent in one
// request must be visible in full or not at all.
func checkConcurrency(s *suite) {
	const writers, requests, spans = 3, 40, 4
	var writing, reading sync.WaitGroup
	written := make(chan struct{})
	for w := range uint64(writers) {
		batches := make([]*otlpdata.Batch, requests)
		for i := range batches {
			r := newRequest("concurrent")
			for j := range uint64(spans) {
				r.span(w*requests+uint64(i), j, "op", base+uint64(i)*10+j).Attributes().PutInt("writer", int64(w))
			}
			batches[i] = s.encode("", r.traces)
		}
		writing.Go(func() {
			for _, b := range batches {
				if err := s.store.Consume(s.ctx, b); err != nil {
					s.Errorf("Consume: %v", err)
				}
			}
		})
	}
	for _, where := range []tracestore.Expr{nil, attribute("writer", "1"), property(tracestore.Service, "concurrent")} {
		reading.Go(func() {
			for last := false; !last; {
				select {
				case <-written:
					last = true
				default:
				}
				s.checkFullTraces(where, spans)
			}
		})
	}
	writing.Wait()
	close(written)
	reading.Wait()
	s.checkFind(tracestore.Query{}, tracestore.WantFull)
	s.checkCatalogOf("")
}

// checkFullTraces checks that every trace in the results is complete. It runs in goroutines, which
// must not call Fatal.
func (s *suite) checkFullTraces(where tracestore.Expr, spans int) {
	res, err := s.store.Find(s.ctx, tracestore.Query{Where: where}, tracestore.WantFull)
	if err != nil {
		s.Errorf("Find: %v", err)
		return
	}
	for r, err := range res.All {
		if err != nil {
			s.Errorf("Find: %v", err)
			return
		}
		if r.Spans == nil || r.Spans.Len() != spans {
			s.Errorf("trace %s: spans of its request are missing", r.ID)
		}
	}
	if _, _, err := s.store.Services(s.ctx, "", tracestore.NameQuery{}); err != nil {
		s.Errorf("Services: %v", err)
	}
}
