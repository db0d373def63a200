package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
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
	child storequery.CallSpan // as far as it is known, which is without an id and with the minute as start where it comes from statistics
	done  bool

	number int   // in the statistics, where a ledger needs it
	asked  bool  // the sources with statistics do not have the parent
	family int32 // index of adoption.families
	parent int32 // index of adoption.parents
}

// adoption looks for the parents of the orphans that a callReader has gathered.
type adoption struct {
	*callReader
	byTime   []timed
	asks     func(o *orphan, src int) bool    // whether a source is asked for the parent of an orphan
	found    func(o *orphan, parent *kinsman) // is called with each orphan whose parent was found
	ids      []otlpdata.TraceID               // that a source is asked for
	traces   map[otlpdata.TraceID]int32       // index of families
	families []family
	parents  []otlpdata.SpanID // of each family in order, each once
	kin      [][]kinsman       // by parent: spans with its id
}

// timed is the minute of an orphan, and in the lower half its index.
type timed uint64

func timedOf(minute uint64, at int) timed { return timed(minute<<32 | uint64(at)) }

func (t timed) minute() uint64 { return uint64(t >> 32) }
func (t timed) index() uint32  { return uint32(t) }

// family is the orphans of a trace.
type family struct {
	from, to int32 // of parents
	asked    int32 // 1 + the source that is asked for the trace
}

// kinsman is a span that has the id of a parent.
type kinsman struct {
	src  int
	span storequery.CallSpan
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
	a.found = func(o *orphan, parent *kinsman) { c.calls.AddCall(&parent.span, &o.child) }
	_, err := a.run(ctx)
	return err
}

func (c *callReader) newAdoption() *adoption {
	return &adoption{callReader: c, traces: make(map[otlpdata.TraceID]int32)}
}

// index groups the orphans by trace and parent, and lists them by time. Orphans are large: what is sorted is keys.
func (a *adoption) index() {
	type key struct {
		trace uint64 // the first half of its id
		at    uint32
	}
	keys := make([]key, len(a.orphans))
	a.byTime = make([]timed, len(a.orphans))
	for i := range a.orphans {
		o := &a.orphans[i]
		keys[i] = key{binary.BigEndian.Uint64(o.trace[:]), uint32(i)}
		a.byTime[i] = timedOf(stats.MinuteOf(o.child.Start), i)
	}
	slices.Sort(a.byTime)
	slices.SortFunc(keys, func(x, y key) int {
		if x.trace != y.trace {
			return cmp.Compare(x.trace, y.trace)
		}
		o, p := &a.orphans[x.at], &a.orphans[y.at]
		return cmp.Or(bytes.Compare(o.trace[:], p.trace[:]), bytes.Compare(o.child.Parent[:], p.child.Parent[:]))
	})
	var before *orphan
	for i := range keys {
		o := &a.orphans[keys[i].at]
		fresh := before == nil || o.trace != before.trace
		if fresh {
			a.traces[o.trace] = int32(len(a.families))
			a.families = append(a.families, family{from: int32(len(a.parents))})
		}
		o.family = int32(len(a.families) - 1)
		if fresh || o.child.Parent != before.child.Parent {
			a.parents = append(a.parents, o.child.Parent)
			a.families[o.family].to = int32(len(a.parents))
		}
		o.parent = int32(len(a.parents) - 1)
		before = o
	}
	a.kin = make([][]kinsman, len(a.parents))
}

// fewParents is how many parents a family has at most that are compared one by one.
const fewParents = 8

