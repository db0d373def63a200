package clickhouse

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Spans are sorted by service and start. A search in one service reads the newest spans first and
// stops. Any other search would read the whole window, so it is done in slices of the window. The
// first slice is small, because most values occur often. The size of each further slice depends on
// the results of the previous one.
const (
	firstSlice  = 1 << 18 // spans, estimated
	firstOfAll  = 1 << 14 // if all spans match
	minSlice    = 1 << 16
	sliceGrowth = 8 // maximum of the ratio of two successive sizes
	// A slice has more spans than are likely needed for the missing results, because another slice
	// takes longer than a larger one.
	sliceMargin = 1.3
)

// maxPlanned is the maximum number of hours with spans, newest first, by which slices are planned.
// All older spans are in one slice.
const maxPlanned = 20_000

// hourSpans is the number of spans that start in an hour, with duplicates and deleted ones.
type hourSpans struct{ hour, spans uint64 }

// slicer divides a window into slices, newest first.
type slicer struct {
	hours    []hourSpans // newest first
	from, to uint64      // the rest of the window; it may be empty
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

// found sets the size of the next slice from the number of results of the last one and the number
// of missing results.
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
	return e.planAll(ctx, q, from, to)
}

// planAll is like planSlices for a search that reads the spans of all services.
func (e *exporter) planAll(ctx context.Context, q *tracestore.Query, from, to uint64) (*slicer, error) {
	const day = 24 // hours; one request often searches several hours of a day
	plan := planKey{q.Tenant, from / hourLength / day * day, to/hourLength/day*day + day - 1}
	hours, known := e.plans.get(plan, e.set.Env.Now())
	if known {
		return newSlicer(hours, from, to), nil
	}
	sql := fmt.Sprintf("SELECT toUInt64(hour), sum(spans) FROM %s WHERE %s AND hour >= %d AND hour <= %d "+
		"GROUP BY hour ORDER BY hour DESC LIMIT %d",
		e.db.Table("hours"), where.Tenant(q.Tenant), plan.from, plan.to, maxPlanned)
	err := e.eachRow(ctx, sql, func(r db.Rows) error {
		var h hourSpans
		err := r.Scan(&h.hour, &h.spans)
		hours = append(hours, h)
		return err
	})
	if err == nil {
		e.plans.put(plan, hours, e.set.Env.Now())
	}
	return newSlicer(hours, from, to), err
}

// maxGrouped is the approximate maximum number of spans in a window that the server groups by
// trace.
const maxGrouped = 5_000_000

// hasFew reports whether the server can group the spans in the window of a query by trace.
func (e *exporter) hasFew(ctx context.Context, q *tracestore.Query, from, to uint64) (bool, error) {
	plan, err := e.planAll(ctx, q, from, to)
	plan.size = maxGrouped
	return plan.start() <= from, err
}

// plans caches the numbers of spans by which searches are planned for a short time, because one
// request often makes many searches in the same hours. Outdated numbers only make slices larger or
// smaller. The zero value is ready to use.
type plans struct {
	mu   sync.Mutex
	kept map[planKey]keptPlan
}

// planKey are a tenant and a range of hours, both inclusive.
type planKey struct {
	tenant   string
	from, to uint64
}

type keptPlan struct {
	hours []hourSpans
	until time.Time
}

const (
	planTime = 10 * time.Second // how long a plan is cached
	maxPlans = 64
	maxKept  = 1000 // maximum number of hours of a cached plan
)

// get returns a plan, unless it is outdated.
func (p *plans) get(k planKey, now time.Time) (hours []hourSpans, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept, ok := p.kept[k]
	if !ok || !now.Before(kept.until) {
		return nil, false
	}
	return kept.hours, true
}

