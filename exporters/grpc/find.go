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

// Find implements tracestore.Reader. The standard protocols support fewer conditions, no cursors
// and no defined order. So a search sends the narrowest query that the protocol permits, evaluates
// the condition on the returned traces itself, and requests older traces until it has enough.
//
// It relies on the server to return the newest traces. If a server applies a limit to other traces,
// the search may miss some.
func (e *exporter) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if e.cfg.Archive {
		return nil, pipeline.Permanent(errArchiveSearch)
	}
	if own, err := e.storeService(e.withReadMetadata(ctx, q.Tenant)); err != nil {
		return nil, err
	} else if own {
		return e.storeFind(e.withReadMetadata(ctx, q.Tenant), q, want), nil
	}
	r, c, err := e.traceReader(e.withReadMetadata(ctx, q.Tenant))
	if err != nil {
		return nil, err
	}
	q.Where = tracestore.WithContext(ctx, q.Where)
	s := &search{exporter: e, reader: r, query: q, want: want, remoteQuery: newRemoteQuery(q.Where), cursor: q.After}
	if c.needsService && s.remoteQuery.service == "" {
		return nil, pipeline.Permanent(errNeedsService)
	}
	s.outcome = tracestore.Unread()
	return &tracestore.Results{All: s.results(ctx), Outcome: func() tracestore.Outcome { return s.outcome }}, nil
}

// search is a running query.
type search struct {
	*exporter
	reader      traceReader
	query       tracestore.Query
	want        tracestore.Want
	remoteQuery *remoteQuery
	from, to    uint64            // the window of the query
	cursor      tracestore.Cursor // results at or before it were yielded or are not requested
	found       int
	partial     tracestore.Reasons // about traces that were returned in part
	outcome     tracestore.Outcome
}

// minRequested is the number of traces to request if it is unknown how many of them match.
const minRequested = 100

func (s *search) results(ctx context.Context) iter.Seq2[tracestore.Result, error] {
	return func(yield func(tracestore.Result, error) bool) {
		err := s.run(ctx, func(r tracestore.Result) bool { return yield(r, nil) })
		if err != nil && !errors.Is(err, errStop) {
			s.outcome.Reasons = tracestore.BecauseOf(err)
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
	s.remoteQuery.from, s.remoteQuery.to = s.from, s.latestStart()
	if s.cursor.Set {
		s.remoteQuery.to = min(s.remoteQuery.to, s.cursor.Start)
	}
	s.remoteQuery.limit = s.firstLimit()
	for s.remoteQuery.from <= s.remoteQuery.to {
		if end, err := s.round(ctx, yield); end || err != nil {
			return err
		}
	}
	s.complete()
	return nil
}

// latestStart returns the end of the time range for the server. It is never missing, because other
// servers would interpret that as the year 1. An open end is the current time, because servers that
// calculate with 63 bits would interpret the maximum uint64 as a time before 1970.
func (s *search) latestStart() uint64 {
	if now := s.set.Env.Now().UnixNano(); s.query.To.IsZero() && now > 0 {
		return min(s.to, max(uint64(now), s.from))
	}
	return s.to
}

// round sends one request and yields the results that are certain. end is true after the last
// round.
func (s *search) round(ctx context.Context, yield func(tracestore.Result) bool) (end bool, err error) {
	r, err := s.fetch(ctx)
	if err != nil {
		return false, err
	}
	defer r.release()
	return s.process(ctx, r, yield)
}

// firstLimit returns the limit of the first request. If all returned traces match, it is the number
// of results plus one, because there may be further traces with the same start as the last one.
func (s *search) firstLimit() int {
	limit := minRequested
	if s.query.Limit > 0 && (s.remoteQuery.exact || s.query.Limit >= limit) {
		limit = s.query.Limit + 1
	}
	return min(limit, s.cfg.MaxTraces)
}

func (s *search) complete() { s.outcome.Reasons = s.partial }

// process yields the results that are certain after a round and prepares the next one. end is true
// if there is none.
func (s *search) process(ctx context.Context, r *round, yield func(tracestore.Result) bool) (end bool, err error) {
	all := r.count < s.remoteQuery.limit || !r.incomplete.Complete()
	for _, c := range r.ordered(s.cursor) {
		if !all && c.key <= r.oldest {
			break // there may be further traces with this start or an older one
		}
		if end, err := s.yield(ctx, c, yield); end || err != nil {
			return true, err
		}
	}
	switch {
	case !r.incomplete.Complete():
		s.outcome.Reasons = r.incomplete
		return true, nil
	case all:
		s.complete()
		return true, nil
	case !r.anyMatch || r.oldest == s.remoteQuery.to:
		return s.widen(), nil
	}
	s.cursor = tracestore.Cursor{Start: r.oldest + 1, Set: true}
	s.remoteQuery.to = r.oldest
	s.remoteQuery.limit = min(max(2*s.remoteQuery.limit, minRequested), s.cfg.MaxTraces)
	return s.overBudget(), nil
}

// widen increases the limit of the next request, because all returned traces start at the same
// time. It returns true if the limit is reached.
func (s *search) widen() (end bool) {
	if s.remoteQuery.limit >= s.cfg.MaxTraces {
		s.outcome.Reasons = tracestore.Because(tracestore.ReasonLimit, fmt.Sprintf("more than %d traces start at the same time, or the "+
			"remote storage server does not return the newest traces (max_traces_per_question)", s.remoteQuery.limit))
		return true
	}
	s.remoteQuery.limit = min(2*s.remoteQuery.limit, s.cfg.MaxTraces)
	return false
}

// overBudget ends a search whose budget is exhausted, if the cursor has moved since the start of
// the query.
func (s *search) overBudget() bool {
	budget := s.query.Budget.Spans
	if budget <= 0 || s.outcome.Scanned < budget || s.query.After.Set && !isAfter(s.query.After, s.cursor.Start, s.cursor.ID) {
		return false
	}
	s.outcome.Next = s.cursor
	s.outcome.Reasons = tracestore.BudgetSpent(s.outcome.Scanned)
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

// result returns the result for a trace, which is reread if its spans were dropped.
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

// readAgain rereads the dropped pieces of a trace, up to max_trace_size, because a server may send
// an endless response.
func (s *search) readAgain(ctx context.Context, c *candidate) error {
	c.pieces = nil
	size := 0
	incomplete, err := s.trace(ctx, s.query.Tenant, tracestore.TraceRef{ID: c.id}, func(b *otlpdata.Batch) error {
		if size += b.Size(); size > int(s.cfg.MaxTrace) {
			s.partial = s.tooLarge(c.id)
			return errStop
		}
		c.pieces = append(c.pieces, b)
		return nil
	})
	if incomplete != "" {
		s.partial = tracestore.Because(tracestore.ReasonDamage, incomplete)
	}
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// isAfter reports whether a key comes after a cursor.
func isAfter(c tracestore.Cursor, start uint64, id otlpdata.TraceID) bool {
	return !c.Set || start < c.Start || start == c.Start && slices.Compare(id[:], c.ID[:]) < 0
}

func compareCandidates(a, b *candidate) int {
	return cmp.Or(cmp.Compare(b.key, a.key), slices.Compare(b.id[:], a.id[:]))
}
