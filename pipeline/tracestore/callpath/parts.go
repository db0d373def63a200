package callpath

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// PartFinder is implemented by stores that can find the traces of several parts of a window in one
// call.
type PartFinder interface {
	HeadReader
	// FindParts finds traces with a span that matches q. starts are the ascending starts of the
	// parts of the window. For each part it returns the traces whose newest matching span starts in
	// it, newest first, at most limit. If without is not nil, traces with a span that matches it
	// are omitted. FindParts returns nil if the parts must be searched one by one.
	FindParts(ctx context.Context, q tracestore.Query, without *tracestore.Query, starts []uint64, limit int) (*FoundParts, error)
}

// FoundParts are the traces of several parts of a window.
type FoundParts struct {
	Traces [][]tracestore.Cursor // of each part
	tracestore.Reasons
}

const (
	// The first call of FindParts has a limit of firstFound times the average number of traces to
	// read from a part. If that is not enough, the limit is multiplied by foundGrowth for each
	// further call.
	firstFound, foundGrowth = 4, 4
	// cursorMemory is the approximate memory in bytes of a trace that was found but not read.
	cursorMemory = 32
)

// runTogether is like run, for a store that finds the traces of all parts in one call. It returns
// false if the parts must be searched one by one.
func (s *sampling) runTogether(ctx context.Context) (bool, error) {
	finder, ok := s.reader.(PartFinder)
	if !ok {
		return false, nil
	}
	defer s.reading.Release()
	q := s.query
	q.Where, q.OfTrace, _ = storequery.Weaken(q.Where)
	starts := make([]uint64, len(s.parts))
	for i := range s.parts {
		starts[i] = s.parts[i].from
	}
	for limit := firstFound * max(s.want/len(s.parts), minPerPart); s.more(); limit *= foundGrowth {
		found, err := finder.FindParts(ctx, q, s.without, starts, limit)
		if err != nil || found == nil {
			return false, err
		}
		s.noteUnread(found.Reasons)
		n := 0
		for i := range s.parts {
			s.parts[i].wait(found.Traces[i], limit)
			n += len(s.parts[i].waiting)
		}
		if err := s.reading.Resize(int64(n) * cursorMemory); err != nil {
			return false, err
		}
		if err := s.readWaiting(ctx); err != nil {
			return false, err
		}
	}
	return true, nil
}

// wait sets the traces that were found but not read: found without the traces that were already
// read. If found has fewer than limit traces, the part has no others.
func (p *part) wait(found []tracestore.Cursor, limit int) {
	p.waiting = found
	if p.searched {
		read, _ := slices.BinarySearchFunc(found, p.after, newestFirst)
		if read < len(found) && found[read] == p.after {
			read++
		}
		p.waiting = found[read:]
	}
	p.whole = len(found) < limit
	p.done = p.whole && len(p.waiting) == 0
}

// newestFirst is the order of results.
func newestFirst(a, b tracestore.Cursor) int {
	return cmp.Or(cmp.Compare(b.Start, a.Start), bytes.Compare(b.ID[:], a.ID[:]))
}

// readWaiting reads found traces until there are enough, or until a part that may have more has
// none waiting.
func (s *sampling) readWaiting(ctx context.Context) error {
	for s.more() {
		ids, of := s.nextWaiting()
		if len(ids) == 0 {
			return nil
		}
		if err := s.count(ctx, ids, func(id otlpdata.TraceID) *part { return of[id] }); err != nil {
			return err
		}
	}
	return nil
}

// nextWaiting takes from each part its share of the traces that are still to be read. It returns
// none if a part that may have more has none waiting.
func (s *sampling) nextWaiting() (ids []otlpdata.TraceID, of map[otlpdata.TraceID]*part) {
	var open []*part
	for i := range s.parts {
		switch p := &s.parts[i]; {
		case p.done:
		case len(p.waiting) == 0:
			return nil, nil
		default:
			open = append(open, p)
		}
	}
	left := min(s.readTogether(s.want-s.found), readsPerTrace*s.want-s.reads)
	if b := s.query.Budget.Spans; b > 0 {
		left = min(left, b-s.spent)
	}
	of = make(map[otlpdata.TraceID]*part, left)
	for i, p := range open {
		for n := shareOf(left, len(open)-i); n > 0 && len(p.waiting) > 0; p.waiting = p.waiting[1:] {
			p.after, p.searched = p.waiting[0], true
			if _, known := s.known[p.after.ID]; !known {
				ids, of[p.after.ID] = append(ids, p.after.ID), p
				n, left = n-1, left-1
			}
		}
		p.done = p.whole && len(p.waiting) == 0
	}
	s.spent += len(ids)
	s.scanned += len(ids)
	return ids, of
}

// shareOf returns n / several, rounded up.
func shareOf(n, several int) int { return (n + several - 1) / several }