func (p *plans) put(k planKey, hours []hourSpans, now time.Time) {
	if len(hours) > maxKept {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil || len(p.kept) >= maxPlans {
		p.kept = make(map[planKey]keptPlan)
	}
	p.kept[k] = keptPlan{hours, now.Add(planTime)}
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

// page is a part of the hits of a slice, newest first.
type page struct {
	hits []hit
	next tracestore.Cursor // position up to which spans were examined, if last is false
	last bool              // it is the last page of the slice
}

// page returns the next hits that start between two times. The server sorts only by start, because
// it then reads no more rows than it returns. The hits with the last start are therefore left for
// the next page.
func (s *search) page(ctx context.Context, from, to uint64) (p page, err error) {
	p.hits, err = s.selectHits(ctx, where.Window(from, to), "start DESC")
	if p.last = len(p.hits) < s.rows; err != nil || p.last {
		return p, err
	}
	last := p.hits[len(p.hits)-1].start
	complete := slices.IndexFunc(p.hits, func(h hit) bool { return h.start == last })
	if complete > 0 {
		p.hits, p.next = p.hits[:complete], tracestore.Cursor{Start: last + 1, Set: true}
		return p, nil
	}
	// Not all spans with this start fit into a page.
	p.hits, err = s.selectHits(ctx, where.Window(last, last), "trace_id DESC")
	p.next = tracestore.Cursor{Start: last, Set: true} // the zero id is the last one
	if len(p.hits) == s.rows {
		p.next = p.hits[len(p.hits)-1].cursor()
	}
	return p, err
}

// selectHits returns the first s.rows hits in an order, sorted newest first.
func (s *search) selectHits(ctx context.Context, window, order string) ([]hit, error) {
	if err := s.memory.Grow(int64(s.rows) * hitMemory); err != nil {
		return nil, err
	}
	defer func() { _ = s.memory.Grow(-int64(s.rows) * hitMemory) }() // cannot fail
	sure := "1"
	if !s.condition.Exact {
		sure = s.condition.Sure
	}
	sql := "SELECT start, trace_id, toUInt8(" + sure + ") FROM " + s.store.db.Table("spans") +
		" WHERE " + where.Tenant(s.query.Tenant) + " AND " + window + " AND " + s.condition.SQL
	if s.at.Set {
		sql += " AND " + where.Before(s.at.Start, s.at.ID)
	}
	var hits []hit
	err := s.store.eachRow(ctx, sql+fmt.Sprintf(" ORDER BY %s LIMIT %d", order, s.rows), func(r db.Rows) error {
		h, err := scanHit(r)
		hits = append(hits, h)
		return err
	})
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(b.start, a.start), bytes.Compare(b.id[:], a.id[:])) })
	return hits, err
}

func scanHit(r db.Rows) (h hit, err error) {
	var id string
	var sure uint8
	if err := r.Scan(&h.start, &id, &sure); err != nil {
		return h, fmt.Errorf("reading results: %w", err)
	}
	if len(id) != len(h.id) {
		return h, fmt.Errorf("reading results: trace id of %d bytes", len(id))
	}
	copy(h.id[:], id)
	h.sure = sure != 0
	return h, nil
}

// verify returns the hits that match, at most one of each trace.
func (s *search) verify(ctx context.Context, hits []hit) ([]hit, error) {
	var unsure []hit
	for _, h := range hits {
		if !h.sure {
			unsure = append(unsure, h)
		}
	}
	s.outcome.Scanned += len(hits)
	matching := make(map[tracestore.Cursor]struct{})
	if len(unsure) > 0 {
		if err := s.matching(ctx, atPositions(unsure), func(c tracestore.Cursor) { matching[c] = struct{}{} }); err != nil {
			return nil, err
		}
	}
	var out []hit
	seen := make(map[otlpdata.TraceID]struct{})
	for _, h := range hits {
		_, again := seen[h.id]
		_, matches := matching[h.cursor()]
		if !again && (h.sure || matches) {
			out, seen[h.id] = append(out, h), struct{}{}
		}
	}
	return out, nil
}

// atPositions returns the condition on the spans of hits.
func atPositions(hits []hit) string {
	ids := make([]otlpdata.TraceID, len(hits))
	sql := "(trace_id, start) IN ("
	for i, h := range hits {
		if i > 0 {
			sql += ", "
		}
		ids[i] = h.id
		sql += "(" + where.TraceID(h.id) + ", " + where.Uint(h.start) + ")"
	}
	return ofTraces(ids) + " AND " + sql + ")"
}

// matching calls take with the position of each span that meets a condition on the columns of the
// table "payload" and that matches the query.
func (s *search) matching(ctx context.Context, condition string, take func(tracestore.Cursor)) error {
	err := s.store.eachSpan(ctx, s.query.Tenant, condition, func(sp tracestore.Span) error {
		if tracestore.Match(s.query.Where, sp) {
			take(tracestore.Cursor{Start: sp.Start, ID: sp.TraceID, Set: true})
		}
		return nil
	})
	return s.noteDamage(err)
}

// noteDamage keeps the reasons of a DamagedError, and returns any other error.
func (s *search) noteDamage(err error) error {
	damage, err := tracestore.DamageOf(err)
	s.damage.Add(damage...)
	return err
}

// notReturned removes traces that also match before the cursor, because an earlier page returned
// them.
func (s *search) notReturned(ctx context.Context, hits []hit) ([]hit, error) {
	c := s.query.After
	if !c.Set || c.Start > s.to || len(hits) == 0 {
		return hits, nil
	}
	ids := make([]otlpdata.TraceID, len(hits))
	for i, h := range hits {
		ids[i] = h.id
	}
	condition := ofTraces(ids) + " AND " + where.Window(max(s.from, c.Start), s.to)
	returned := make(map[otlpdata.TraceID]struct{})
	err := s.matching(ctx, condition, func(at tracestore.Cursor) {
		if at.Start > c.Start || string(at.ID[:]) >= string(c.ID[:]) {
			returned[at.ID] = struct{}{}
		}
	})
	if err != nil {
		return nil, err
	}
	var out []hit
	for _, h := range hits {
		if _, is := returned[h.id]; !is {
			out = append(out, h)
		} else if err := s.finish(h.id); err != nil {
			return nil, err
		}
	}
	return out, nil
}
