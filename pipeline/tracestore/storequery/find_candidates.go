package storequery

import (
	"container/heap"
	"context"
	"fmt"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// traceSearch finds traces by looking at all spans of candidates: of traces with a span within the window on which a condition holds that
// every chosen span meets. The start of the newest such span is the candidate's key, and they come newest first; the key of a result is the
// start of its newest chosen span. Since each chosen span within the window is one by which the trace is a candidate,
//
//   - no result is missed,
//   - no result's key is before its candidate's, so that results can be given, in their order, up to the key of the candidate at hand.
//
// So it is with a cursor, behind which lie spans up to its start: where the key of a result is behind it, the newest chosen span is among
// them, and makes a candidate of the trace when the window ends there. What was listed before is told by its key, which is known of every
// trace, since all of its spans are.
type traceSearch struct {
	setAnswer
	from, to   uint64           // the window
	inner      tracestore.Query // asks for candidates
	candidates *tracestore.Results
	matcher    *setMatcher
	waiting    waiting
	held       int // bytes of spans in waiting
	looked     int // spans that were looked at
	tries      int // candidates that were
	narrowed   bool
	given      tracestore.Cursor // what is at or before it was given
}

// maxHeld is how many bytes of traces wait for others, which may come before them, to be looked at. Further ones are read again.
const maxHeld = 8 << 20

func findByTraces(ctx context.Context, r tracestore.Reader, q tracestore.Query, set SpanSet, want tracestore.Want) (*tracestore.Results, error) {
	s := &traceSearch{setAnswer: setAnswer{reader: r, query: q, want: want}, inner: q, matcher: newSetMatcher(set, simplify(q.Where))}
	s.inner.Where = simplify(tracestore.And{weaken(q.Where), cover(set)})
	s.inner.Limit, s.inner.After = 0, tracestore.Cursor{}
	s.from, s.to, _ = q.Window() // without one there are no candidates
	if c := q.After; c.Set && c.Start < s.to {
		s.inner.To = timeOf(c.Start)
	}
	var err error
	if s.candidates, err = r.Find(ctx, s.inner, tracestore.WantFull); err != nil {
		return nil, err
	}
	return s.results(ctx, s.run), nil
}

func (s *traceSearch) run(ctx context.Context) error {
	defer func() { s.waiting, s.candidates, s.matcher = nil, nil, nil }() // the caller may keep the outcome
	for {
		err := s.lookAtAll(ctx)
		inner := s.candidates.Outcome()
		s.scanned += inner.Scanned
		if err != nil {
			s.lose(inner)
			return err
		}
		if s.narrowed {
			inner = tracestore.Outcome{Complete: true}
		}
		if inner.Complete || !inner.Next.Set {
			s.lost = joinReasons(s.lost, inner.Reason)
			if err := s.giveAll(ctx); err != nil {
				return err
			}
			s.outcome = tracestore.Outcome{Complete: inner.Complete}
			return nil
		}
		if behind := isAfter(tracestore.Result{ID: inner.Next.ID, Start: inner.Next.Start}, s.query.After); behind {
			return s.giveUp(ctx, inner.Next, inner.Reason)
		}
		// The budget ran out among candidates from before the cursor.
		s.inner.After = inner.Next
		s.inner.Budget.Spans *= 2
		if s.candidates, err = s.reader.Find(ctx, s.inner, tracestore.WantFull); err != nil {
			return err
		}
	}
}

// lookAtAll looks at the candidates.
func (s *traceSearch) lookAtAll(ctx context.Context) error {
	for r, err := range s.candidates.All {
		if err != nil {
			return err
		}
		place := cursorOf(r)
		if err := s.lookAt(ctx, r); err != nil {
			return err
		}
		if err := s.giveUpTo(ctx, place); err != nil {
			return err
		}
		if done, err := s.enough(ctx, place); done || err != nil {
			return err
		}
	}
	return nil
}

// enough reports whether there is another way than looking at further candidates. It gives up where the budget or the time ran out.
func (s *traceSearch) enough(ctx context.Context, place tracestore.Cursor) (done bool, err error) {
	if s.tries++; s.tries == patience {
		if s.narrowed, err = s.narrow(ctx, place); s.narrowed || err != nil {
			return true, err
		}
	}
	here := tracestore.Result{ID: place.ID, Start: place.Start}
	if !isAfter(here, s.query.After) { // who goes on must get further
		return false, nil
	}
	if b := s.query.Budget.Spans; b > 0 && s.looked >= b {
		reason := fmt.Sprintf("stopped after looking at traces of %d spans; narrow the search or the time range", s.looked)
		return true, s.giveUp(ctx, place, reason)
	}
	if s.late() {
		return true, s.giveUp(ctx, place, lateReason)
	}
	return false, nil
}

// lookAt evaluates the set on a candidate, which waits for its turn if it is a result.
func (s *traceSearch) lookAt(ctx context.Context, r tracestore.Result) error {
	n := r.Spans.Len()
	s.looked += n
	s.scanned += n
	if most := s.query.Budget.TraceSpans; most > 0 && n > most {
		s.cut = fmt.Sprintf("of traces with more than %d spans only a part was looked at", most)
	}
	if err := s.matcher.evaluate(ctx, r.ID, s.dedup(), walkBatches(r.Spans)); err != nil {
		return fmt.Errorf("looking at trace %s: %w", r.ID, err)
	}
	start, ok := s.key()
	if !ok {
		return nil
	}
	found := tracestore.Result{ID: r.ID, Start: start}
	if !isAfter(found, s.query.After) || !isAfter(found, s.given) {
		return nil
	}
	switch s.want {
	case tracestore.WantSummaries:
		sum, err := s.summary(r)
		if err != nil {
			return err
		}
		found.Summary = &sum
	case tracestore.WantFull:
		found.Spans = r.Spans
	}
	s.wait(found)
	return nil
}

func (s *traceSearch) summary(r tracestore.Result) (tracestore.Summary, error) {
	if s.matcher.facts {
		return s.matcher.summary, nil
	}
	return Summarize(r.ID, r.Spans)
}

// dedup returns what tells duplicates, where it matters: stores return none, unless they are remote ones of others.
func (s *traceSearch) dedup() *Dedup {
	if s.matcher.facts || s.matcher.structure {
		return NewDedup()
	}
	return nil
}

// key returns the start of the newest chosen span within the window.
func (s *traceSearch) key() (key uint64, ok bool) {
	for i, chosen := range s.matcher.chosen {
		if start := s.matcher.starts[i]; chosen && start >= s.from && start <= s.to {
			key, ok = max(key, start), true
		}
	}
	return key, ok
}

// wait keeps a result until its turn has come, without its spans where there is no room for them, and not at all where the limit will be
// reached before.
func (s *traceSearch) wait(r tracestore.Result) {
	if r.Spans != nil {
		if s.held+r.Spans.Size() > maxHeld && len(s.waiting) > 0 {
			r.Spans = nil
		} else {
			s.held += r.Spans.Size()
		}
	}
	heap.Push(&s.waiting, r)
	room := s.query.Limit - s.found
	if s.query.Limit <= 0 || len(s.waiting) < 2*room+minCut {
		return
	}
	slices.SortFunc(s.waiting, compareResults)
	for i, r := range s.waiting[room:] {
		if r.Spans != nil {
			s.held -= r.Spans.Size()
		}
		s.waiting[room+i] = tracestore.Result{}
	}
	s.waiting = s.waiting[:room]
}

// minCut is how many results that will not be reached are cut together at least.
const minCut = 64

// giveAll gives all that waits.
func (s *traceSearch) giveAll(ctx context.Context) error {
	return s.giveUpTo(ctx, tracestore.Cursor{Set: true}) // behind which there is nothing
}

// giveUpTo gives what waits and is at or before a place.
func (s *traceSearch) giveUpTo(ctx context.Context, place tracestore.Cursor) error {
	for len(s.waiting) > 0 && !isAfter(s.waiting[0], place) {
		r := heap.Pop(&s.waiting).(tracestore.Result)
		if r.Spans != nil {
			s.held -= r.Spans.Size()
		} else if s.want == tracestore.WantFull {
			if ok, err := s.read(ctx, &r, tracestore.TraceRef{ID: r.ID}); err != nil {
				return err
			} else if !ok {
				continue
			}
		}
		if err := s.give(r); err != nil {
			return err
		}
	}
	return nil
}

// giveUp ends a search whose budget ran out when it had looked at the candidates up to a place.
func (s *traceSearch) giveUp(ctx context.Context, place tracestore.Cursor, reason string) error {
	if err := s.giveUpTo(ctx, place); err != nil {
		return err
	}
	s.outcome = tracestore.Outcome{Reason: reason, Next: place}
	return errEnough
}

// waiting is a heap of results with the newest on top.
type waiting []tracestore.Result

func (w waiting) Len() int           { return len(w) }
func (w waiting) Less(i, j int) bool { return compareResults(w[i], w[j]) < 0 }
func (w waiting) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *waiting) Push(x any)        { *w = append(*w, x.(tracestore.Result)) }

func (w *waiting) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	(*w)[last] = tracestore.Result{}
	*w = (*w)[:last]
	return x
}
