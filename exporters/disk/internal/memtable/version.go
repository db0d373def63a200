package memtable

import (
	"slices"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

var _ source.Versioned = (*snapshot)(nil)

// TraceVersion implements source.Versioned. It returns the number of the last row, counted from 1.
func (s *snapshot) TraceVersion(tenant string, id otlpdata.TraceID) (number uint64, stored time.Time, err error) {
	t := s.table
	at := t.traces.last(t.hash.trace(t.hash.text(tenant), &id))
	if at == 0 {
		return 0, time.Time{}, nil
	}
	// The first rows may be newer than the snapshot.
	for blocks := *t.linkedBlocks.Load(); at > 0; {
		row := int(at - 1)
		if row < s.rows && s.isTrace(row, tenant, &id) {
			return uint64(at), t.arrivalOf(row), nil
		}
		at = blocks[row/s.size].prev[row%s.size]
	}
	return 0, time.Time{}, nil
}

// arrival records that a row and its successors arrived at a time or up to arrivalStep later.
type arrival struct {
	row int
	at  time.Time
}

// arrivalStep is the accuracy of the arrival times of rows, maxArrivals the number of arrival times
// that are kept.
const (
	arrivalStep = time.Second
	maxArrivals = 64
)

// noteArrival records that the next rows arrive at a time.
func (t *Table) noteArrival(at time.Time) {
	if n := len(t.arrivals); n > 0 && at.Sub(t.arrivals[n-1].at) < arrivalStep {
		return
	}
	if len(t.arrivals) == maxArrivals {
		t.arrivals = slices.Delete(t.arrivals, 0, 1)
	}
	t.arrivals = append(t.arrivals, arrival{t.published, at})
}

// arrivalOf returns when a row arrived, or zero if that is unknown.
func (t *Table) arrivalOf(row int) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range slices.Backward(t.arrivals) {
		if a.row <= row {
			return a.at
		}
	}
	return time.Time{}
}
