package search

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sort"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	// manyOrphans is how many orphans are gathered, about, before their parents are looked for.
	manyOrphans = 1 << 16
	// maxSearched is how often one query asks a source for a trace although the source has no spans of about the time of the orphan. These
	// are some seconds of work. The answer says so when it is not enough.
	maxSearched = 1 << 23
	// nearMinutes is what "about" means, in minutes before the first and behind the last span of a source.
	nearMinutes = 1
)

// orphan is a span whose parent is not in its source.
type orphan struct {
	trace otlpdata.TraceID
	src   int
	child tracestore.CallSpan // as far as it is known, which is without an id and with the minute as start where it comes from statistics
	done  bool

	number int   // in the statistics, where a ledger needs it
	asked  bool  // the sources with statistics do not have the parent
	family int32 // index of adoption.families
}

// adoption looks for the parents of the orphans that a callReader has gathered.
type adoption struct {
	*callReader
	asks     func(o *orphan, src int) bool    // whether a source is asked for the parent of an orphan
	found    func(o *orphan, parent *kinsman) // is called with each orphan whose parent was found
	ids      []otlpdata.TraceID               // that a source is asked for
	traces   map[otlpdata.TraceID]int32       // index of families
	families []family
	parents  []otlpdata.SpanID // of each family in order, each once
	kin      [][]kinsman       // by parent: spans with its id
}

// family is the orphans of a trace.
type family struct {
	from, to int32 // of parents
	asked    int32 // 1 + the source that is asked for the trace
}

// kinsman is a span that has the id of a parent.
type kinsman struct {
	src  int
	span tracestore.CallSpan
}

// adoptMany is adopt as soon as there are many orphans.
func (c *callReader) adoptMany(ctx context.Context) error {
	if len(c.orphans) < manyOrphans {
		return nil
	}
	return c.adopt(ctx)
}

// adopt counts the calls of the orphans whose parents it finds, and forgets all. Most parents are in a source that has spans of about the
// same time, because a flush cut the trace; for the others it goes through all sources.
func (c *callReader) adopt(ctx context.Context) error {
	if len(c.orphans) == 0 {
		return nil
	}
	a := c.newAdoption()
	a.asks = func(o *orphan, src int) bool {
		_, statistics := c.sources[src].(source.Statistics)
		return !o.asked || !statistics
	}
	a.found = func(o *orphan, parent *kinsman) { c.calls.Call(&parent.span, &o.child) }
	_, err := a.run(ctx)
	return err
}

func (c *callReader) newAdoption() *adoption {
	return &adoption{callReader: c, traces: make(map[otlpdata.TraceID]int32)}
}

// index groups the orphans by trace and parent, and sorts them by time.
func (a *adoption) index() {
	slices.SortFunc(a.orphans, func(x, y orphan) int {
		return cmp.Or(bytes.Compare(x.trace[:], y.trace[:]), bytes.Compare(x.child.Parent[:], y.child.Parent[:]))
	})
	for i := range a.orphans {
		o := &a.orphans[i]
		fresh := i == 0 || o.trace != a.orphans[i-1].trace
		if fresh {
			a.traces[o.trace] = int32(len(a.families))
			a.families = append(a.families, family{from: int32(len(a.parents))})
		}
		o.family = int32(len(a.families) - 1)
		if fresh || o.child.Parent != a.orphans[i-1].child.Parent {
			a.parents = append(a.parents, o.child.Parent)
			a.families[o.family].to = int32(len(a.parents))
		}
	}
	a.kin = make([][]kinsman, len(a.parents))
	slices.SortStableFunc(a.orphans, func(x, y orphan) int { return cmp.Compare(x.child.Start, y.child.Start) })
}

// place returns the index of a span in parents, or -1.
func (a *adoption) place(f *family, id otlpdata.SpanID) int {
	i, ok := slices.BinarySearchFunc(a.parents[f.from:f.to], id, func(x, y otlpdata.SpanID) int { return bytes.Compare(x[:], y[:]) })
	if !ok {
		return -1
	}
	return int(f.from) + i
}

