package storequery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// SetAggregation selects what [AggregateSet] computes.
type SetAggregation struct {
	tracestore.Aggregation
	// Traces counts the traces with a selected span instead of the selected spans. A trace is
	// counted with the start and the duration of its summary, or with the start of the window if it
	// begins earlier; it counts as an error if one of its spans failed. An exemplar describes a
	// trace by its root span. Traces have no facets and no measured numbers. They can be grouped by
	// the fields of the trace and by Service, the services of their spans; Errors and Durations
	// then describe traces.
	Traces bool
	// OfTrace gives counted spans the fields of their traces.
	OfTrace bool
	// Selected restricts Facets.Selection to the spans that it selects. nil selects all.
	Selected SpanSet
	// Durations, if not nil, receives the durations in nanoseconds of the counted spans or traces,
	// in any order.
	Durations *[]uint64
}

var errTraceFacets = errors.New("traces have no facets and no measured numbers; count spans")

// AggregateSet describes the spans that set selects, that meet q.Where and that start within the
// window of q, or their traces. It is for sets that depend on whole traces; for others, use
// [tracestore.Aggregator], which also describes the result. If traces are counted, read "trace" for
// "span" there.
//
// Budget.Spans limits the spans that the store examines, and separately the spans of the traces
// that may match. If there are more, AggregateSet examines the traces whose newest selected span is
// in one of many short parts of the window. The parts are spread over the window and independent of
// the content of spans. Of a trace with more than Budget.TraceSpans spans it examines only a part,
// and the result is incomplete.
func AggregateSet(
	ctx context.Context, r tracestore.Reader, q tracestore.Query, set SpanSet, a SetAggregation,
) (tracestore.Aggregate, error) {
	if err := errors.Join(a.Check(q), ctx.Err()); err != nil {
		return tracestore.Aggregate{}, err
	}
	if a.Traces && (a.Facets.Values > 0 || a.Groups.Measure != tracestore.MeasureNone) {
		return tracestore.Aggregate{}, errTraceFacets
	}
	q.Where, q.Limit, q.After = tracestore.WithContext(ctx, q.Where), 0, tracestore.Cursor{}
	a.Aggregation = a.Aggregation.WithContext(ctx)
	s := newSetAggregation(ctx, r, q, withContext(ctx, simplifySet(set)), a)
	if err := s.reset(); err != nil || !s.window.ok {
		return s.answer(), err
	}
	defer s.memory.Release()
	err := s.run(ctx)
	if s.counter.spans > 0 && (errors.Is(err, context.DeadlineExceeded) || tracestore.IsOutOfMemory(err)) {
		s.stopped = tracestore.Because(tracestore.KindOf(err), fmt.Sprintf("stopped after examining %d spans: %s", s.spent(), err))
		err = nil
	}
	if err != nil {
		return tracestore.Aggregate{}, err
	}
	return s.answer(), nil
}

// setAggregation is a running call of AggregateSet. The query is for the whole window.
type setAggregation struct {
	search
	window      window
	inner       tracestore.Query // for the traces that may match, without its window
	bySummaries bool             // summaries are sufficient
	ofTrace     tracestore.Expr  // if bySummaries: the condition on the trace
	want        SetAggregation
	matcher     *setMatcher
	chosen      *setMatcher                   // of want.Selected; nil if that is nil
	known       map[otlpdata.TraceID]struct{} // examined traces; nil: not needed
	counter     *AggregateCounter
	charged     *tracestore.Memory // of the counter
	examined    int                // spans of traces that may match
	sampling    bool               // countSample sets share; otherwise visit does
	share       float64
	parts       partSpread
	stopped     tracestore.Reasons // why the result is incomplete, other than by damage
}

func newSetAggregation(ctx context.Context, r tracestore.Reader, q tracestore.Query, set SpanSet, a SetAggregation) *setAggregation {
	s := &setAggregation{search: search{reader: r, query: q, deadline: earlyDeadline(ctx)}, window: windowOf(q), inner: q, want: a}
	s.memory, _ = tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
	s.charged, _ = tracestore.Reserve(ctx, 0)
	s.matcher = newSetMatcher(set, simplify(q.Where), append(slices.Clip(a.Groups.By), a.Groups.Of)...)
	s.matcher.needsSummary = s.matcher.needsSummary || a.Traces || a.OfTrace
	if a.Selected != nil {
		s.chosen = newSetMatcher(withContext(ctx, a.Selected), nil)
	}
	s.inner.Where = simplify(tracestore.And{weaken(q.Where), cover(set)})
	s.inner.OfTrace = simplify(tracestore.And{weakenToTrace(q.Where), coverTrace(set)})
	if one, ok := set.(Select); ok && a.Traces {
		span, trace, mixed := splitTrace(simplify(tracestore.And{q.Where, one.Where}))
		if !mixed {
			s.bySummaries, s.ofTrace, s.inner.Where, s.inner.OfTrace = true, trace, span, trace
		}
	}
	return s
}

