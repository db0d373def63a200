package storequery

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Find returns the traces of which a span is chosen by set, fits q.Where and starts within the window of q. Order, limit, cursor, budget
// and what is returned are as in [Reader.Find], where the spans that match are those. It asks the store for what the store can find by
// itself, looks at the traces that may fit, and goes on until the limit is reached.
//
// Of a trace that is longer than Budget.TraceSpans it looks at a part, where it has to look at spans, and the outcome is not complete then.
// Budget.Spans bounds what the store examines, and the spans of traces that are looked at, each. When most of the time until the deadline
// of ctx is over, it ends between two traces as if the budget had run out.
func Find(ctx context.Context, r tracestore.Reader, q tracestore.Query, set SpanSet, want tracestore.Want) (*tracestore.Results, error) {
	set = simplifySet(set)
	if s, ok := set.(Select); ok {
		where := simplify(tracestore.And{q.Where, s.Where})
		span, trace, mixed := splitTrace(where)
		switch {
		case mixed:
		case trace == nil:
			q.Where = where
			return r.Find(ctx, q, want)
		default:
			return findByFacts(ctx, r, q, span, trace, want)
		}
	}
	return findByTraces(ctx, r, q, set, want)
}

// setAnswer is an answer of Find under way.
type setAnswer struct {
	reader  tracestore.Reader
	query   tracestore.Query
	want    tracestore.Want
	yield   func(tracestore.Result, error) bool
	found   int
	scanned int       // spans, by the store and here
	cut     string    // what was not looked at of the traces that may be results
	lost    string    // what could not be read
	until   time.Time // when to say how far it got; zero: never
	ended   bool
	outcome tracestore.Outcome
}

// errEnough ends a search: the limit is reached, which the outcome says, or the caller wants no more.
var errEnough = errors.New("no more results are wanted")

// results returns the answer that run gives. Run says the outcome, unless an error ends it.
func (a *setAnswer) results(ctx context.Context, run func(ctx context.Context) error) *tracestore.Results {
	a.outcome.Reason = tracestore.ReasonUnread
	all := func(yield func(tracestore.Result, error) bool) {
		if a.ended {
			return
		}
		a.ended, a.yield = true, yield
		a.until = mostOfTime(ctx)
		if err := run(ctx); err != nil && !errors.Is(err, errEnough) {
			a.outcome.Reason = err.Error()
			yield(tracestore.Result{}, err)
		}
	}
	return &tracestore.Results{All: all, Outcome: func() tracestore.Outcome {
		o := a.outcome
		o.Scanned = a.scanned
		if missing := joinReasons(a.lost, a.cut); missing != "" {
			o.Complete, o.Reason = false, joinReasons(o.Reason, missing)
		}
		return o
	}}
}

// mostOfTime returns when a tenth of the time until the deadline of ctx is left to answer in. It is zero where there is no deadline.
func mostOfTime(ctx context.Context) time.Time {
	end, ok := ctx.Deadline()
	if !ok {
		return time.Time{}
	}
	return end.Add(-time.Until(end) / 10)
}

// late reports whether it is time to end.
func (a *setAnswer) late() bool { return !a.until.IsZero() && !time.Now().Before(a.until) }

const lateReason = "stopped because the time was nearly over; narrow the search or the time range"

// lose notes what a store that was not asked to its end says that it could not read.
func (a *setAnswer) lose(o tracestore.Outcome) {
	if _, lost, ok := strings.Cut(o.Reason, tracestore.ReasonUnread+"; "); ok {
		a.lost = joinReasons(a.lost, lost)
	}
}

// give yields a result.
func (a *setAnswer) give(r tracestore.Result) error {
	if !a.yield(r, nil) {
		return errEnough
	}
	if a.found++; a.found == a.query.Limit {
		a.outcome = tracestore.Outcome{Complete: true, Next: cursorOf(r)}
		return errEnough
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

// read gives a result the spans of its trace. It is false where the trace is gone by now. Of a damaged one it gives what can be read.
func (a *setAnswer) read(ctx context.Context, r *tracestore.Result, ref tracestore.TraceRef) (ok bool, err error) {
	r.Spans, err = readTrace(ctx, a.reader, a.query, ref)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil && a.lost == "" {
		a.lost = err.Error()
	}
	return r.Spans != nil, nil
}

// readTrace returns the spans of a trace, and nil where it is gone. Of one that is longer than Budget.TraceSpans it returns a longer part.
// What could be read comes also with an error.
func readTrace(ctx context.Context, r tracestore.Reader, q tracestore.Query, ref tracestore.TraceRef) (*otlpdata.Batch, error) {
	var pieces []*otlpdata.Batch
	var failure error
	spans := 0
	for t, err := range r.Traces(ctx, q.Tenant, []tracestore.TraceRef{ref}) {
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

// timeOf returns a start as a time of a query, which is a bound where it is not zero.
func timeOf(ns uint64) time.Time {
	const second = uint64(time.Second)
	return time.Unix(int64(ns/second), int64(ns%second))
}

// joinReasons joins what is missing for several reasons.
func joinReasons(reasons ...string) string {
	return strings.Join(slices.DeleteFunc(reasons, func(s string) bool { return s == "" }), "; ")
}
