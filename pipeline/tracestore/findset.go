package tracestore

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
)

// FindSet returns the traces of which a span is chosen by set, fits q.Where and starts within the window of q. Order, limit, cursor, budget
// and what is returned are as in [Reader.Find], where the spans that match are those. It asks the store for what the store can find by
// itself, looks at the traces that may fit, and goes on until the limit is reached.
//
// Of a trace that is longer than Budget.TraceSpans it looks at a part, where it has to look at spans, and the outcome is not complete then.
// Budget.Spans bounds what the store examines, and the spans of traces that are looked at, each.
func FindSet(ctx context.Context, r Reader, q Query, set SpanSet, want Want) (*Results, error) {
	set = simplifySet(set)
	if s, ok := set.(Select); ok {
		where := simplify(And{q.Where, s.Where})
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

// setAnswer is an answer of FindSet under way.
type setAnswer struct {
	reader  Reader
	query   Query
	want    Want
	yield   func(Result, error) bool
	found   int
	scanned int    // spans, by the store and here
	cut     string // what was not looked at of the traces that may be results
	ended   bool
	outcome Outcome
}

// errEnough ends a search: the limit is reached, which the outcome says, or the caller wants no more.
var errEnough = errors.New("no more results are wanted")

// results returns the answer that run gives. Run says the outcome, unless an error ends it.
func (a *setAnswer) results(ctx context.Context, run func(ctx context.Context) error) *Results {
	a.outcome.Reason = "the results were not read to their end"
	all := func(yield func(Result, error) bool) {
		if a.ended {
			return
		}
		a.ended, a.yield = true, yield
		if err := run(ctx); err != nil && !errors.Is(err, errEnough) {
			a.outcome.Reason = err.Error()
			yield(Result{}, err)
		}
	}
	return &Results{All: all, Outcome: func() Outcome {
		o := a.outcome
		o.Scanned = a.scanned
		return o
	}}
}

// give yields a result.
func (a *setAnswer) give(r Result) error {
	if !a.yield(r, nil) {
		return errEnough
	}
	if a.found++; a.found == a.query.Limit {
		a.outcome = Outcome{Complete: a.cut == "", Reason: a.cut, Next: cursorOf(r)}
		return errEnough
	}
	return nil
}

func cursorOf(r Result) Cursor { return Cursor{Start: r.Start, ID: r.ID, Set: true} }

// compare orders results newest first.
func (r *Result) compare(o Result) int {
	return cmp.Or(cmp.Compare(o.Start, r.Start), bytes.Compare(o.ID[:], r.ID[:]))
}

// behind reports whether a result comes behind a cursor.
func (r *Result) behind(c Cursor) bool {
	return !c.Set || r.compare(Result{ID: c.ID, Start: c.Start}) > 0
}

// readTraces returns the spans of traces, and nothing of those that are gone. Of a trace that is longer than a number (0: none) it returns
// a longer part.
func readTraces(ctx context.Context, r Reader, q Query, refs []TraceRef) (map[otlpdata.TraceID]*otlpdata.Batch, error) {
	pieces := make(map[otlpdata.TraceID][]*otlpdata.Batch, len(refs))
	spans := make(map[otlpdata.TraceID]int, len(refs))
	for t, err := range r.Traces(ctx, q.Tenant, refs) {
		if err != nil {
			return nil, err
		}
		if most := q.Budget.TraceSpans; most > 0 && spans[t.ID] > most {
			continue
		}
		pieces[t.ID] = append(pieces[t.ID], t.Spans)
		spans[t.ID] += t.Spans.Len()
	}
	out := make(map[otlpdata.TraceID]*otlpdata.Batch, len(pieces))
	for id, list := range pieces {
		b, err := otlpdata.Concat(list...)
		if err != nil {
			return nil, fmt.Errorf("reading trace %s: %w", id, err)
		}
		out[id] = b
	}
	return out, nil
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