// reset begins to count anew.
func (s *setAggregation) reset() (err error) {
	s.charged.Release()
	q := s.query
	q.Where = nil // the matcher tests it
	if s.counter, err = NewAggregateCounter(q, s.want.Aggregation); err != nil {
		return err
	}
	s.counter.ChargeTo(s.charged)
	if s.want.Durations != nil {
		*s.want.Durations = (*s.want.Durations)[:0]
	}
	s.share, s.parts = 1, partSpread{}
	return nil
}

// spent returns what was used of Budget.Spans.
func (s *setAggregation) spent() int { return max(s.scanned, s.examined) }

// answer returns the aggregate.
func (s *setAggregation) answer() tracestore.Aggregate {
	if s.counter == nil {
		return tracestore.Aggregate{}
	}
	out := s.counter.Answer(s.share)
	out.Scanned, out.RelativeError = s.spent(), s.parts.relativeError(s.share)
	out.Reasons.Add(slices.Concat(s.stopped, s.damage, s.skipped)...)
	s.charged.Release()
	return out
}

// part is a part of the window by the start of spans, both ends inclusive.
type part struct{ from, to uint64 }

// visit counts the traces whose newest selected span is in a part. If all spans are selected, it
// uses the first span instead; what matters is that each trace belongs to one part. If the budget
// of spans (0 sets no limit) or the time runs out, cut is true and rest is the part that remains.
// visit skips the traces in s.known, and adds the examined traces to it.
func (s *setAggregation) visit(ctx context.Context, p part, budget int) (rest part, cut bool, err error) {
	q, want := s.inner, tracestore.WantFull
	if s.bySummaries {
		want = tracestore.WantSummaries
	}
	q.From, q.To, q.Budget.Spans = TimeOf(p.from), TimeOf(p.to), budget
	found, err := s.reader.Find(ctx, q, want)
	if err != nil {
		return rest, false, err
	}
	rest = p
	limit := s.examined + budget
	for r, err := range found.All {
		if err == nil {
			err = s.trace(ctx, p, &r)
		}
		if err != nil {
			s.scanned += found.Outcome().Scanned
			return rest, false, err
		}
		rest.to = r.Start
		s.setShare(rest)
		if cut = budget > 0 && s.examined >= limit || s.late(); cut {
			break
		}
	}
	o := found.Outcome()
	s.scanned += o.Scanned
	if !cut && !o.Complete() && o.Next.Set { // the budget of the store is exhausted
		cut, rest.to = true, o.Next.Start
		s.setShare(rest)
	} else {
		s.noteMissing(o)
	}
	if !cut && !s.sampling {
		s.share = 1
	}
	return rest, cut, nil
}

// setShare sets the share of the window that was examined if a part remains.
func (s *setAggregation) setShare(rest part) {
	if !s.sampling {
		s.share = max(float64(s.window.to-rest.to)/max(float64(s.window.to-s.window.from), 1), 1.0/maxParts)
	}
}

// noteMissing records what a store could not read.
func (s *setAggregation) noteMissing(o tracestore.Outcome) {
	if o.Has(tracestore.ReasonUnread) {
		s.noteDamage(o)
	} else if s.damage.Complete() {
		s.damage = o.Reasons
	}
}

// trace examines a trace that may match, and counts it if its newest selected span is in a part.
func (s *setAggregation) trace(ctx context.Context, p part, r *tracestore.Result) error {
	if _, known := s.known[r.ID]; known {
		return nil
	}
	if s.known != nil {
		if err := s.memory.Grow(knownMemory); err != nil {
			return err
		}
		s.known[r.ID] = struct{}{}
	}
	if !s.bySummaries {
		return s.examine(ctx, p, r.ID, r.Spans)
	}
	s.examined += r.Summary.Spans
	matched := tracestore.Match(s.ofTrace, tracestore.Span{Trace: r.Summary})
	if err := ctx.Err(); err != nil || !matched {
		return err // matched may be wrong, see tracestore.WithContext
	}
	if s.inner.Where == nil && r.Summary.Start >= s.window.from {
		// The first span matches as well, so the trace is found in the part in which it starts. It
		// is counted there, because its newest span is not known.
		if r.Summary.Start >= p.from && r.Summary.Start <= p.to {
			return s.countTrace(r.Summary)
		}
		return nil
	}
	if r.Summary.End <= p.to || p.to >= s.window.to {
		return s.countTrace(r.Summary)
	}
	// A newer span may be selected, in another part.
	spans, err := s.spansOf(ctx, tracestore.TraceRef{ID: r.ID})
	if err != nil || spans == nil {
		return err
	}
	return s.examine(ctx, p, r.ID, spans)
}

