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
	older := func(at time.Time) {
		if u.Oldest.IsZero() || at.Before(u.Oldest) {
			u.Oldest = at
		}
	}
	u.Bytes = e.fixed
	for _, h := range e.segments {
		u.Bytes += h.info.Size
		if h.info.Rows > 0 {
			older(h.info.FirstArrival)
		}
	}
	for _, l := range append(e.frozen[:len(e.frozen):len(e.frozen)], e.active) {
		if l != nil && l.table.Rows() > 0 {
			older(l.opened)
		}
	}
	return u, nil
}
