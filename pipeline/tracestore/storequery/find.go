// Package storequery contains code that stores and their readers share: searches that depend on
// whole traces ([Find]), aggregates of what such a search selects ([AggregateSet]), and counters
// and reference implementations for facets, heatmaps, exemplars, metrics, calls between services
// and summaries.
package storequery

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Find returns the traces with a span that set selects, that meets q.Where and that starts within
// the window of q. Order, limit, cursor, budget and results are as for [tracestore.Reader.Find];
// the matching spans are the selected ones. Find lets the store evaluate as much as it can,
// examines the traces that may match, and continues until the limit is reached.
//
// Of a trace with more than Budget.TraceSpans spans it examines only a part, and the outcome is
// incomplete. Budget.Spans limits the spans that the store examines, and separately the spans of
// the traces that Find examines. When nine tenths of the time until the deadline of ctx have
// passed, Find stops between two traces as if the budget were exhausted.
func Find(
	ctx context.Context, r tracestore.Reader, q tracestore.Query, set SpanSet, want tracestore.Want,
) (*tracestore.Results, error) {
	s := NewSearch(r, set, want)
	found, err := s.Find(ctx, q)
	if err != nil {
		s.Close()
		return nil, err
	}
	return &tracestore.Results{Outcome: found.Outcome, All: func(yield func(tracestore.Result, error) bool) {
		defer s.Close()
		found.All(yield)
	}}, nil
}

// Search is a search in several steps. Each step is a call of Find that continues where the
// previous one ended. Unlike separate calls of [Find], the steps do not reread a trace, even if
// several of them end within it. A Search is for one goroutine.
type Search struct {
	reader tracestore.Reader
	set    SpanSet
	want   tracestore.Want
	kept   keptState
}

// NewSearch returns a search for the traces that set selects. The caller must call Close.
func NewSearch(r tracestore.Reader, set SpanSet, want tracestore.Want) *Search {
	return &Search{reader: r, set: simplifySet(set), want: want}
}

// Find is [Find] for one step. q must be the query of the first step, except for After, Limit and
// Budget. After must be Next of the previous outcome, and the previous results must have been read
// to the end. Later steps reuse the traces that earlier steps examined, even if the store has
// changed.
func (s *Search) Find(ctx context.Context, q tracestore.Query) (*tracestore.Results, error) {
	q.Where = tracestore.WithContext(ctx, q.Where)
	set := withContext(ctx, s.set)
	if one, ok := set.(Select); ok {
		where := simplify(tracestore.And{q.Where, one.Where})
		span, trace, mixed := splitTrace(where)
		switch {
		case mixed:
		case onlyTrace(trace):
		case trace == nil:
			q.Where = where
			return s.reader.Find(ctx, q, s.want)
		default:
			return findBySummaries(ctx, s.reader, q, span, trace, s.want)
		}
	}
	return findByCandidates(ctx, &s.kept, search{reader: s.reader, query: q, want: s.want}, set)
}

// onlyTrace reports whether a condition holds for at most one trace, whose id is known.
func onlyTrace(trace tracestore.Expr) bool {
	_, ok := traceID(Select{trace}, nil)
	return ok
}

// Close releases the memory of the search.
func (s *Search) Close() {
	s.kept.held.Release()
	s.kept = keptState{}
}

// search is the part that both kinds of searches share.
type search struct {
	reader   tracestore.Reader
	query    tracestore.Query
	want     tracestore.Want
	yield    func(tracestore.Result, error) bool
	emitted  int                // results
	scanned  int                // spans examined by the store and by the search
	skipped  tracestore.Reasons // why traces that may match were not examined in full
	damage   tracestore.Reasons // what could not be read
	memory   *tracestore.Memory
	deadline time.Time
	ended    bool
	outcome  tracestore.Outcome
}

// errEnd ends a search early: the outcome is set, or the caller wants no more results.
var errEnd = errors.New("search ended")

// results returns the results that run emits. Unless it returns an error, run sets the outcome.
func (s *search) results(ctx context.Context, run func(ctx context.Context) error) *tracestore.Results {
	s.outcome = tracestore.Unread()
	all := func(yield func(tracestore.Result, error) bool) {
		if s.ended {
			return
		}
		s.ended, s.yield = true, yield
		s.deadline = earlyDeadline(ctx)
		s.memory, _ = tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
		defer s.memory.Release()
		if err := run(ctx); err != nil && !errors.Is(err, errEnd) {
			s.outcome.Reasons = tracestore.BecauseOf(err)
			yield(tracestore.Result{}, err)
		}
	}
	return &tracestore.Results{All: all, Outcome: func() tracestore.Outcome {
		o := s.outcome
		o.Scanned = s.scanned
		o.Reasons.Add(s.damage...)
		o.Reasons.Add(s.skipped...)
		return o
	}}
}

