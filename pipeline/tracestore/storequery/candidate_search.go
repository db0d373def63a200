package storequery

import (
	"container/heap"
	"context"
	"fmt"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// candidateSearch finds traces by examining all spans of candidates. It uses a condition that every
// selected span meets. A candidate is a trace with a span within the window that meets this
// condition. The key of a candidate is the start of its newest such span; candidates come newest
// first. The key of a result is the start of its newest selected span. Each selected span within
// the window makes its trace a candidate. Hence:
//
//   - No result is missed.
//   - The key of a result is never newer than its candidate's key. So results can be emitted in
//     order, up to the key of the current candidate.
//   - A candidate that was examined in an earlier step need not be reread: it has no result, or
//     its result is pending or was emitted.
//
// With a cursor, the window of candidates ends at the start of the cursor. If the key of a result
// is after the cursor, its newest selected span is within that window and makes the trace a
// candidate. The search recognizes earlier results by their key, because it knows all spans of a
// trace.
type candidateSearch struct {
	search
	*keptState
	from, to     uint64 // the window
	inner        tracestore.Query
	candidates   *tracestore.Results // of inner; nil: not searched yet
	matcher      *setMatcher
	examined     int               // spans
	matcherSpans int               // spans of the longest candidate, which determine the memory of the matcher
	narrowed     bool              // all remaining results are pending
	passed       tracestore.Cursor // results at or before it were emitted
}

func findByCandidates(ctx context.Context, kept *keptState, step search, set SpanSet) (*tracestore.Results, error) {
	q := step.query
	kept.begin(ctx)
	s := &candidateSearch{search: step, keptState: kept, inner: q, matcher: newSetMatcher(set, simplify(q.Where))}
	s.inner.Where = simplify(tracestore.And{weaken(q.Where), cover(set)})
	s.inner.OfTrace = simplify(tracestore.And{weakenToTrace(q.Where), coverTrace(set)})
	s.inner.Limit, s.inner.After, s.inner.Skip = 0, tracestore.Cursor{}, kept.known
	s.from, s.to, _ = q.Window() // an empty window has no candidates
	if c := q.After; c.Set && c.Start < s.to {
		s.inner.To = TimeOf(c.Start)
	}
	if id, ok := traceID(set, q.Where); ok {
		s.rare, s.rareKnown, s.narrowTried = []tracestore.TraceRef{{ID: id}}, true, true
	}
	if !s.rareKnown {
		var err error
		if s.candidates, err = s.reader.Find(ctx, s.inner, tracestore.WantFull); err != nil {
			return nil, err
		}
	}
	return s.results(ctx, s.run), nil
}

func (s *candidateSearch) run(ctx context.Context) error {
	defer func() { s.keptState, s.candidates, s.matcher = nil, nil, nil }() // the caller may keep the outcome
	if s.rareKnown && s.examineRare(ctx) {
		s.outcome = tracestore.Outcome{}
		return s.emitAll(ctx)
	}
	for {
		if s.candidates == nil {
			var err error
			if s.candidates, err = s.reader.Find(ctx, s.inner, tracestore.WantFull); err != nil {
				return err
			}
		}
		err := s.examineAll(ctx)
		inner := s.candidates.Outcome()
		s.scanned += inner.Scanned
		if err != nil {
			s.noteDamage(inner)
			return err
		}
		if s.narrowed {
			inner = tracestore.Outcome{}
		}
		if inner.Complete() || !inner.Next.Set {
			s.damage.Add(inner.Reasons...)
			if err := s.emitAll(ctx); err != nil {
				return err
			}
			s.outcome = tracestore.Outcome{}
			return nil
		}
		if isAfter(tracestore.Result{ID: inner.Next.ID, Start: inner.Next.Start}, s.query.After) {
			return s.endAt(ctx, inner.Next, inner.Reasons)
		}
		// The budget was exhausted by candidates at or before the cursor.
		s.inner.After = inner.Next
		s.inner.Budget.Spans *= 2
		s.candidates = nil
	}
}

func (s *candidateSearch) examineAll(ctx context.Context) error {
	for r, err := range s.candidates.All {
		if err != nil {
			return err
		}
		position := cursorOf(r)
		if _, known := s.known[r.ID]; !known {
			if err := s.examine(ctx, r); err != nil {
				return err
			}
			s.tries++
		}
		if err := s.emitUpTo(ctx, position); err != nil {
			return err
		}
		if done, err := s.enough(ctx, position); done || err != nil {
			return err
		}
	}
	return nil
}

// enough reports whether no further candidates need to be examined. It ends the search if the
// budget or the time is exhausted.
func (s *candidateSearch) enough(ctx context.Context, position tracestore.Cursor) (done bool, err error) {
	if s.tries >= candidatesBeforeNarrowing && !s.narrowTried {
		if s.narrowed, err = s.narrow(ctx, position); s.narrowed || err != nil {
			return true, err
		}
	}
	current := tracestore.Result{ID: position.ID, Start: position.Start}
	if !isAfter(current, s.query.After) { // each page must make progress
		return false, nil
	}
	if b := s.query.Budget.Spans; b > 0 && s.examined >= b {
		return true, s.endAt(ctx, position, tracestore.Because(tracestore.ReasonBudget,
			fmt.Sprintf("stopped after examining traces with %d spans; narrow the search or the time range", s.examined)))
	}
	if s.late() {
		return true, s.endAt(ctx, position, reasonLate)
	}
	return false, nil
}

// reserve reserves the memory that the search holds, including a candidate of the given size in
// bytes.
func (s *candidateSearch) reserve(candidate int) error {
	if err := s.memory.Resize(int64(candidate + s.matcher.spanMemory()*s.matcherSpans)); err != nil {
		return err
	}
	return s.keptState.reserve()
}

// examine evaluates the set on an unknown candidate. If the candidate is a result, it becomes
// pending and its spans are charged as pending.
func (s *candidateSearch) examine(ctx context.Context, r tracestore.Result) error {
	n := r.Spans.Len()
	s.matcherSpans = max(s.matcherSpans, n)
	if err := s.reserve(r.Spans.Size()); err != nil {
		return err
	}
	s.examined += n
	s.scanned += n
	if limit := s.query.Budget.TraceSpans; limit > 0 && n > limit {
		s.skipped = examinedInPart(limit)
	}
	if err := s.matcher.evaluate(ctx, r.ID, s.dedup(), walkBatches(r.Spans)); err != nil {
		return fmt.Errorf("examining trace %s: %w", r.ID, err)
	}
	start, ok := s.key()
	s.remember(r.ID, n, ok)
	if !ok {
		return s.reserve(0)
	}
	found := tracestore.Result{ID: r.ID, Start: start}
	if !isAfter(found, s.query.After) || !isAfter(found, s.passed) {
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
	s.addPending(found, s.query.Limit, s.emitted)
	return s.reserve(0)
}

func (s *candidateSearch) summary(r tracestore.Result) (tracestore.Summary, error) {
	if s.matcher.needsSummary {
		return s.matcher.summary, nil
	}
	return Summarize(r.ID, r.Spans)
}

// dedup returns a Dedup if duplicates matter for the set. Stores return no duplicates, but remote
// storage servers of other vendors may.
func (s *candidateSearch) dedup() *Dedup {
	if s.matcher.needsSummary || s.matcher.needsParents {
		return NewDedup()
	}
	return nil
}

// key returns the start of the newest selected span within the window.
func (s *candidateSearch) key() (key uint64, ok bool) {
	for i, selected := range s.matcher.selected {
		if start := s.matcher.starts[i]; selected && start >= s.from && start <= s.to {
			key, ok = max(key, start), true
		}
	}
	return key, ok
}

func (s *candidateSearch) emitAll(ctx context.Context) error {
	return s.emitUpTo(ctx, tracestore.Cursor{Set: true}) // the end of the order
}

// emitUpTo emits the pending results at or before a position.
func (s *candidateSearch) emitUpTo(ctx context.Context, position tracestore.Cursor) error {
	for len(s.pending) > 0 && !isAfter(s.pending[0], position) {
		r := heap.Pop(&s.pending).(tracestore.Result)
		if r.Spans != nil {
			s.pendingBytes -= r.Spans.Size()
			_ = s.keptState.reserve() // cannot fail: the spans now belong to the caller
		} else if s.want == tracestore.WantFull {
			if ok, err := s.read(ctx, &r, tracestore.TraceRef{ID: r.ID}); err != nil {
				return err
			} else if !ok {
				continue
			}
		}
		if err := s.emit(r); err != nil {
			return err
		}
	}
	return nil
}

// endAt ends a search at a position, because its budget or time is exhausted. All candidates up to
// the position were examined.
func (s *candidateSearch) endAt(ctx context.Context, position tracestore.Cursor, reasons tracestore.Reasons) error {
	if err := s.emitUpTo(ctx, position); err != nil {
		return err
	}
	s.outcome = tracestore.Outcome{Reasons: reasons, Next: position}
	return errEnd
}
