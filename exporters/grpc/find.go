package grpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Find implements tracestore.Reader. The protocol knows fewer conditions, no place to go on from, and no key of the order, so a search asks
// as narrow a question as there is, looks at the traces itself, and asks again for what is older, until it has what was asked for.
//
// It relies on the other side to answer with the newest traces: stores that choose others under a limit make it miss traces.
func (e *exporter) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if e.cfg.Archive {
		return nil, pipeline.Permanent(errArchiveByID)
	}
	r, c, err := e.reader(e.reading(ctx, q.Tenant))
	if err != nil {
		return nil, err
	}
	s := &search{exporter: e, reader: r, query: q, want: want, question: ask(q.Where), cursor: q.After}
	if c.needsService && s.question.service == "" {
		return nil, pipeline.Permanent(errNeedsService)
	}
	s.outcome.Reason = tracestore.ReasonUnread
	return &tracestore.Results{All: s.results(ctx), Outcome: func() tracestore.Outcome { return s.outcome }}, nil
}

// search is one query under way.
type search struct {
	*exporter
	reader   spansReader
	query    tracestore.Query
	want     tracestore.Want
	question *question
	from, to uint64            // the window of the query
	cursor   tracestore.Cursor // what is at or before it was yielded, or need not be
	found    int
	cut      string // what is missing of the traces that were found; "" is nothing
	outcome  tracestore.Outcome
}

// leastQuestion is for how many traces a question asks where it is not known how many of them will match.
const leastQuestion = 100

func (s *search) results(ctx context.Context) iter.Seq2[tracestore.Result, error] {
	return func(yield func(tracestore.Result, error) bool) {
		err := s.run(ctx, func(r tracestore.Result) bool { return yield(r, nil) })
		if err != nil && !errors.Is(err, errStop) {
			s.outcome.Reason = err.Error()
			yield(tracestore.Result{}, err)
		}
	}
}

func (s *search) run(ctx context.Context, yield func(tracestore.Result) bool) error {
	var ok bool
	if s.from, s.to, ok = s.query.Window(); !ok {
		s.complete()
		return ctx.Err()
	}
	s.question.from, s.question.to = s.from, s.to
	if s.cursor.Set {
		s.question.to = min(s.to, s.cursor.Start)
	}
	s.question.limit = s.firstLimit()
	for s.question.from <= s.question.to {
		if end, err := s.round(ctx, yield); end || err != nil {
			return err
		}
	}
	s.complete()
	return nil
}

// round asks the question and yields what is certain then. end says that there is nothing more to ask.
func (s *search) round(ctx context.Context, yield func(tracestore.Result) bool) (end bool, err error) {
	r, err := s.ask(ctx)
	if err != nil {
		return false, err
	}
	defer r.memory.Release()
	return s.settle(ctx, r, yield)
}

// firstLimit is one more than is wanted, where all that is found matches: what is found of the last start need not be all.
func (s *search) firstLimit() int {
	limit := leastQuestion
	if s.query.Limit > 0 && (s.question.exact || s.query.Limit >= limit) {
		limit = s.query.Limit + 1
	}
	return min(limit, s.cfg.MaxQuestion)
}

func (s *search) complete() { s.outcome.Complete, s.outcome.Reason = s.cut == "", s.cut }

// settle yields what is certain after a round, and prepares the next one. end says that there is none.
func (s *search) settle(ctx context.Context, r *round, yield func(tracestore.Result) bool) (end bool, err error) {
	all := r.count < s.question.limit || r.incomplete != ""
	for _, c := range r.ordered(s.cursor) {
		if !all && c.key <= r.oldest {
			break // of this start and older ones there may be more
		}
		if end, err := s.yield(ctx, c, yield); end || err != nil {
			return true, err
		}
	}
	switch {
	case r.incomplete != "":
		s.outcome.Reason = r.incomplete
		return true, nil
	case all:
		s.complete()
		return true, nil
	case !r.asked || r.oldest == s.question.to:
		return s.widen(), nil
	}
	s.cursor = tracestore.Cursor{Start: r.oldest + 1, Set: true}
	s.question.to = r.oldest
	s.question.limit = min(max(2*s.question.limit, leastQuestion), s.cfg.MaxQuestion)
	return s.overBudget(), nil
}

// widen asks for more traces, because as many as were asked for start together. It returns true where no question asks for more.
func (s *search) widen() (end bool) {
	if s.question.limit >= s.cfg.MaxQuestion {
		s.outcome.Reason = fmt.Sprintf("more than %d traces start at the same time, or the remote store finds them by other rules "+
			"(max_traces_per_question)", s.question.limit)
		return true
	}
	s.question.limit = min(2*s.question.limit, s.cfg.MaxQuestion)
	return false
}

// overBudget ends a search that has examined what it may, at a place from which the next one gets further.
func (s *search) overBudget() bool {
	budget := s.query.Budget.Spans
	if budget <= 0 || s.outcome.Scanned < budget || s.query.After.Set && !behind(s.query.After, s.cursor.Start, s.cursor.ID) {
		return false
	}
	s.outcome.Next = s.cursor
	s.outcome.Reason = fmt.Sprintf("stopped after examining %d spans; narrow the search or the time range", s.outcome.Scanned)
	return true
}

func (s *search) yield(ctx context.Context, c *candidate, yield func(tracestore.Result) bool) (end bool, err error) {
	res, err := s.result(ctx, c)
	if err != nil {
		return false, err
	}
	if !yield(res) {
		return true, errStop
	}
	if s.found++; s.found == s.query.Limit {
		s.complete()
		s.outcome.Next = tracestore.Cursor{Start: c.key, ID: c.id, Set: true}
		return true, nil
	}
	return false, nil
}

// result makes the result of a trace, which is read once more where it was not kept.
func (s *search) result(ctx context.Context, c *candidate) (tracestore.Result, error) {
	res := tracestore.Result{ID: c.id, Start: c.key}
	if s.want == tracestore.WantIDs {
		return res, nil
	}
	if c.dropped {
		if err := s.readAgain(ctx, c); err != nil {
			return res, err
		}
	}
	var err error
	if s.want == tracestore.WantFull {
		res.Spans, err = otlpdata.Concat(c.pieces...)
		return res, err
	}
	sum, err := storequery.Summarize(c.id, c.pieces...)
	res.Summary = &sum
	return res, err
}

// readAgain reads the pieces of a trace that were not kept, up to max_trace_size of them: the other side need not come to an end.
func (s *search) readAgain(ctx context.Context, c *candidate) error {
	c.pieces = nil
	size := 0
	err := s.trace(ctx, s.query.Tenant, tracestore.TraceRef{ID: c.id}, func(b *otlpdata.Batch) error {
		if size += b.Size(); size > int(s.cfg.MaxTrace) {
			s.cut = fmt.Sprintf("trace %s is larger than max_trace_size (%s) and is shown in part", c.id, s.cfg.MaxTrace)
			return errStop
		}
		c.pieces = append(c.pieces, b)
		return nil
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// behind reports whether a key is behind a cursor.
func behind(c tracestore.Cursor, start uint64, id otlpdata.TraceID) bool {
	return !c.Set || start < c.Start || start == c.Start && slices.Compare(id[:], c.ID[:]) < 0
}

func newestFirst(a, b *candidate) int {
	return cmp.Or(cmp.Compare(b.key, a.key), slices.Compare(b.id[:], a.id[:]))
}
