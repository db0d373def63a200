package disk

import (
	"context"
	"time"

	"github.com/tracing-backend/tracing/pipeline/status"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// StoreStatus implements status.StoreReporter.
func (e *exporter) StoreStatus(ctx context.Context) (status.Store, error) {
	usage, err := e.Usage(ctx, "")
	if err != nil {
		return status.Store{}, err
	}
	s := status.Store{Place: e.path, Bytes: usage.Bytes, MaxBytes: usage.MaxBytes, Retention: usage.Retention}
	if s.Free, err = e.dir.Free(); err != nil {
		s.Free = 0 // unknown
	}
	if files, err := e.dir.Quarantined(); err == nil {
		s.Quarantined = len(files)
	}
	now := e.env.Now()
	all := e.segmentArrivals(&s)
	s.SetArrivals(all, now)
	s.OldestStart = usage.OldestTime()
	return s, nil
}

// segmentArrivals returns the arrivals of the spans in each segment and memtable, and counts them
// in s. Gaps within a segment, which may be merged, are not detected.
func (e *exporter) segmentArrivals(s *status.Store) []status.Arrivals {
	now := e.env.Now()
	e.intake.mu.Lock()
	defer e.intake.mu.Unlock()
	segments := e.segments.all()
	s.Segments, s.LogBytes = len(segments), e.retention.overhead()
	var all []status.Arrivals
	for _, h := range segments {
		all = append(all, status.Arrivals{First: h.info.FirstArrival, Last: h.info.LastArrival, Spans: int64(h.info.Rows), Bytes: h.info.Size})
	}
	for _, l := range e.intake.memtables() {
		all = append(all, status.Arrivals{First: l.opened, Last: now, Spans: int64(l.table.Rows())})
	}
	return all
}

// Usage implements tracestore.UsageReporter. It reads no segments.
func (e *exporter) Usage(context.Context, string) (tracestore.Usage, error) {
	u := tracestore.Usage{MaxBytes: int64(e.config.Retention.Size), Retention: e.config.Retention.Time.Std()}
	e.retention.measure()
	u.Bytes, u.Oldest = e.retention.overhead()+sizeOf(e.segments.all()), e.oldestArrival()
	e.intake.mu.Lock()
	defer e.intake.mu.Unlock()
	for _, h := range e.segments.all() {
		u.AddStarts(h.info.MinStart, h.info.MaxStart)
	}
	for _, l := range e.intake.memtables() {
		_, first, last := l.table.Source().Bounds()
		u.AddStarts(first, last)
	}
	return u, nil
}

// oldestArrival returns when the oldest stored span arrived, or the zero time if the store is
// empty.
func (e *exporter) oldestArrival() (oldest time.Time) {
	e.intake.mu.Lock()
	defer e.intake.mu.Unlock()
	older := func(at time.Time) {
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	for _, h := range e.segments.all() {
		if h.info.Rows > 0 {
			older(h.info.FirstArrival)
		}
	}
	for _, l := range e.intake.memtables() {
		if l.table.Rows() > 0 {
			older(l.opened)
		}
	}
	return oldest
}
