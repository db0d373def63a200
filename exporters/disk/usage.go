package disk

import (
	"context"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Usage implements tracestore.UsageReporter. It reads no segments.
func (e *exporter) Usage(context.Context, string) (tracestore.Usage, error) {
	u := tracestore.Usage{MaxBytes: int64(e.config.Retention.Size), Retention: e.config.Retention.Time.Std()}
	e.measure()
	e.mu.Lock()
	defer e.mu.Unlock()
	u.Bytes, u.Oldest = e.fixed+sizeOf(e.segments), e.oldestLocked()
	return u, nil
}

// oldestArrival returns when the oldest stored span arrived, or the zero time if the store is
// empty.
func (e *exporter) oldestArrival() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.oldestLocked()
}

// oldestLocked is like oldestArrival for callers that hold mu.
func (e *exporter) oldestLocked() (oldest time.Time) {
	older := func(at time.Time) {
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	for _, h := range e.segments {
		if h.info.Rows > 0 {
			older(h.info.FirstArrival)
		}
	}
	for _, l := range append(e.frozen[:len(e.frozen):len(e.frozen)], e.active) {
		if l != nil && l.table.Rows() > 0 {
			older(l.opened)
		}
	}
	return oldest
}
