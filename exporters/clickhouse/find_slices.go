package clickhouse

import (
	"context"
	"fmt"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Spans are sorted by service and start. A search in one service reads the newest spans first and
// stops. Any other search would read the whole window, so that it is done in slices of the window.
// The first is small, because most values occur often. The size of each other depends on what the
// one before it found.
const (
	firstSlice  = 1 << 18 // spans, estimated
	minSlice    = 1 << 16
	sliceGrowth = 8 // maximum of the ratio of two successive sizes
	// A slice has more spans than those that are likely to contain what is missing, because another
	// slice takes longer than a larger one.
	sliceMargin = 1.3
)

// maxPlanned is the maximum number of hours with spans, newest first, by which slices are planned.
// All spans that are older are in one slice.
const maxPlanned = 20_000

// hourSpans is the number of spans that start in an hour, with duplicates and deleted ones.
type hourSpans struct{ hour, spans uint64 }

// slicer divides a window into slices, newest first.
type slicer struct {
	hours    []hourSpans // newest first
	from, to uint64      // what is left of the window, if there is anything
	size     float64     // of the next slice, in spans
	ended    bool
}

// newSlicer returns a slicer of the time between two starts.
func newSlicer(hours []hourSpans, from, to uint64) *slicer {
	return &slicer{hours: hours, from: from, to: to, size: firstSlice, ended: from > to}
}

// next returns the next slice, and false if there is none.
func (s *slicer) next() (from, to uint64, ok bool) {
	if s.ended {
		return 0, 0, false
	}
	from, to = s.start(), s.to
	s.ended, s.to = from == s.from, from-1
	return from, to, true
}

// found sets the size of the next slice by the number of results of the last one and the number
// that is missing.
func (s *slicer) found(results, missing int) {
	growth := float64(sliceGrowth)
	if results > 0 && missing > 0 {
		growth = min(growth, sliceMargin*float64(missing)/float64(results))
	}
	s.size = max(minSlice, growth*s.size)
}

// start returns the start of a slice that ends at the end of the window and has about the next
// size.
func (s *slicer) start() uint64 {
	left := s.size
	for _, h := range s.hours {
		first := h.hour * hourLength
		if first > s.to {
			continue
		}
		last := min(first+(hourLength-1), s.to)
		if last < first { // the last hour before the maximum
			last = s.to
		}
		rate := float64(h.spans) / float64(hourLength) // spans per nanosecond
		if n := rate * float64(last-first); n < left {
			left -= n
			continue
		}
		return max(s.from, last-min(last-first, uint64(left/rate)))
	}
	return s.from
}

// planSlices returns a slicer of the time between two starts. A search in one service has one
// slice.
func (e *exporter) planSlices(ctx context.Context, q *tracestore.Query, from, to uint64) (*slicer, error) {
	if from > to || hasService(q.Where) {
		return newSlicer(nil, from, to), nil
	}
	var hours []hourSpans
	sql := fmt.Sprintf("SELECT toUInt64(hour), sum(spans) FROM %s WHERE %s AND hour >= %d AND hour <= %d "+
		"GROUP BY hour ORDER BY hour DESC LIMIT %d",
		e.db.Table("hours"), where.Tenant(q.Tenant), from/hourLength, to/hourLength, maxPlanned)
	err := e.eachRow(ctx, sql, func(r db.Rows) error {
		var h hourSpans
		err := r.Scan(&h.hour, &h.spans)
		hours = append(hours, h)
		return err
	})
	return newSlicer(hours, from, to), err
}

// hasService reports whether a condition holds only for spans of one service.
func hasService(e tracestore.Expr) bool {
	switch e := e.(type) {
	case tracestore.And:
		for _, part := range e {
			if hasService(part) {
				return true
			}
		}
	case tracestore.Cond:
		return e.Field.Place == tracestore.Service && e.Op == tracestore.Eq && !e.Value.IsNumber
	}
	return false
}
