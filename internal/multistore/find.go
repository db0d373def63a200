package multistore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Find implements tracestore.Reader. It merges the results of all stores, newest first, and
// completes the traces with spans from other stores; see [search.complete]. Each store gets an
// equal part of the budget. A store may leave out a divided trace if Query.OfTrace does not hold
// for its part.
func (s *Store) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f := &search{store: s, query: q, want: want, seen: make(map[otlpdata.TraceID]struct{})}
	each := q
	each.Skip = maps.Clone(q.Skip) // the caller may add traces between two results
	each.Limit = shareOfLimit(q.Limit, len(s.stores))
	if each.Budget.Spans > 0 {
		each.Budget.Spans = (each.Budget.Spans + len(s.stores) - 1) / len(s.stores)
	}
	for _, m := range s.stores {
		f.parts = append(f.parts, &part{call: m.newCall(ctx), query: each, want: want})
	}
	f.total = len(f.parts)
	concurrently(len(f.parts), func(i int) {
		p := f.parts[i]
		p.err = p.wait(p.open)
	})
	if err := f.settle(ctx); err != nil || f.allFailed() {
		f.endCalls()
		return nil, cmp.Or(err, f.failure())
	}
	f.outcome = tracestore.Unread()
	return &tracestore.Results{All: f.results(ctx), Outcome: f.result}, nil
}

// shareOfLimit returns the limit for one of n stores. Traces are distributed randomly, so that a
// store has about limit/n of the first results, and hardly ever more than two standard deviations
// above that. If it has more, a second request is sent.
func shareOfLimit(limit, n int) int {
	if limit <= 0 {
		return limit
	}
	mean := float64(limit) / float64(n)
	return min(limit, int(math.Ceil(mean+2*math.Sqrt(mean*(1-1/float64(n))))))
}

// part is the query to one store.
type part struct {
	*call
	query   tracestore.Query // what is left of it
	want    tracestore.Want
	results *tracestore.Results        // of the current request; nil: there is none
	values  *stream[tracestore.Result] // of results; nil: not opened
	found   int                        // results of the current request
	last    tracestore.Cursor          // of the last result
	scanned int                        // spans examined by earlier requests
	end     tracestore.Cursor          // position at which the store stopped early; not Set if it did not
	err     error                      // of the store; not settled yet
	stopped tracestore.Reasons         // why it stopped at end
	damage  tracestore.Reasons         // damage that the store reported
	lost    bool                       // the store failed
}

// open sends a request.
func (p *part) open() (err error) {
	store, ok := tracestore.As[tracestore.Reader](p.ctx, p.query.Tenant, p.Store)
	if !ok {
		return unsupported(p.Name)
	}
	p.found = 0
	if p.results, err = store.Find(p.ctx, p.query, p.want); err == nil {
		p.values = &stream[tracestore.Result]{call: p.call, values: p.results.All}
	}
	return err
}

// head returns the next result, or nil if it has not been read yet or there is none.
func (p *part) head() *tracestore.Result {
	if p.lost || p.values == nil {
		return nil
	}
	return p.values.head
}

// canFill reports whether the next result has not been read yet.
func (p *part) canFill() bool {
	return p.err == nil && !p.values.ended && p.values.head == nil
}

// fill reads the next result, with further requests if necessary.
func (p *part) fill() {
	for p.canFill() {
		p.values.fill()
		switch {
		case p.values.head != nil:
			p.found++
			p.last = tracestore.Cursor{Start: p.values.head.Start, ID: p.values.head.ID, Set: true}
		case p.values.err != nil:
			p.err = p.values.err
		default:
			p.finish()
		}
	}
}

// finish evaluates the outcome of a request whose results have all been read. It sends another
// request if only the limit ended the results; see shareOfLimit. More results than the limit of the
// search may be needed, because traces that other stores returned on an earlier page are left out.
func (p *part) finish() {
	o := p.results.Outcome()
	p.scanned += o.Scanned
	p.results = nil
	limited := p.query.Limit > 0 && p.found >= p.query.Limit
	if o.Next.Set && !limited {
		p.end, p.stopped = o.Next, o.Reasons
		return
	}
	if !o.Complete() {
		p.damage = o.Reasons
	}
	if limited && o.Next.Set {
		p.query.After = o.Next
		if p.query.Budget.Spans > 0 {
			p.query.Budget.Spans = max(p.query.Budget.Spans-o.Scanned, 1)
		}
		p.err = p.wait(p.open)
	}
}

// examined returns the number of spans that the store has examined so far.
func (p *part) examined() int {
	if p.results == nil {
		return p.scanned
	}
	return p.scanned + p.results.Outcome().Scanned
}

// close ends the query, if that has not ended.
func (p *part) close() {
	if p.values == nil || p.values.ended {
		return
	}
	p.values.close()
	o := p.results.Outcome()
	p.scanned += o.Scanned
	p.results = nil
	if damage := o.Without(tracestore.ReasonUnread); o.Has(tracestore.ReasonUnread) && !damage.Complete() {
		p.damage = damage
	}
}

// search is a query to several stores.
type search struct {
	store   *Store
	query   tracestore.Query
	want    tracestore.Want
	parts   []*part
	memory  *tracestore.Memory // for results that are held
	seen    map[otlpdata.TraceID]struct{}
	emitted int
	ended   bool
	outcome tracestore.Outcome
	losses
}