func (s *setAggregation) countTrace(t *tracestore.Summary) error {
	s.counter.addTrace(t)
	return s.keepDuration(t.End - min(t.Start, t.End))
}

func (s *setAggregation) keepDuration(d uint64) error {
	list := s.want.Durations
	if list == nil {
		return nil
	}
	const size = 8
	if len(*list) == cap(*list) {
		if err := s.memory.Grow(int64(len(*list)+1) * size); err != nil { // it doubles
			return err
		}
	}
	*list = append(*list, d)
	return nil
}

// spansOf returns the spans of a trace, or nil if the trace no longer exists. Damage is recorded.
func (s *setAggregation) spansOf(ctx context.Context, ref tracestore.TraceRef) (*otlpdata.Batch, error) {
	r := tracestore.Result{ID: ref.ID}
	_, err := s.read(ctx, &r, ref)
	return r.Spans, err
}

// examine evaluates the set on the spans of a trace, and counts the trace if its newest selected
// span is in a part.
func (s *setAggregation) examine(ctx context.Context, p part, id otlpdata.TraceID, spans *otlpdata.Batch) error {
	n := spans.Len()
	s.examined += n
	memory := int64(spans.Size() + (matcherMemory+s.matcher.spanMemory())*n) // the former for duplicates and the counter
	if s.chosen != nil {
		memory += int64(s.chosen.spanMemory() * n)
	}
	if err := s.memory.Grow(memory); err != nil {
		return err
	}
	defer func() { _ = s.memory.Grow(-memory) }() // cannot fail
	if limit := s.query.Budget.TraceSpans; limit > 0 && n > limit {
		s.skipped = examinedInPart(limit)
	}
	walk := walkBatches(spans)
	if err := s.matcher.evaluate(ctx, id, NewDedup(), walk); err != nil {
		return fmt.Errorf("examining trace %s: %w", id, err)
	}
	if newest, ok := s.newest(); !ok || newest < p.from || newest > p.to {
		return nil
	}
	if s.want.Traces {
		return s.countTrace(&s.matcher.summary)
	}
	if s.chosen != nil {
		if err := s.chosen.evaluate(ctx, id, NewDedup(), walk); err != nil {
			return fmt.Errorf("examining trace %s: %w", id, err)
		}
	}
	return s.matcher.each(func(sp tracestore.Span, at int) error {
		if !s.want.OfTrace {
			sp.Trace = nil
		}
		if s.matcher.selected[at] && s.window.has(sp.Start) {
			s.counter.count(sp, s.chosen == nil || s.chosen.selected[at])
			duration, _ := sp.Duration()
			return s.keepDuration(duration)
		}
		return nil
	})
}

// WindowSummarizer is implemented by stores that can summarize all traces in a time range faster
// than with Find.
type WindowSummarizer interface {
	// EachInWindow calls take once for each trace with a span that starts within the window of a
	// query and meets its condition, in any order. The summaries have no Services and no number of
	// Orphans. The budget of the query does not apply. If done is false without an error, the store
	// does not support this query, and take was not called. missing says what could not be read.
	EachInWindow(ctx context.Context, q tracestore.Query, take func(*tracestore.Summary) error) (
		done bool, missing tracestore.Reasons, err error)
}

// countSummaries counts all traces if the store can summarize them.
func (s *setAggregation) countSummaries(ctx context.Context) (done bool, err error) {
	store, ok := tracestore.As[WindowSummarizer](ctx, s.query.Tenant, s.reader)
	ofServices := slices.ContainsFunc(s.want.Groups.By, func(f tracestore.Field) bool { return f.Place == tracestore.Service })
	if !ok || !s.bySummaries || ofServices {
		return false, nil
	}
	all := part{s.window.from, s.window.to}
	q := s.inner
	q.From, q.To = s.query.From, s.query.To
	done, missing, err := store.EachInWindow(ctx, q, func(t *tracestore.Summary) error {
		return s.trace(ctx, all, &tracestore.Result{ID: t.ID, Start: t.Start, Summary: t})
	})
	s.damage = missing
	return done, err
}

// newest returns the start of the newest selected span within the window.
func (s *setAggregation) newest() (start uint64, ok bool) {
	for i, selected := range s.matcher.selected {
		if at := s.matcher.starts[i]; selected && s.window.has(at) {
			start, ok = max(start, at), true
		}
	}
	return start, ok
}
