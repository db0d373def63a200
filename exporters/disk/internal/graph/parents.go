package graph

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	// manyOrphans is how many orphans are gathered, about, before their parents are looked for.
	resolveBatch = 1 << 16
	// maxSearched is how often one query asks a source for a trace although the source has no spans of about the time of the orphan. These
	// are some seconds of work. The answer says so when it is not enough.
	maxFarLookups = 1 << 23
	// nearMinutes is what "about" means, in minutes before the first and behind the last span of a source.
	nearMinutes = 1
)

// orphan is a span whose parent is not in its source.
type unresolvedSpan struct {
	trace    otlpdata.TraceID
	src      int
	child    storequery.CallSpan // as far as it is known, which is without an id and with the minute as start where it comes from statistics
	resolved bool

	statsIndex       int   // in the statistics, where a ledger needs it
	searchedSegments bool  // the sources with statistics do not have the parent
	traceAt          int32 // index of adoption.families
	parent           int32 // index of adoption.parents
}

// adoption looks for the parents of the orphans that a callReader has gathered.
type parentResolver struct {
	reader       *callReader
	byTime       []timeIndex
	shouldSearch func(o *unresolvedSpan, src int) bool            // whether a source is asked for the parent of an orphan
	onResolved   func(o *unresolvedSpan, parent *parentCandidate) // is called with each orphan whose parent was found
	ids          []otlpdata.TraceID                               // that a source is asked for
	traceIndex   map[otlpdata.TraceID]int32                       // index of families
	byTrace      []traceParents
	parents      []otlpdata.SpanID   // of each family in order, each once
	candidates   [][]parentCandidate // by parent: spans with its id
}

// timed is the minute of an orphan, and in the lower half its index.
type timeIndex uint64

func timeIndexOf(minute uint64, at int) timeIndex { return timeIndex(minute<<32 | uint64(at)) }

func (t timeIndex) minute() uint64 { return uint64(t >> 32) }
func (t timeIndex) index() uint32  { return uint32(t) }

// family is the orphans of a trace.
type traceParents struct {
	from, to   int32 // of parents
	searchedIn int32 // 1 + the source that is asked for the trace
}

// kinsman is a span that has the id of a parent.
type parentCandidate struct {
	src  int
	span storequery.CallSpan
}

// adoptMany is adopt as soon as there are many orphans.
func (c *callReader) resolveIfMany(ctx context.Context) error {
	if len(c.unresolved) < resolveBatch {
		return nil
	}
	return c.resolveParents(ctx)
}

// adopt counts the calls of the orphans whose parents it finds, and forgets all. Most parents are in a source that has spans of about the
// same time, because a flush cut the trace; for the others it goes through all sources.
func (c *callReader) resolveParents(ctx context.Context) error {
	if len(c.unresolved) == 0 {
		return nil
	}
	a := c.newParentResolver()
	a.shouldSearch = func(o *unresolvedSpan, src int) bool {
		_, statistics := c.session.Sources[src].(source.Statistics)
		return !o.searchedSegments || !statistics
	}
	a.onResolved = func(o *unresolvedSpan, parent *parentCandidate) { c.calls.AddCall(&parent.span, &o.child) }
	_, err := a.run(ctx)
	return err
}

func (c *callReader) newParentResolver() *parentResolver {
	return &parentResolver{reader: c, traceIndex: make(map[otlpdata.TraceID]int32)}
}

// index groups the orphans by trace and parent, and lists them by time. Orphans are large: what is sorted is keys.
func (a *parentResolver) index() {
	type key struct {
		trace uint64 // the first half of its id
		at    uint32
	}
	keys := make([]key, len(a.reader.unresolved))
	a.byTime = make([]timeIndex, len(a.reader.unresolved))
	for i := range a.reader.unresolved {
		o := &a.reader.unresolved[i]
		keys[i] = key{binary.BigEndian.Uint64(o.trace[:]), uint32(i)}
		a.byTime[i] = timeIndexOf(stats.MinuteOf(o.child.Start), i)
	}
	slices.Sort(a.byTime)
	slices.SortFunc(keys, func(x, y key) int {
		if x.trace != y.trace {
			return cmp.Compare(x.trace, y.trace)
		}
		o, p := &a.reader.unresolved[x.at], &a.reader.unresolved[y.at]
		return cmp.Or(bytes.Compare(o.trace[:], p.trace[:]), bytes.Compare(o.child.Parent[:], p.child.Parent[:]))
	})
	var before *unresolvedSpan
	for i := range keys {
		o := &a.reader.unresolved[keys[i].at]
		fresh := before == nil || o.trace != before.trace
		if fresh {
			a.traceIndex[o.trace] = int32(len(a.byTrace))
			a.byTrace = append(a.byTrace, traceParents{from: int32(len(a.parents))})
		}
		o.traceAt = int32(len(a.byTrace) - 1)
		if fresh || o.child.Parent != before.child.Parent {
			a.parents = append(a.parents, o.child.Parent)
			a.byTrace[o.traceAt].to = int32(len(a.parents))
		}
		o.parent = int32(len(a.parents) - 1)
		before = o
	}
	a.candidates = make([][]parentCandidate, len(a.parents))
}