func (f *search) results(ctx context.Context) iter.Seq2[tracestore.Result, error] {
	return func(yield func(tracestore.Result, error) bool) {
		if f.ended {
			return
		}
		f.ended = true
		err := f.run(ctx, func(r tracestore.Result) bool { return yield(r, nil) })
		for _, p := range f.parts {
			p.close()
			f.missing.Add(p.damage.Of(p.Name)...)
		}
		f.endCalls()
		f.memory.Release()
		if err != nil && !errors.Is(err, errStop) {
			f.outcome = tracestore.Outcome{Reasons: tracestore.BecauseOf(err)}
			yield(tracestore.Result{}, err)
		}
	}
}

// endCalls ends the calls of all stores when nothing more is read from them.
func (f *search) endCalls() {
	for _, p := range f.parts {
		p.release()
	}
}

// result returns the outcome, or the number of spans examined so far.
func (f *search) result() tracestore.Outcome {
	o := f.outcome
	for _, p := range f.parts {
		o.Scanned += p.examined()
	}
	o.Reasons.Add(f.missing...)
	return o
}

// failure returns the error of a query for which all stores failed, or nil.
func (f *search) failure() error {
	if f.allFailed() {
		return f.noAnswer()
	}
	return nil
}

// settle records the errors of stores. It returns errors of the caller.
func (f *search) settle(ctx context.Context) error {
	for _, p := range f.parts {
		if p.err == nil || p.lost {
			continue
		}
		p.lost = true
		p.close()
		if err := f.note(ctx, p.Name, p.err); err != nil {
			return err
		}
	}
	return nil
}

const (
	// minGroup and maxGroup limit the number of results that are completed together. The number
	// doubles from group to group, unless a limit is smaller.
	minGroup, maxGroup = 16, 128
	// maxGroupBytes is the size of spans above which a group is not extended.
	maxGroupBytes = 8 << 20
)

func (f *search) run(ctx context.Context, yield func(tracestore.Result) bool) (err error) {
	if f.memory, err = tracestore.Reserve(ctx, 0); err != nil {
		return err
	}
	for size := minGroup; ; size = min(2*size, maxGroup) {
		if f.query.Limit > 0 {
			size = min(max(size, f.query.Limit), maxGroup, f.query.Limit-f.emitted)
		}
		group, more, err := f.group(ctx, size)
		if err == nil {
			group, err = f.complete(ctx, group)
		}
		if err != nil {
			return err
		}
		for _, r := range group {
			if !yield(r.Result) {
				return errStop
			}
			if f.emitted++; f.emitted == f.query.Limit {
				f.outcome = tracestore.Outcome{Next: tracestore.Cursor{Start: r.Start, ID: r.ID, Set: true}}
				return nil
			}
		}
		if !more {
			return f.finish()
		}
	}
}

// finish sets the outcome of a query without further results.
func (f *search) finish() error {
	if err := f.failure(); err != nil && f.emitted == 0 {
		return err
	}
	f.outcome = tracestore.Outcome{Next: f.end()}
	for _, p := range f.parts {
		f.missing.Add(p.stopped.Of(p.Name)...)
	}
	return nil
}

// end returns the position up to which all stores have examined their spans, or the zero Cursor if
// no store stopped early.
func (f *search) end() (end tracestore.Cursor) {
	for _, p := range f.parts {
		if p.end.Set && (!end.Set || compareKeys(p.end, end) < 0) {
			end = p.end
		}
	}
	return end
}

// found is a result and the store that returned it.
type found struct {
	tracestore.Result
	part *part
}

// group returns the next results, at most size. more reports whether there may be others.
func (f *search) group(ctx context.Context, size int) (group []found, more bool, err error) {
	held := int64(0)
	for len(group) < size && held < maxGroupBytes {
		if err := f.fill(ctx); err != nil {
			return nil, false, err
		}
		p := f.newest()
		if end := f.end(); p == nil || end.Set && compareKeys(p.last, end) > 0 {
			return group, false, nil
		}
		r := *p.values.head
		p.values.head = nil
		if _, seen := f.seen[r.ID]; seen {
			continue
		}
		if _, skip := f.query.Skip[r.ID]; skip {
			continue
		}
		f.seen[r.ID] = struct{}{}
		if r.Spans != nil {
			held += int64(r.Spans.Size())
		}
		if err := f.memory.Resize(held + seenMemory*int64(len(f.seen))); err != nil {
			return nil, false, err
		}
		group = append(group, found{r, p})
	}
	return group, true, nil
}

// seenMemory is the approximate number of bytes for each trace that was found.
const seenMemory = 64

// fill reads the next result of every store.
func (f *search) fill(ctx context.Context) error {
	var empty []*part
	for _, p := range f.parts {
		if p.canFill() {
			empty = append(empty, p)
		}
	}
	if len(empty) == 0 {
		return nil
	}
	concurrently(len(empty), func(i int) { empty[i].fill() })
	return f.settle(ctx)
}

// newest returns the store whose next result is the first of all, or nil if there are no more.
func (f *search) newest() (first *part) {
	for _, p := range f.parts {
		if p.head() != nil && (first == nil || compareKeys(p.last, first.last) < 0) {
			first = p
		}
	}
	return first
}

// compareKeys orders positions newest first.
func compareKeys(a, b tracestore.Cursor) int {
	return cmp.Or(cmp.Compare(b.Start, a.Start), bytes.Compare(b.ID[:], a.ID[:]))
}
