package disk

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline/status"
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
	return s, nil
}

// segmentArrivals returns the arrivals of the spans in each segment and memtable, and counts them
// in s. A gap within a segment, which may be the result of a merge, is not seen.
func (e *exporter) segmentArrivals(s *status.Store) []status.Arrivals {
	now := e.env.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Segments, s.LogBytes = len(e.segments), e.fixed
	all := make([]status.Arrivals, 0, len(e.segments)+len(e.frozen)+1)
	for _, h := range e.segments {
		all = append(all, status.Arrivals{First: h.info.FirstArrival, Last: h.info.LastArrival, Spans: int64(h.info.Rows), Bytes: h.info.Size})
	}
	for _, l := range append(e.frozen[:len(e.frozen):len(e.frozen)], e.active) {
		if l != nil {
			all = append(all, status.Arrivals{First: l.opened, Last: now, Spans: int64(l.table.Rows())})
		}
	}
	return all
}
