package callpath

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// HeadReader is implemented by stores that can read several traces in one pass, and only the parts
// that Profile needs.
type HeadReader interface {
	// EachHeads calls take once for each of the traces that exist, in any order. The spans are
	// valid only during the call; they have no duplicates, Host or Extras. If limit is above 0 and
	// a trace has more than limit spans, take may get a part with more than limit spans. The memory
	// is charged to the query of ctx. An error of take is returned. A DamagedError at the end means
	// that other spans cannot be read.
	EachHeads(ctx context.Context, tenant string, ids []otlpdata.TraceID, limit int,
		take func(id otlpdata.TraceID, spans []tracestore.SummarySpan) error) error
}

// Profile implements [tracestore.PathProfiler] with the searches of a store. It reads heads of
// traces if the store is a HeadReader, otherwise outlines.
func Profile(
	ctx context.Context, r tracestore.Reader, q tracestore.Query, sel tracestore.Selection, o tracestore.PathOptions,
) (tracestore.PathProfile, error) {
	return ProfileSets(ctx, r, q, sel, Sets{}, o)
}

// Sets are sets of spans that depend on the structure of traces, each of the whole trace.
type Sets struct{ All, Selected []storequery.SpanSet }

// ProfileSets is like Profile, but describes the traces with a span that matches q and that all of
// sets.All select. A trace is selected if all of sets.Selected also select such a span that meets
// sel. If there are sets, whole traces are read, and their spans count against Budget.Spans.
func ProfileSets(
	ctx context.Context, r tracestore.Reader, q tracestore.Query, sel tracestore.Selection, sets Sets, o tracestore.PathOptions,
) (tracestore.PathProfile, error) {
	if err := errors.Join(o.Check(), ctx.Err()); err != nil {
		return tracestore.PathProfile{}, err
	}
	q.Where, sel.Where = tracestore.WithContext(ctx, q.Where), tracestore.WithContext(ctx, sel.Where)
	q.OfTrace, q.Skip, q.Limit, q.After = nil, nil, 0, tracestore.Cursor{}
	p := &profiler{reader: r, query: q, sets: sets, want: o.Traces, deadline: earlyDeadline(ctx), known: make(map[otlpdata.TraceID]bool)}
	if p.want == 0 {
		p.want = tracestore.MaxPathTraces
	}
	p.memory, _ = tracestore.Reserve(ctx, 0) // cannot fail: it reserves 0 bytes
	p.reading, _ = tracestore.Reserve(ctx, 0)
	defer p.memory.Release()
	defer p.reading.Release()
	p.counter.ChargeTo(p.memory)
	shares, err := p.run(ctx, sel)
	if read := len(p.known) > 0; err != nil && read && (errors.Is(err, context.DeadlineExceeded) || tracestore.IsOutOfMemory(err)) {
		p.note(tracestore.KindOf(err), fmt.Sprintf("stopped after reading %d traces: %s", len(p.known), err))
		err = nil
	}
	if err != nil {
		return tracestore.PathProfile{}, err
	}
	return p.answer(shares), nil
}

// earlyDeadline returns a time before the deadline of ctx that leaves a fifth of the remaining time
// for the result. It is zero if ctx has no deadline.
func earlyDeadline(ctx context.Context) time.Time {
	end, ok := ctx.Deadline()
	if !ok {
		return time.Time{}
	}
	return end.Add(-time.Until(end) / 5)
}

// knownMemory is the approximate number of bytes that a known trace takes.
const knownMemory = 64

// profiler is a running call of Profile.
type profiler struct {
	reader   tracestore.Reader
	query    tracestore.Query
	sets     Sets // none: the query and the selection are the only conditions
	want     int  // traces of each set
	deadline time.Time
	known    map[otlpdata.TraceID]bool // traces that need not be reread; true: not in the rest
	memory   *tracestore.Memory        // of known and the counter
	reading  *tracestore.Memory        // of the trace that is read
	tree     Tree
	largest  int // spans of the largest tree
	counter  Counter
	scanned  int
	reasons  tracestore.Reasons
	damage   tracestore.Reasons // the first one
}

// run counts the selected traces, then the rest, and returns the examined share of each set (rest,
// selected).
func (p *profiler) run(ctx context.Context, sel tracestore.Selection) (shares [2]float64, err error) {
	shares = [2]float64{1, 1}
	both, all := p.both(sel)
	sets := slices.Concat(p.sets.All, p.sets.Selected)
	// The selected traces get the first half of the time, the rest the second.
	chosen := sampling{profiler: p, query: both, selected: true, until: halfway(p.deadline)}
	chosen.of(ctx, sets)
	err = chosen.run(ctx)
	shares[1] = chosen.share()
	if err != nil {
		return shares, err
	}
	rest := sampling{profiler: p, query: p.query, until: p.deadline}
	rest.of(ctx, p.sets.All)
	if all && len(sets) == 0 {
		rest.narrower = tracestore.And{p.query.Where, tracestore.Not{Expr: sel.Where}}
	}
	if _, uses := storequery.PlacesOf(both.Where); !uses && len(sets) == 0 {
		rest.without = &both
	}
	if !chosen.complete() { // otherwise all selected traces are known
		found, isSelected := rest.accepts, p.matches(ctx, both)
		if len(sets) > 0 {
			isSelected = rest.selects(ctx, sets, both)
		}
		rest.accepts = func(id otlpdata.TraceID, spans []tracestore.SummarySpan) (bool, error) {
			if ok, err := found(id, spans); err != nil || !ok {
				return false, err
			}
			selected, err := isSelected(id, spans)
			return !selected, err
		}
	}
	err = rest.run(ctx)
	shares[0] = rest.share()
	return shares, err
}

