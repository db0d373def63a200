package callpath

import (
	"context"
	"math/bits"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// maxParts is the maximum number of parts of the window from each of which the same number of
// traces is taken, if it has as many. It is a power of two.
const maxParts = 64

// minPart is the minimum length of a part in nanoseconds. A trace belongs to each part in which one
// of its spans matches, so that shorter parts would prefer long traces.
const minPart = uint64(10 * time.Second)

// part is a part of the window, both ends inclusive.
type part struct {
	from, to uint64
	after    tracestore.Cursor // continues after the traces that were found
	found    int               // traces of the set
	done     bool              // it has no others
}

// parts splits the window of a query.
func parts(q tracestore.Query) []part {
	from, to, bounded := window(q)
	level := 0
	if bounded {
		level = min(bits.Len64((to-from)/minPart), bits.Len(maxParts)) - 1
	}
	level = max(level, 0)
	list := make([]part, 1<<level)
	for i := range list {
		list[i] = part{from: bound(from, to, uint64(i), level), to: bound(from, to, uint64(i)+1, level)}
		if i+1 < len(list) {
			list[i].to--
		}
	}
	return list
}

// bound returns the start of part i of 1<<level parts of a window.
func bound(from, to, i uint64, level int) uint64 {
	high, low := bits.Mul64(to-from, i)
	if level == 0 {
		return from + low
	}
	return from + (high<<(64-level) | low>>level)
}

// sampling is a sample of the traces of one set.
type sampling struct {
	*profiler
	query    tracestore.Query
	selected bool
	until    time.Time
	accept   func([]tracestore.SummarySpan, otlpdata.TraceID) (bool, error)
	parts    []part
	order    []int // of parts
	found    int
	spent    int // of Budget.Spans
	late     bool
}

// run counts up to s.want traces with a span that matches the query and that are accepted.
func (s *sampling) run(ctx context.Context) error {
	if _, _, ok := s.query.Window(); !ok {
		return nil
	}
	s.parts = parts(s.query)
	level := bits.Len(uint(len(s.parts))) - 1
	for i := range s.parts {
		s.order = append(s.order, int(bits.Reverse64(uint64(i))>>(64-level))) // spread, if it must end early
	}
	for s.more() {
		open := 0
		for i := range s.parts {
			if !s.parts[i].done {
				open++
			}
		}
		for _, i := range s.order {
			pt := &s.parts[i]
			if pt.done || !s.more() {
				continue
			}
			if err := s.take(ctx, pt, (s.want-s.found+open-1)/open, open); err != nil {
				return err
			}
			open--
		}
	}
	if s.late {
		s.note("stopped shortly before the query deadline; narrow the search or the time range")
	}
	return nil
}

// complete reports whether all traces of the set were counted.
func (s *sampling) complete() bool {
	for i := range s.parts {
		if !s.parts[i].done {
			return false
		}
	}
	return !s.late
}

// more reports whether there may be other traces to read, and marks the sample as late if there is
// no time.
func (s *sampling) more() bool {
	if s.found >= s.want || s.late {
		return false
	}
	if !s.until.IsZero() && !time.Now().Before(s.until) {
		s.late = true
		return false
	}
	if b := s.query.Budget.Spans; b > 0 && s.spent >= b {
		return false
	}
	return !s.complete()
}

// take reads up to n traces of a part. open is the number of parts that share what is left of the
// budget.
func (s *sampling) take(ctx context.Context, pt *part, n, open int) error {
	q := s.query
	q.From, q.To, q.After = timeOf(pt.from), timeOf(pt.to), pt.after
	if q.Budget.Spans > 0 {
		q.Budget.Spans = max((q.Budget.Spans-s.spent)/open, 1)
	}
	ids, err := s.search(ctx, pt, q, n)
	if err != nil {
		return err
	}
	if err := s.memory.Grow(int64(len(ids)) * knownMemory); err != nil {
		return err
	}
	return s.read(ctx, ids, func(id otlpdata.TraceID, spans []tracestore.SummarySpan) error {
		counted, err := s.accept(spans, id)
		s.known[id] = s.selected == counted // what is not accepted is of the other set
		if err != nil || !counted {
			return err
		}
		s.tree.Build(spans)
		s.counter.AddTrace(&s.tree, id, s.selected)
		pt.found++
		s.found++
		return nil
	})
}

// search returns up to n traces of a part that are not known, and continues there the next time.
func (s *sampling) search(ctx context.Context, pt *part, q tracestore.Query, n int) (ids []otlpdata.TraceID, err error) {
	found, err := storequery.Find(ctx, s.reader, q, storequery.Select{}, tracestore.WantIDs)
	if err != nil {
		return nil, err
	}
	full := false
	for r, err := range found.All {
		if err != nil {
			s.spend(found.Outcome().Scanned)
			return nil, err
		}
		pt.after = tracestore.Cursor{Start: r.Start, ID: r.ID, Set: true}
		if _, known := s.known[r.ID]; !known {
			ids = append(ids, r.ID)
		}
		if full = len(ids) >= n; full {
			break
		}
	}
	o := found.Outcome()
	s.spend(o.Scanned)
	s.noteOutcome(o)
	switch {
	case full:
	case !o.Complete && o.Next.Set:
		pt.after = o.Next
	default:
		pt.done = true
	}
	return ids, nil
}

func (s *sampling) spend(scanned int) {
	s.spent += scanned
	s.scanned += scanned
}

// share returns the share of all traces that were counted, from the times that were searched.
func (s *sampling) share() float64 {
	all, searched := 0.0, 0.0
	for i := range s.parts {
		pt := &s.parts[i]
		length := float64(pt.to-pt.from) + 1
		covered := length
		if !pt.done {
			covered = 0
			if pt.after.Set {
				covered = float64(pt.to - min(pt.after.Start, pt.to))
			}
		}
		all += length
		searched += covered
	}
	if searched >= all || s.found == 0 {
		return 1
	}
	return s.shareOf(all)
}

// shareOf estimates the number of traces of each part from those that were found, and of parts that
// were not searched from all others.
func (s *sampling) shareOf(all float64) float64 {
	expected, seen := 0.0, 0.0
	for i := range s.parts {
		pt := &s.parts[i]
		length := float64(pt.to-pt.from) + 1
		switch {
		case pt.done:
			expected += float64(pt.found)
			seen += length
		case pt.after.Set:
			covered := max(float64(pt.to-min(pt.after.Start, pt.to)), 1)
			expected += max(float64(pt.found)-0.5, 0) * length / covered // the search ended with the last one
			seen += length
		}
	}
	if seen == 0 {
		return 1
	}
	return min(float64(s.found)/max(expected*all/seen, 1), 1)
}

// timeOf returns the time for nanoseconds since the Unix epoch.
func timeOf(ns uint64) time.Time {
	return time.Unix(int64(ns/uint64(time.Second)), int64(ns%uint64(time.Second)))
}
