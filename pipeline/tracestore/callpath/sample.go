package callpath

import (
	"context"
	"math/bits"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// maxParts is the maximum number of parts into which the window is divided. The same number of
// traces is taken from each part that has enough. maxParts is a power of two.
const maxParts = 64

// minPerPart is the minimum number of traces to read from a part. With fewer, the estimated number
// of traces in the part has a high error.
const minPerPart = 4

// part is a part of the window, both ends inclusive. A trace belongs to the part in which its
// newest matching span starts, so that it belongs to one part only. Otherwise, traces that run at
// the end of a part, and long ones in particular, would be overrepresented.
type part struct {
	from, to uint64
	after    tracestore.Cursor // continues after the traces that were found
	searched bool              // after is the position of a trace
	found    int               // traces of the set
	done     bool              // it has no others
	// With a PartFinder:
	waiting []tracestore.Cursor // traces that were found but not read yet
	whole   bool                // all traces of the part were found
}

// parts splits the window of a query for a sample of a number of traces.
func parts(q tracestore.Query, want int) []part {
	from, to, bounded := window(q)
	level := 0
	if bounded {
		level = max(min(bits.Len64(to-from), bits.Len(maxParts), bits.Len(uint(want/minPerPart)))-1, 0)
	}
	list := make([]part, 1<<level)
	for i := range list {
		list[i] = part{from: bound(from, to, uint64(i), level), to: bound(from, to, uint64(i)+1, level)}
		if i+1 < len(list) {
			list[i].after = tracestore.Cursor{Start: list[i].to, Set: true} // no trace with this start follows it
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
	query    tracestore.Query // each trace of the set has a span that matches it
	selected bool
	until    time.Time
	// accepts reports whether a trace that the query found belongs to the set.
	accepts test
	// narrower, if not nil, is a slower query that also finds all traces of the set, but fewer
	// others.
	narrower tracestore.Expr
	// without, if not nil, finds traces that are not of the set.
	without *tracestore.Query
	parts   []part
	found   int
	reads   int // traces
	spent   int // of Budget.Spans
	late    bool
	excess  int // traces of the set that were read but are no longer wanted
}

const (
	// readsPerTrace limits the number of traces that are read to find one trace of the set.
	readsPerTrace = 20
	// narrower is used after narrowAfter traces were read, if fewer than one in narrowRatio
	// belonged to the set.
	narrowAfter, narrowRatio = 500, 5
	// minRead is the minimum number of traces to read in one call when many of them are not in the
	// set.
	minRead = 8
)

// run counts up to s.want traces of the set.
func (s *sampling) run(ctx context.Context) error {
	if _, _, ok := s.query.Window(); !ok {
		return nil
	}
	s.parts = parts(s.query, s.want)
	together, err := s.runTogether(ctx)
	if err != nil {
		return err
	}
	for !together && s.more() {
		open := 0
		for i := range s.parts {
			if !s.parts[i].done {
				open++
			}
		}
		for i := range s.parts { // in order of time, because stores cache what they read last
			pt := &s.parts[i]
			if pt.done || !s.more() {
				continue
			}
			if err := s.take(ctx, pt, open); err != nil {
				return err
			}
			open--
		}
	}
	if s.late {
		s.note(tracestore.ReasonTime, "stopped shortly before the query deadline; narrow the search or the time range")
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
	return !s.late && s.excess == 0
}

// more reports whether there may be other traces to read, and marks the sample as late if there is
// no time.
func (s *sampling) more() bool {
	if s.late = s.late || !s.until.IsZero() && !time.Now().Before(s.until); s.late {
		return false
	}
	if b := s.query.Budget.Spans; b > 0 && s.spent >= b {
		return false
	}
	return s.found < s.want && s.reads < readsPerTrace*s.want && !s.complete()
}

// take reads traces of a part until the part has its share of the traces that are left to find or
// to read. open is the number of parts that share them.
func (s *sampling) take(ctx context.Context, pt *part, open int) error {
	enough := s.found + shareOf(s.want-s.found, open)
	lastRead := s.reads + shareOf(readsPerTrace*s.want-s.reads, open)
	q := s.query
	q.From, q.After = storequery.TimeOf(pt.from), pt.after
	if q.Budget.Spans > 0 {
		q.Budget.Spans = shareOf(q.Budget.Spans-s.spent, open)
	}
	if s.narrower != nil && s.reads >= narrowAfter && narrowRatio*s.found < s.reads {
		q.Where = s.narrower
	}
	found, err := find(ctx, s.reader, q)
	if err != nil {
		return err
	}
	full, err := s.readAll(ctx, pt, found, enough, lastRead)
	o := found.Outcome()
	s.spent += o.Scanned
	s.scanned += o.Scanned
	if err != nil {
		return err
	}
	s.noteOutcome(o)
	switch {
	case full:
	case !o.Complete() && o.Next.Set:
		pt.after, pt.searched = o.Next, true
	default:
		pt.done = true
	}
	return nil
}

// readAll reads the traces that were found in a part until it has found a number of traces of the
// set or read a number of traces. full is false if there were fewer traces.
func (s *sampling) readAll(ctx context.Context, pt *part, found *tracestore.Results, enough, lastRead int) (full bool, err error) {
	var ids []otlpdata.TraceID
	of := func(otlpdata.TraceID) *part { return pt }
	for r, err := range found.All {
		if err != nil {
			return false, err
		}
		pt.after, pt.searched = tracestore.Cursor{Start: r.Start, ID: r.ID, Set: true}, true
		if _, known := s.known[r.ID]; known {
			continue
		}
		if ids = append(ids, r.ID); len(ids) < s.readTogether(enough-s.found) && s.reads+len(ids) < lastRead {
			continue
		}
		if err := s.count(ctx, ids, of); err != nil {
			return false, err
		}
		if ids = ids[:0]; s.found >= enough || s.reads >= lastRead || !s.more() {
			return true, nil
		}
	}
	return false, s.count(ctx, ids, of)
}

// readTogether returns the number of traces to read in one call to find n of the set.
func (s *sampling) readTogether(n int) int {
	if s.reads > 2*s.found+minRead { // less than half of them are in the set
		return max(n, minRead)
	}
	return n
}

// count reads traces of several parts, and counts the traces of the set.
func (s *sampling) count(ctx context.Context, ids []otlpdata.TraceID, of func(otlpdata.TraceID) *part) error {
	if err := s.memory.Grow(int64(len(ids)) * knownMemory); err != nil {
		return err
	}
	s.reads += len(ids)
	return s.read(ctx, ids, func(id otlpdata.TraceID, spans []tracestore.SummarySpan) error {
		if !s.fits(len(spans)) {
			s.note(tracestore.ReasonLimit, "large traces do not fit into the memory of queries and were left out")
			return nil
		}
		is, err := s.accepts(id, spans)
		if err != nil {
			return err
		}
		if s.found >= s.want {
			if is {
				s.excess++
			}
			return nil
		}
		if is || !s.selected {
			s.known[id] = s.selected == is
		}
		if !is {
			return nil
		}
		s.tree.Build(spans)
		s.counter.AddTrace(&s.tree, id, s.selected)
		of(id).found++
		s.found++
		return nil
	})
}

// share estimates the counted share of all traces from the parts of the window that were searched.
func (s *sampling) share() float64 {
	all, searched := 0.0, 0.0
	for i := range s.parts {
		pt := &s.parts[i]
		length := float64(pt.to-pt.from) + 1
		covered := length
		if !pt.done {
			covered = 0
			if pt.searched {
				covered = float64(pt.to - min(pt.after.Start, pt.to))
			}
		}
		all += length
		searched += covered
	}
	if s.found == 0 {
		return 1
	}
	if searched >= all {
		return float64(s.found) / float64(s.found+s.excess)
	}
	return s.shareOf(all)
}

// shareOf estimates the number of traces in each part from the traces that were found. Parts with
// few found traces are estimated together; parts that were not searched are estimated from all
// others.
func (s *sampling) shareOf(all float64) float64 {
	const few = 5
	var expected, seen, fewFound, fewCovered, fewLength float64
	for i := range s.parts {
		pt := &s.parts[i]
		length, found := float64(pt.to-pt.from)+1, float64(pt.found)
		covered := length
		if !pt.done {
			covered = max(float64(pt.to-min(pt.after.Start, pt.to)), 1)
		}
		switch {
		case !pt.done && !pt.searched:
			continue
		case pt.done:
			expected += found
		case found < few:
			fewFound, fewCovered, fewLength = fewFound+found, fewCovered+covered, fewLength+length
		default:
			expected += (found - 0.5) * length / covered // the search ended at the last one
		}
		seen += length
	}
	if seen == 0 {
		return 1
	}
	if fewLength > 0 {
		expected += fewFound * fewLength / fewCovered
	}
	return min(float64(s.found)/max(expected*all/seen, 1), 1)
}
