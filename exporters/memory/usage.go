package memory

import (
	"context"
	"time"

	"github.com/tracing-backend/tracing/pipeline/status"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Usage implements tracestore.UsageReporter.
func (e *exporter) Usage(context.Context, string) (tracestore.Usage, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.usageNow(), nil
}

// usageNow needs e.mu.
func (e *exporter) usageNow() tracestore.Usage {
	u := tracestore.Usage{Bytes: e.usage.bytes, MaxBytes: e.maxBytes}
	if e.oldest != nil {
		u.Oldest = time.Unix(0, e.oldest.created)
	}
	for _, t := range e.tenants {
		u.AddStarts(t.all.bounds())
	}
	return u
}

// maxCountedTraces is the maximum number of traces that StoreStatus visits. Incoming spans wait
// meanwhile.
const maxCountedTraces = 200_000

// StoreStatus implements status.StoreReporter. It uses the times when traces began to arrive. If
// there are more than maxCountedTraces, it reports no gaps or parts.
func (e *exporter) StoreStatus(context.Context) (status.Store, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	s := status.Store{Bytes: e.usage.bytes, MaxBytes: e.maxBytes}
	var all []status.Arrivals
	if e.usage.traces <= maxCountedTraces {
		for t := e.oldest; t != nil; t = t.next {
			all = addArrivals(all, t)
		}
	} else {
		s.Oldest = time.Unix(0, e.oldest.created)
	}
	s.SetArrivals(all, e.now())
	s.Spans = int64(e.usage.spans)
	usage := e.usageNow()
	s.OldestStart = usage.OldestTime()
	return s, nil
}

// addArrivals adds the spans of a trace to the last element, or to a new one if the last one began
// a minute earlier.
func addArrivals(all []status.Arrivals, t *trace) []status.Arrivals {
	at := time.Unix(0, t.created)
	if n := len(all); n == 0 || at.Sub(all[n-1].First) >= time.Minute {
		all = append(all, status.Arrivals{First: at})
	}
	last := &all[len(all)-1]
	last.Last = at
	for _, b := range t.blocks {
		last.Spans += int64(len(b.rows))
	}
	return all
}