// run looks for the parents of all orphans, and forgets these. It is false where it gave up.
func (a *adoption) run(ctx context.Context) (all bool, _ error) {
	a.index()
	for src := range a.sources {
		from, to := a.near(src)
		if err := a.search(ctx, src, a.orphans[from:to]); err != nil {
			return false, err
		}
	}
	if err := a.assign(ctx); err != nil {
		return false, err
	}
	all = true
	for src := range a.sources {
		if all = a.searched < maxSearched; !all {
			break
		}
		from, to := a.near(src)
		if err := a.search(ctx, src, a.orphans[:from], a.orphans[to:]); err != nil {
			return false, err
		}
		a.searched += len(a.ids)
	}
	if err := a.assign(ctx); err != nil {
		return false, err
	}
	for i := range a.orphans {
		if !all && !a.orphans[i].done {
			a.given++
		}
	}
	a.callReader.orphans = a.orphans[:0]
	return all, nil
}

// near returns which of the orphans, sorted by time, a source has spans near to.
func (a *adoption) near(src int) (from, to int) {
	n, oldest, newest := a.sources[src].Bounds()
	if n == 0 {
		return 0, 0
	}
	first, last := stats.MinuteOf(oldest), stats.MinuteOf(newest)+nearMinutes
	first -= min(first, nearMinutes)
	from = sort.Search(len(a.orphans), func(i int) bool { return stats.MinuteOf(a.orphans[i].child.Start) >= first })
	to = sort.Search(len(a.orphans), func(i int) bool { return stats.MinuteOf(a.orphans[i].child.Start) > last })
	return from, to
}