// place returns the index of a span in parents, or -1.
func (a *adoption) place(f *family, id otlpdata.SpanID) int {
	parents := a.parents[f.from:f.to]
	if len(parents) <= fewParents {
		for i := range parents {
			if parents[i] == id {
				return int(f.from) + i
			}
		}
		return -1
	}
	i, ok := slices.BinarySearchFunc(parents, id, func(x, y otlpdata.SpanID) int { return bytes.Compare(x[:], y[:]) })
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
		if err := a.search(ctx, src, a.byTime[from:to]); err != nil {
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
		if err := a.search(ctx, src, a.byTime[:from], a.byTime[to:]); err != nil {
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

// near returns which part of byTime a source has spans near to.
func (a *adoption) near(src int) (from, to int) {
	n, oldest, newest := a.sources[src].Bounds()
	if n == 0 {
		return 0, 0
	}
	first, last := stats.MinuteOf(oldest), stats.MinuteOf(newest)+nearMinutes
	first -= min(first, nearMinutes)
	from = sort.Search(len(a.byTime), func(i int) bool { return a.byTime[i].minute() >= first })
	to = sort.Search(len(a.byTime), func(i int) bool { return a.byTime[i].minute() > last })
	return from, to
}

// search looks for parents in a source. Damage is noted.
func (a *adoption) search(ctx context.Context, src int, lists ...[]timed) error {
	a.ids = a.ids[:0]
	for i := range a.families {
		a.families[i].asked = 0
	}
	for _, list := range lists {
		for i := range list {
			o := &a.orphans[list[i].index()]
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
				err := a.eachSpan(ctx, src, t, id, func(_ source.Block, _ int, _ *rows.Head, s *storequery.CallSpan) error {
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

// briefBlock is a block that tells what an adoption needs in less time than its Head does.
type briefBlock interface {
	source.Block
	Traces() ([]block.Trace, error)
	SpanID(row int) (otlpdata.SpanID, error)
	IsOwnParent(row int) (bool, error)
}

var _ briefBlock = (*block.Block)(nil)

// searchRows looks for parents in a block, if possible only among the rows of the traces that its source is asked for.
func (a *adoption) searchRows(src int, t *rows.Tables, b source.Block) error {
	brief, ok := b.(briefBlock)
	if !ok {
		return a.searchAll(src, t, b)
	}
	traces, err := brief.Traces()
	if err != nil {
		return err
	}
	for i := range traces {
		if f := a.family(traces[i].ID); f != nil && f.asked == int32(src)+1 {
			if err := a.searchTrace(src, t, brief, &traces[i], f); err != nil {
				return err
			}
		}
	}
	return nil
}

// searchTrace looks for the parents of a family among the rows of a trace.
func (a *adoption) searchTrace(src int, t *rows.Tables, b briefBlock, of *block.Trace, f *family) error {
	for row := int(of.First); row < int(of.First+of.Rows); row++ {
		id, err := b.SpanID(row)
		if err != nil {
			return err
		}
		at := a.place(f, id)
		if at < 0 {
			continue
		}
		var s storequery.CallSpan
		ours, err := a.briefSpan(t, b, row, id, &s)
		if err != nil {
			return err
		}
		if ours {
			a.addAt(src, at, &s)
		}
	}
	return nil
}

// briefSpan reads of a row what a parent is chosen by: not its duration, and its parent only where that is the span itself. See resembles.
func (c *callReader) briefSpan(t *rows.Tables, b briefBlock, row int, id otlpdata.SpanID, s *storequery.CallSpan) (bool, error) {
	shapes, err := b.Shapes()
	if err != nil {
		return false, err
	}
	if ours, err := c.ours(t, shapes[row]); !ours {
		return false, err
	}
	own, err := b.IsOwnParent(row)
	if err != nil {
		return false, err
	}
	if own {
		var h rows.Head
		return c.callSpan(t, b, row, &h, s)
	}
	starts, err := b.Starts()
	if err != nil {
		return false, err
	}
	shape := &t.Shapes[shapes[row]]
	*s = storequery.CallSpan{ID: id, Start: starts[row], Service: shape.Service, Kind: shape.Kind,
		Failed: shape.Status == otlpdata.StatusError}
	return true, nil
}

// family returns the orphans of a trace, or nil.
func (a *adoption) family(id otlpdata.TraceID) *family {
	if i, ok := a.traces[id]; ok {
		return &a.families[i]
	}
	return nil
}

// searchAll looks for parents among all rows of a block.
func (a *adoption) searchAll(src int, t *rows.Tables, b source.Block) error {
	var h rows.Head
	var s storequery.CallSpan
	for row := range b.Len() {
		if err := b.Head(row, &h); err != nil {
			return err
		}
		f := a.family(h.TraceID)
		if f == nil || a.place(f, h.SpanID) < 0 {
			continue
		}
		ours, err := a.callSpan(t, b, row, &h, &s)
		if err != nil {
			return err
		}
		if ours {
			a.add(src, h.TraceID, &s)
		}
	}
	return nil
}

// add notes a span for those orphans whose parent has its id.
func (a *adoption) add(src int, id otlpdata.TraceID, s *storequery.CallSpan) {
	f := a.family(id)
	if f == nil {
		return
	}
	if at := a.place(f, s.ID); at >= 0 {
		a.addAt(src, at, s)
	}
}

// addAt is add for a parent.
func (a *adoption) addAt(src, at int, s *storequery.CallSpan) {
	if c := (kinsman{src, *s}); len(a.kin[at]) < storequery.MaxSameID && !slices.Contains(a.kin[at], c) {
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
		list := a.kin[o.parent]
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
	rank := func(s *storequery.CallSpan) int {
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
		return a.eachSpan(ctx, o.src, t, o.trace, func(_ source.Block, _ int, _ *rows.Head, s *storequery.CallSpan) error {
			is = is || s.ID == o.child.Parent
			return nil
		})
	})
	return is, err
}
