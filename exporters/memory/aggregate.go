package memory

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Aggregate implements tracestore.Aggregator. It counts every duplicate once, and what was stored before it was called; spans that are
// evicted while it runs may be missing. Of more candidates than the budget allows it examines one of every so many, as they are ordered by start.
func (e *exporter) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	counter, err := storequery.NewAggregateCounter(q, a)
	if err != nil {
		return tracestore.Aggregate{}, err
	}
	if err := ctx.Err(); err != nil {
		return tracestore.Aggregate{}, err
	}
	from, to, ok := q.Window()
	if !ok {
		return counter.Answer(1), nil
	}
	r := aggregateReader{counter: counter, from: from}
	r.begin(e, q, to)
	err = r.run(ctx)
	out := counter.Answer(r.share())
	if errors.Is(err, context.DeadlineExceeded) && out.Scanned > 0 {
		out.Complete, out.Reason = false, fmt.Sprintf("time ran out after %d spans, the newest ones", out.Scanned)
		return out, nil
	}
	return out, err
}

// aggregateReader examines the spans within a window, newest first.
type aggregateReader struct {
	counter *storequery.AggregateCounter
	from    uint64
	scan    scan
	reader  otlpdata.SpanReader
	every   uint64 // one of so many rows is examined
	met     uint64 // rows
}

// begin takes the first rows, and finds out of how many to examine one.
func (a *aggregateReader) begin(e *exporter, q tracestore.Query, to uint64) {
	a.every = 1
	end := position{to, otlpdata.TraceID(maxID()), math.MaxUint64}
	e.mu.RLock()
	defer e.mu.RUnlock()
	a.scan = scan{store: e, snapshot: e.seq}
	t := e.tenants[q.Tenant]
	if t == nil {
		return
	}
	candidates := planner{t, e.seed}.plan(q.Where)
	a.scan.begin(candidates, end)
	if budget := uint64(max(q.Budget.Spans, 0)); budget > 0 {
		a.every = max((candidates.within(position{start: a.from}, end)+budget-1)/budget, 1)
	}
}

func (a *aggregateReader) run(ctx context.Context) error {
	for ; ; a.met++ {
		if a.met%mostRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		r := a.scan.next()
		if r == nil || r.start < a.from {
			return nil
		}
		if !a.examines(a.met) {
			continue
		}
		s, err := a.reader.Read(r.raw)
		if err != nil {
			return fmt.Errorf("reading a stored span: %w", err)
		}
		a.counter.AddSpan(tracestore.Span{Resource: &r.origin.resource, Scope: &r.origin.scope, Span: s})
	}
}

// examines chooses one of a.every rows, now here and now there: what comes at regular intervals is not always met, or never. The first row
// is examined, so that it is never none.
func (a *aggregateReader) examines(n uint64) bool {
	group := n / a.every
	const golden = 0x9e3779b97f4a7c15
	h := group * golden
	h = (h ^ h>>32) * golden
	return n%a.every == (h^h>>29)%a.every
}

// share returns which part of the rows was examined.
func (a *aggregateReader) share() float64 {
	if a.met == 0 {
		return 1
	}
	return float64(a.counter.Scanned()) / float64(a.met)
}

// within returns how many rows there are from one position to another. Those that are in several lists count several times.
func (s source) within(from, to position) uint64 {
	n := 0
	for _, l := range s.lists {
		n += l.rank(to) - l.rank(from)
	}
	for _, r := range s.rows {
		if r.compare(from) >= 0 && r.compare(to) < 0 {
			n++
		}
	}
	return uint64(n)
}