// search looks for parents in a source. Damage is noted.
func (a *adoption) search(ctx context.Context, src int, lists ...[]orphan) error {
	a.ids = a.ids[:0]
	for i := range a.families {
		a.families[i].asked = 0
	}
	for _, list := range lists {
		for i := range list {
			o := &list[i]
			if f := &a.families[o.family]; f.asked != int32(src)+1 && !o.done && o.src != src && a.asks(o, src) {
				f.asked = int32(src) + 1
				a.ids = append(a.ids, o.trace)
			}
		}
	}
	if err := ctx.Err(); err != nil || len(a.ids) == 0 {
		return err
	}
	if s, ok := a.sources[src].(source.Statistics); ok {
		return a.searchBlocks(ctx, src, s)
	}
	t, err := a.tablesOf(src)
	if err != nil || t == nil {
		return err
	}
	for some := range slices.Chunk(a.ids, tracesAtOnce) {
		err := a.decode(ctx, func() error {
			for _, id := range some {
				err := a.eachSpan(ctx, src, t, id, func(_ source.Block, _ int, _ *rows.Head, s *tracestore.CallSpan) error {
					a.add(src, id, s)
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// searchBlocks opens each block that may have rows of the traces once.
func (a *adoption) searchBlocks(ctx context.Context, src int, s source.Statistics) error {
	blocks, err := s.TraceBlocks(a.tenant, a.ids)
	if err == nil && len(blocks) == 0 {
		return nil
	}
	t, tablesErr := a.tablesOf(src)
	if tablesErr != nil || t == nil {
		return tablesErr
	}
	if err != nil {
		infos, err := a.blocksOf(src)
		if err != nil {
			return err
		}
		blocks = blocks[:0]
		for i := range infos {
			blocks = append(blocks, i)
		}
	}
	for _, i := range blocks {
		err := a.open(ctx, src, i, func(b source.Block) error { return a.searchRows(src, t, b) })
		if err = a.damage.note(a.sources[src], blockName(i), 0, err); err != nil {
			return err
		}
	}
	return nil
}

// searchRows looks for parents in a block, if possible only among the rows of the traces that its source is asked for.
func (a *adoption) searchRows(src int, t *rows.Tables, b source.Block) error {
	c, ok := b.(interface{ Traces() ([]block.Trace, error) })
	if !ok {
		return a.searchRange(src, t, b, 0, b.Len())
	}
	traces, err := c.Traces()
	if err != nil {
		return err
	}
	for i := range traces {
		if f := a.family(traces[i].ID); f != nil && f.asked == int32(src)+1 {
			if err := a.searchRange(src, t, b, int(traces[i].First), int(traces[i].First+traces[i].Rows)); err != nil {
				return err
			}
		}
	}
	return nil
}

// family returns the orphans of a trace, or nil.
func (a *adoption) family(id otlpdata.TraceID) *family {
	if i, ok := a.traces[id]; ok {
		return &a.families[i]
	}
	return nil
}

// searchRange looks for parents among consecutive rows.
func (a *adoption) searchRange(src int, t *rows.Tables, b source.Block, from, to int) error {
	var h rows.Head
	var s tracestore.CallSpan
	var id otlpdata.TraceID
	var f *family
	for row := from; row < to; row++ {
		if err := b.Head(row, &h); err != nil {
			return err
		}
		if row == from || h.TraceID != id {
			id = h.TraceID
			f = a.family(id)
		}
		if f == nil || a.place(f, h.SpanID) < 0 {
			continue
		}
		ours, err := a.callSpan(t, b, row, &h, &s)
		if err != nil {
			return err
		}
		if ours {
			a.add(src, id, &s)
		}
	}
	return nil
}

// add notes a span for those orphans whose parent has its id.
func (a *adoption) add(src int, id otlpdata.TraceID, s *tracestore.CallSpan) {
	f := a.family(id)
	if f == nil {
		return
	}
	at := a.place(f, s.ID)
	if at < 0 {
		return
	}
	if c := (kinsman{src, *s}); len(a.kin[at]) < tracestore.MaxAlike && !slices.Contains(a.kin[at], c) {
		a.kin[at] = append(a.kin[at], c)
	}
}

// assign counts the calls of orphans whose parent was found.
func (a *adoption) assign(ctx context.Context) error {
	for i := range a.orphans {
		o := &a.orphans[i]
		if o.done {
			continue
		}
		list := a.kin[a.place(&a.families[o.family], o.child.Parent)]
		if slices.ContainsFunc(list, o.resembles) {
			own, err := a.isOwnParent(ctx, o)
			if err != nil {
				return err
			}
			if own {
				list = slices.DeleteFunc(slices.Clone(list), o.resembles)
			}
		}
		if parent := o.choose(list); parent != nil {
			a.found(o, parent)
			o.done = true
		}
	}
	return nil
}

// choose returns the parent by the rules of tracestore.Dependencies: one of the same service, else one of the server's side, else any; the
// earliest of these.
func (o *orphan) choose(list []kinsman) *kinsman {
	var best *kinsman
	rank := func(s *tracestore.CallSpan) int {
		switch {
		case s.Service == o.child.Service:
			return 0
		case s.Kind == otlpdata.KindServer || s.Kind == otlpdata.KindConsumer:
			return 1
		}
		return 2
	}
	for i := range list {
		k := &list[i]
		if k.src == o.src {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(rank(&k.span), rank(&best.span)), cmp.Compare(k.span.Start, best.span.Start)) < 0 {
			best = k
		}
	}
	return best
}

// resembles reports whether a span may be the orphan itself, stored once more: one that is its own parent.
func (o *orphan) resembles(k kinsman) bool {
	s := &k.span
	return k.src != o.src && s.ID == s.Parent && s.Service == o.child.Service && s.Duration == o.child.Duration &&
		s.Failed == o.child.Failed && stats.MinuteOf(s.Start) == stats.MinuteOf(o.child.Start)
}

// isOwnParent reports whether an orphan is its own parent. Then it is the one span of its source with that id.
func (a *adoption) isOwnParent(ctx context.Context, o *orphan) (is bool, _ error) {
	t, err := a.tablesOf(o.src)
	if err != nil || t == nil {
		return false, err
	}
	err = a.decode(ctx, func() error {
		return a.eachSpan(ctx, o.src, t, o.trace, func(_ source.Block, _ int, _ *rows.Head, s *tracestore.CallSpan) error {
			is = is || s.ID == o.child.Parent
			return nil
		})
	})
	return is, err
}