// fewParents is how many parents a family has at most that are compared one by one.
const fewParents = 8

// place returns the index of a span in parents, or -1.
func (a *parentResolver) parentIndex(f *traceParents, id otlpdata.SpanID) int {
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
func (a *parentResolver) run(ctx context.Context) (all bool, _ error) {
	a.index()
	for src := range a.reader.session.Sources {
		from, to := a.nearbySpans(src)
		if err := a.searchSource(ctx, src, a.byTime[from:to]); err != nil {
			return false, err
		}
	}
	if err := a.assign(ctx); err != nil {
		return false, err
	}
	all = true
	for src := range a.reader.session.Sources {
		if all = a.reader.farLookups < maxFarLookups; !all {
			break
		}
		from, to := a.nearbySpans(src)
		if err := a.searchSource(ctx, src, a.byTime[:from], a.byTime[to:]); err != nil {
			return false, err
		}
		a.reader.farLookups += len(a.ids)
	}
	if err := a.assign(ctx); err != nil {
		return false, err
	}
	for i := range a.reader.unresolved {
		if !all && !a.reader.unresolved[i].resolved {
			a.reader.abandoned++
		}
	}
	a.reader.unresolved = a.reader.unresolved[:0]
	return all, nil
}

// near returns which part of byTime a source has spans near to.
func (a *parentResolver) nearbySpans(src int) (from, to int) {
	n, oldest, newest := a.reader.session.Sources[src].Bounds()
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
func (a *parentResolver) searchSource(ctx context.Context, src int, lists ...[]timeIndex) error {
	a.ids = a.ids[:0]
	for i := range a.byTrace {
		a.byTrace[i].searchedIn = 0
	}
	for _, list := range lists {
		for i := range list {
			o := &a.reader.unresolved[list[i].index()]
			if f := &a.byTrace[o.traceAt]; f.searchedIn != int32(src)+1 && !o.resolved && o.src != src && a.shouldSearch(o, src) {
				f.searchedIn = int32(src) + 1
				a.ids = append(a.ids, o.trace)
			}
		}
	}
	if err := ctx.Err(); err != nil || len(a.ids) == 0 {
		return err
	}
	if s, ok := a.reader.session.Sources[src].(source.Statistics); ok {
		return a.searchBlocks(ctx, src, s)
	}
	t, err := a.reader.session.Tables(src)
	if err != nil || t == nil {
		return err
	}
	for some := range slices.Chunk(a.ids, scan.TracesPerDecode) {
		err := a.reader.session.Decode(ctx, func() error {
			for _, id := range some {
				err := a.reader.eachSpan(ctx, src, t, id, func(_ source.Block, _ int, _ *rows.Head, s *storequery.CallSpan) error {
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
func (a *parentResolver) searchBlocks(ctx context.Context, src int, s source.Statistics) error {
	blocks, err := s.TraceBlocks(a.reader.tenant, a.ids)
	if err == nil && len(blocks) == 0 {
		return nil
	}
	t, tablesErr := a.reader.session.Tables(src)
	if tablesErr != nil || t == nil {
		return tablesErr
	}
	if err != nil {
		infos, err := a.reader.session.Blocks(src)
		if err != nil {
			return err
		}
		blocks = blocks[:0]
		for i := range infos {
			blocks = append(blocks, i)
		}
	}
	for _, i := range blocks {
		err := a.reader.session.OpenBlock(ctx, src, i, func(b source.Block) error { return a.searchRows(src, t, b) })
		if err = a.reader.session.NoteDamage(src, scan.BlockPart(i), 0, err); err != nil {
			return err
		}
	}
	return nil
}

// briefBlock is a block that tells what an adoption needs in less time than its Head does.
type idBlock interface {
	source.Block
	Traces() ([]block.Trace, error)
	SpanID(row int) (otlpdata.SpanID, error)
	IsOwnParent(row int) (bool, error)
}

var _ idBlock = (*block.Block)(nil)

// searchRows looks for parents in a block, if possible only among the rows of the traces that its source is asked for.
func (a *parentResolver) searchRows(src int, t *rows.Tables, b source.Block) error {
	brief, ok := b.(idBlock)
	if !ok {
		return a.searchAllRows(src, t, b)
	}
	traces, err := brief.Traces()
	if err != nil {
		return err
	}
	for i := range traces {
		if f := a.traceParents(traces[i].ID); f != nil && f.searchedIn == int32(src)+1 {
			if err := a.searchTrace(src, t, brief, &traces[i], f); err != nil {
				return err
			}
		}
	}
	return nil
}

// searchTrace looks for the parents of a family among the rows of a trace.
func (a *parentResolver) searchTrace(src int, t *rows.Tables, b idBlock, of *block.Trace, f *traceParents) error {
	for row := int(of.First); row < int(of.First+of.Rows); row++ {
		id, err := b.SpanID(row)
		if err != nil {
			return err
		}
		at := a.parentIndex(f, id)
		if at < 0 {
			continue
		}
		var s storequery.CallSpan
		ours, err := a.reader.parentSpan(t, b, row, id, &s)
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
func (c *callReader) parentSpan(t *rows.Tables, b idBlock, row int, id otlpdata.SpanID, s *storequery.CallSpan) (bool, error) {
	shapes, err := b.Shapes()
	if err != nil {
		return false, err
	}
	if ours, err := c.belongsToTenant(t, shapes[row]); !ours {
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
func (a *parentResolver) traceParents(id otlpdata.TraceID) *traceParents {
	if i, ok := a.traceIndex[id]; ok {
		return &a.byTrace[i]
	}
	return nil
}

// searchAll looks for parents among all rows of a block.
func (a *parentResolver) searchAllRows(src int, t *rows.Tables, b source.Block) error {
	var h rows.Head
	var s storequery.CallSpan
	for row := range b.Len() {
		if err := b.Head(row, &h); err != nil {
			return err
		}
		f := a.traceParents(h.TraceID)
		if f == nil || a.parentIndex(f, h.SpanID) < 0 {
			continue
		}
		ours, err := a.reader.callSpan(t, b, row, &h, &s)
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
func (a *parentResolver) add(src int, id otlpdata.TraceID, s *storequery.CallSpan) {
	f := a.traceParents(id)
	if f == nil {
		return
	}
	if at := a.parentIndex(f, s.ID); at >= 0 {
		a.addAt(src, at, s)
	}
}

// addAt is add for a parent.
func (a *parentResolver) addAt(src, at int, s *storequery.CallSpan) {
	if c := (parentCandidate{src, *s}); len(a.candidates[at]) < storequery.MaxSameID && !slices.Contains(a.candidates[at], c) {
		a.candidates[at] = append(a.candidates[at], c)
	}
}

// assign counts the calls of orphans whose parent was found.
func (a *parentResolver) assign(ctx context.Context) error {
	for i := range a.reader.unresolved {
		o := &a.reader.unresolved[i]
		if o.resolved {
			continue
		}
		list := a.candidates[o.parent]
		if slices.ContainsFunc(list, o.maybeSameSpan) {
			own, err := a.isOwnParent(ctx, o)
			if err != nil {
				return err
			}
			if own {
				list = slices.DeleteFunc(slices.Clone(list), o.maybeSameSpan)
			}
		}
		if parent := o.chooseParent(list); parent != nil {
			a.onResolved(o, parent)
			o.resolved = true
		}
	}
	return nil
}

// choose returns the parent by the rules of tracestore.Dependencies: one of the same service, else one of the server's side, else any; the
// earliest of these.
func (o *unresolvedSpan) chooseParent(list []parentCandidate) *parentCandidate {
	var best *parentCandidate
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
func (o *unresolvedSpan) maybeSameSpan(k parentCandidate) bool {
	s := &k.span
	return k.src != o.src && s.ID == s.Parent && s.Service == o.child.Service && s.Duration == o.child.Duration &&
		s.Failed == o.child.Failed && stats.MinuteOf(s.Start) == stats.MinuteOf(o.child.Start)
}

// isOwnParent reports whether an orphan is its own parent. Then it is the one span of its source with that id.
func (a *parentResolver) isOwnParent(ctx context.Context, o *unresolvedSpan) (is bool, _ error) {
	t, err := a.reader.session.Tables(o.src)
	if err != nil || t == nil {
		return false, err
	}
	err = a.reader.session.Decode(ctx, func() error {
		return a.reader.eachSpan(ctx, o.src, t, o.trace, func(_ source.Block, _ int, _ *rows.Head, s *storequery.CallSpan) error {
			is = is || s.ID == o.child.Parent
			return nil
		})
	})
	return is, err
}
