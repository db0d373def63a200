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

// Aggregate implements tracestore.Aggregator. It counts duplicates once. It ignores spans that are
// stored after the call, and may miss spans that are evicted while it runs. If there are more
// candidates than the budget permits, it examines one in n, in order of start.
func (e *exporter) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	q.Where, a = tracestore.WithContext(ctx, q.Where), a.WithContext(ctx)
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
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return tracestore.Aggregate{}, err
	}
	defer memory.Release()
	counter.ChargeTo(memory)
	r := aggregateReader{counter: counter, from: from}
	r.begin(e, q, to)
	err = r.run(ctx)
	if err == nil {
		err = ctx.Err() // conditions may be wrong, see tracestore.WithContext
	}
	out := counter.Answer(r.share())
	if errors.Is(err, context.DeadlineExceeded) && out.Scanned > 0 {
		out.Reasons = tracestore.Because(tracestore.ReasonTime,
			fmt.Sprintf("deadline exceeded after examining the newest %d spans", out.Scanned))
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
	every   uint64 // one in this number of rows is examined
	visited uint64 // rows
}

// begin takes the first rows and sets every.
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
	rows := planner{t, e.seed}.plan(q.Where)
	a.scan.begin(rows, end)
	if budget := uint64(max(q.Budget.Spans, 0)); budget > 0 {
		a.every = max((rows.within(position{start: a.from}, end)+budget-1)/budget, 1)
	}
}

func (a *aggregateReader) run(ctx context.Context) error {
	for ; ; a.visited++ {
		if a.visited%maxRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		r := a.scan.next()
		if r == nil || r.start < a.from {
			return nil
		}
		if !a.examines(a.visited) {
			continue
		}
		s, err := a.reader.Read(r.raw)
		if err != nil {
			return fmt.Errorf("parsing stored span: %w", err)
		}
		a.counter.AddSpan(tracestore.Span{Resource: &r.origin.resource, Scope: &r.origin.scope, Span: s})
	}
}

// examines reports whether row n is examined: one in a.every rows, at a pseudorandom position, so
// that spans at regular intervals are sampled evenly. The first row is always examined.
func (a *aggregateReader) examines(n uint64) bool {
	group := n / a.every
	const golden = 0x9e3779b97f4a7c15
	h := group * golden
	h = (h ^ h>>32) * golden
	return n%a.every == (h^h>>29)%a.every
}

// share returns the share of the rows that was examined.
func (a *aggregateReader) share() float64 {
	if a.visited == 0 {
		return 1
	}
	return float64(a.counter.Scanned()) / float64(a.visited)
}

// within returns the number of rows between two positions. Rows in several lists count several
// times.
func (s candidates) within(from, to position) uint64 {
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
