package find

import (
	"context"
	"runtime"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Finder runs searches and reads traces. It is safe for concurrent use.
type Finder struct {
	store  *scan.Store
	shared *sharedFilter // nil: each search makes its own
}

var _ tracestore.Reader = (*Finder)(nil)

// New returns a Finder for a store.
func New(s *scan.Store) *Finder { return &Finder{store: s} }

// Find implements tracestore.Reader. The results contain all spans that were stored before the
// call. When the memory for all queries is exhausted, the results end early, with an error if there
// are none. The view is released when the results were iterated over, even in part, or when the
// garbage collector finds them unreachable.
func (f *Finder) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q.Where = tracestore.WithContext(ctx, q.Where)
	s := &search{query: q, want: want, shared: f.shared, outcome: tracestore.Unread()}
	if s.setBounds() {
		s.session = f.store.BeginQuery(ctx)
		// The cleanup must not refer to s, or s would stay reachable.
		runtime.AddCleanup(s, (*scan.Lease).Release, s.session.Lease)
	}
	return &tracestore.Results{All: s.results(ctx), Outcome: func() tracestore.Outcome { return s.outcome }}, nil
}

// Approximate sizes in bytes of the memory that a search keeps until it ends.
const (
	searchMemory = 256 << 10 // scratch memory for a block
	doneMemory   = 64        // a trace that was listed
	matchMemory  = int64(unsafe.Sizeof(match{}))
	blockMemory  = int64(unsafe.Sizeof(pendingBlock{}))
)

// search is a running search.
type search struct {
	session     *scan.Session // nil if no span can match, and after the end of the search
	ended       bool
	query       tracestore.Query
	want        tracestore.Want
	from, to    uint64 // the window
	newestKey   uint64 // the maximum start of a result
	compiled    *scan.Query
	plans       []*scan.Plan // by source
	unreadable  []bool       // by source: its vocabulary is damaged
	pending     pendingBlocks
	blocksLeft  []int // by source: its number of blocks in pending, once they are listed
	matches     matchLists
	filtered    bool         // filterTraces has made traceFilter, has tried to, or need not
	traceFilter *traceFilter // nil: all traces
	shared      *sharedFilter
	examiner    examiner
	reader      *traceReader
	batch       []match                       // the matches that are returned next
	done        map[otlpdata.TraceID]struct{} // traces that were listed, or found to be listed by an earlier page
	found       int
	last        tracestore.Cursor // of the results
	outcome     tracestore.Outcome
}

// setBounds computes the bounds on start times. It returns false if no start lies within them.
func (s *search) setBounds() bool {
	var ok bool
	if s.from, s.to, ok = s.query.Window(); !ok {
		return false
	}
	s.newestKey = s.to
	if c := s.query.After; c.Set {
		start := c.Start
		if c.ID.IsZero() { // no result with this start follows the cursor
			if start == 0 {
				return false
			}
			start--
		}
		s.newestKey = min(s.newestKey, start)
	}
	return s.from <= s.newestKey
}

func (s *search) results(ctx context.Context) func(yield func(tracestore.Result, error) bool) {
	return func(yield func(tracestore.Result, error) bool) {
		if s.ended {
			return
		}
		defer s.end()
		if err := s.run(ctx, func(r tracestore.Result) bool { return yield(r, nil) }); err != nil {
			s.outcome.Reasons = tracestore.BecauseOf(err)
			if tracestore.IsOutOfMemory(err) && s.found > 0 {
				s.outcome.Next = s.last
				return
			}
			yield(tracestore.Result{}, err)
		}
	}
}

// complete sets the outcome of a search that has examined everything.
func (s *search) complete() {
	s.outcome.Reasons = nil
	if s.session != nil {
		s.outcome.Reasons = s.session.DamageReasons()
	}
}

// end releases everything but the outcome, which the caller may keep.
func (s *search) end() {
	s.shared.note(s)
	if s.session != nil {
		s.session.Release()
	}
	*s = search{outcome: s.outcome, ended: true}
}

// run returns the matches, newest first. The first match of a trace is its newest.
func (s *search) run(ctx context.Context, yield func(tracestore.Result) bool) error {
	if s.session != nil {
		if err := s.prepare(ctx); err != nil {
			return err
		}
	}
	for {
		batch, err := s.nextBatch(ctx)
		if err != nil || len(batch) == 0 {
			return err
		}
		if more, err := s.yieldBatch(ctx, batch, yield); err != nil || !more {
			return err
		}
	}
}

// nextBatch returns matches of traces that were not listed before, or none at the end. It searches
// only for the first match and adds other matches that are already known.
func (s *search) nextBatch(ctx context.Context) ([]match, error) {
	if err := s.filterTraces(ctx); err != nil {
		return nil, err
	}
	size := maxPrefetch
	if s.query.Limit > 0 {
		size = min(size, s.query.Limit-s.found)
	}
	s.batch = s.batch[:0]
	for len(s.batch) == 0 || len(s.batch) < size && s.ready() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m, ok, err := s.next(ctx)
		if err != nil || !ok {
			return nil, err
		}
		if _, done := s.done[m.trace]; done {
			continue
		}
		if _, skip := s.query.Skip[m.trace]; skip {
			continue
		}
		if s.traceFilter != nil {
			if may, _ := s.traceFilter.mayMatch(m.trace); !may {
				continue
			}
		}
		s.done[m.trace] = struct{}{}
		if err := s.session.Memory.Grow(doneMemory); err != nil {
			return nil, err
		}
		listed, err := s.listedBefore(ctx, m.trace)
		if err != nil {
			return nil, err
		}
		if !listed {
			s.batch = append(s.batch, m)
		}
	}
	return s.batch, nil
}

// yieldBatch returns the traces of matches to the caller. It returns false if the search has ended.
func (s *search) yieldBatch(ctx context.Context, batch []match, yield func(tracestore.Result) bool) (bool, error) {
	if err := s.prefetch(ctx, batch); err != nil {
		return false, err
	}
	for _, m := range batch {
		res, err := s.result(ctx, m)
		if err != nil {
			return false, err
		}
		if !yield(res) {
			s.outcome.Reasons.Add(s.session.DamageReasons()...)
			return false, nil
		}
		s.last = tracestore.Cursor{Start: m.start, ID: m.trace, Set: true}
		if s.found++; s.found == s.query.Limit {
			s.complete()
			s.outcome.Next = s.last
			return false, nil
		}
	}
	return true, nil
}

// prefetch reads the traces of a batch together.
func (s *search) prefetch(ctx context.Context, batch []match) error {
	if len(batch) < 2 || s.want != tracestore.WantFull && s.want != tracestore.WantSummaries {
		return nil
	}
	ids := make([]otlpdata.TraceID, len(batch))
	for i := range batch {
		ids[i] = batch[i].trace
	}
	if s.want == tracestore.WantSummaries {
		return s.reader.prefetchHeads(ctx, ids)
	}
	return s.reader.prefetch(ctx, ids)
}

// result reads the parts of a trace that the caller wants.
func (s *search) result(ctx context.Context, m match) (tracestore.Result, error) {
	r := tracestore.Result{ID: m.trace, Start: m.start}
	var err error
	switch s.want {
	case tracestore.WantFull:
		r.Spans, err = s.reader.whole(ctx, m.trace, s.query.Budget.TraceSpans)
	case tracestore.WantSummaries:
		r.Summary, err = s.reader.summary(ctx, m.trace)
	}
	return r, err
}