// earlyDeadline returns a time before the deadline of ctx that leaves a tenth of the remaining time
// for the result. It is zero if ctx has no deadline.
func earlyDeadline(ctx context.Context) time.Time {
	end, ok := ctx.Deadline()
	if !ok {
		return time.Time{}
	}
	return end.Add(-time.Until(end) / 10)
}

// late reports whether the search should end because of its deadline.
func (s *search) late() bool { return !s.deadline.IsZero() && !time.Now().Before(s.deadline) }

var reasonLate = tracestore.Because(tracestore.ReasonTime,
	"stopped shortly before the query deadline; narrow the search or the time range")

// noteDamage records what a store could not read, if the iteration over its results ended early.
func (s *search) noteDamage(o tracestore.Outcome) {
	if o.Has(tracestore.ReasonUnread) {
		s.damage.Add(o.Without(tracestore.ReasonUnread)...)
	}
}

// emit yields a result.
func (s *search) emit(r tracestore.Result) error {
	if !s.yield(r, nil) {
		return errEnd
	}
	if s.emitted++; s.emitted == s.query.Limit {
		s.outcome = tracestore.Outcome{Next: cursorOf(r)}
		return errEnd
	}
	return nil
}

func cursorOf(r tracestore.Result) tracestore.Cursor {
	return tracestore.Cursor{Start: r.Start, ID: r.ID, Set: true}
}

// compareResults orders results newest first.
func compareResults(a, b tracestore.Result) int {
	return cmp.Or(cmp.Compare(b.Start, a.Start), bytes.Compare(b.ID[:], a.ID[:]))
}

// isAfter reports whether a result comes after a cursor.
func isAfter(r tracestore.Result, c tracestore.Cursor) bool {
	return !c.Set || compareResults(r, tracestore.Result{ID: c.ID, Start: c.Start}) > 0
}

// read sets the spans of a result. ok is false if the trace was deleted meanwhile. If the trace is
// damaged, it sets the spans that can be read.
func (s *search) read(ctx context.Context, r *tracestore.Result, ref tracestore.TraceRef) (ok bool, err error) {
	r.Spans, err = readTrace(ctx, s.reader, s.query, ref)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if tracestore.IsOutOfMemory(err) {
		return false, err
	}
	if err != nil && s.damage.Complete() {
		s.damage = tracestore.Because(tracestore.ReasonDamage, err.Error())
	}
	return r.Spans != nil, nil
}

// readTrace returns the spans of a trace, or nil if the trace no longer exists. If the trace has
// more than Budget.TraceSpans spans, it returns a part with more than this number. With an error it
// also returns the spans that could be read.
func readTrace(
	ctx context.Context, r tracestore.Reader, q tracestore.Query, ref tracestore.TraceRef,
) (*otlpdata.Batch, error) {
	var pieces []*otlpdata.Batch
	var failure error
	spans := 0
	memory, _ := tracestore.Reserve(ctx, 0)
	defer memory.Release() // the spans then belong to the caller
	for t, err := range r.Traces(ctx, q.Tenant, []tracestore.TraceRef{ref}) {
		if err == nil {
			if err = memory.Grow(int64(t.Spans.Size())); err != nil {
				return nil, err
			}
		}
		if err != nil {
			failure = fmt.Errorf("reading trace %s: %w", ref.ID, err)
			break
		}
		pieces = append(pieces, t.Spans)
		if spans += t.Spans.Len(); q.Budget.TraceSpans > 0 && spans > q.Budget.TraceSpans {
			break
		}
	}
	if len(pieces) == 0 {
		return nil, failure
	}
	b, err := otlpdata.Concat(pieces...)
	if err != nil {
		return nil, fmt.Errorf("reading trace %s: %w", ref.ID, err)
	}
	return b, failure
}

// TimeOf converts nanoseconds since the Unix epoch to a time.Time that is not zero, because a zero
// time sets no limit in a query.
func TimeOf(ns uint64) time.Time {
	const second = uint64(time.Second)
	return time.Unix(int64(ns/second), int64(ns%second))
}

// examinedInPart says that traces with more spans than a limit were not examined in full.
func examinedInPart(limit int) tracestore.Reasons {
	return tracestore.Because(tracestore.ReasonLimit, fmt.Sprintf("traces with more than %d spans were examined only in part", limit))
}