// both returns the query for spans that match the query and are selected. all reports whether the
// selection has the same window as the query.
func (p *profiler) both(sel tracestore.Selection) (q tracestore.Query, all bool) {
	q = p.query
	q.Where = tracestore.And{q.Where, sel.Where}
	if !sel.From.IsZero() && (q.From.IsZero() || sel.From.After(q.From)) {
		q.From = sel.From
	}
	if !sel.To.IsZero() && (q.To.IsZero() || sel.To.Before(q.To)) {
		q.To = sel.To
	}
	return q, q.From.Equal(p.query.From) && q.To.Equal(p.query.To)
}

// halfway returns the time between now and a deadline.
func halfway(deadline time.Time) time.Time {
	if deadline.IsZero() {
		return deadline
	}
	return deadline.Add(-time.Until(deadline) / 2)
}

// note records why the result is not complete.
func (p *profiler) note(kind tracestore.ReasonKind, text string) {
	p.reasons.Add(tracestore.Reason{Kind: kind, Text: text})
}

// noteOutcome records what a search could not read.
func (p *profiler) noteOutcome(o tracestore.Outcome) {
	if !o.Next.Set {
		p.noteUnread(o.Without(tracestore.ReasonUnread))
	}
}

// noteUnread records what a search or a read could not read. Many reads may find parts of the same
// damage, so only the first one is recorded in full.
func (p *profiler) noteUnread(reasons tracestore.Reasons) {
	switch {
	case reasons.Complete(), slices.Equal(p.damage, reasons):
	case p.damage.Complete():
		p.damage = reasons
		p.reasons.Add(reasons...)
	default:
		p.note(tracestore.ReasonDamage, "other traces could not be read, either")
	}
}

func (p *profiler) answer(shares [2]float64) tracestore.PathProfile {
	out := p.counter.Answer()
	out.Rest.Share, out.Selected.Share = shares[0], shares[1]
	out.Scanned = p.scanned
	p.reasons.Add(out.Reasons...)
	out.Reasons = p.reasons
	return out
}

// spanMemory is the approximate size in bytes of a span while its trace is read. treeMemory is the
// approximate size of a span in the tree, including the memory to test the trace.
const spanMemory, treeMemory = 160, 320

// fits reserves the memory for the tree of a trace. The memory is reused for later traces.
func (p *profiler) fits(spans int) bool {
	if spans <= p.largest {
		return true
	}
	if p.memory.Grow(int64(spans-p.largest)*treeMemory) != nil {
		return false
	}
	p.largest = spans
	return true
}

// read reads traces, and calls take with the spans of each one that exists.
func (p *profiler) read(ctx context.Context, ids []otlpdata.TraceID, take func(otlpdata.TraceID, []tracestore.SummarySpan) error) error {
	limit := p.query.Budget.TraceSpans
	takePart := func(id otlpdata.TraceID, spans []tracestore.SummarySpan) error {
		if limit > 0 && len(spans) > limit {
			p.note(tracestore.ReasonLimit, fmt.Sprintf("traces with more than %d spans were examined only in part", limit))
			spans = spans[:limit]
		}
		return take(id, spans)
	}
	if heads, ok := p.reader.(HeadReader); ok {
		return p.noteDamage(heads.EachHeads(ctx, p.query.Tenant, ids, limit, takePart))
	}
	for _, id := range ids {
		if err := p.noteDamage(p.readOne(ctx, id, func(spans []tracestore.SummarySpan) error { return takePart(id, spans) })); err != nil {
			return err
		}
	}
	return nil
}

// noteDamage records damage as a reason, and returns any other error.
func (p *profiler) noteDamage(err error) error {
	reasons, err := tracestore.DamageOf(err)
	p.noteUnread(reasons)
	return err
}

func (p *profiler) readOne(ctx context.Context, id otlpdata.TraceID, take func([]tracestore.SummarySpan) error) error {
	defer p.reading.Release()
	hold := func(spans, textBytes int) error { return p.reading.Resize(int64(spans)*spanMemory + int64(textBytes)) }
	return p.reader.Outline(ctx, p.query.Tenant, id, p.query.Budget.TraceSpans, hold, take)
}

// window returns the bounds of start times of a query, and whether there are any.
func window(q tracestore.Query) (from, to uint64, bounded bool) {
	from, to, ok := q.Window()
	return from, to, ok && from > 0 && to < math.MaxUint64
}
