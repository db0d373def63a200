package search

import (
	"cmp"
	"context"
	"slices"
	"sort"

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
}

// adoption looks for the parents of the orphans that a callReader has gathered.
type adoption struct {
	*callReader
	relations map[relation][]kinsman
	ids       []otlpdata.TraceID            // that a source is asked for
	wanted    map[otlpdata.TraceID]struct{} // the same
}

// relation is what the children of a span have in common.
type relation struct {
	trace  otlpdata.TraceID
	parent otlpdata.SpanID
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
	slices.SortFunc(c.orphans, func(a, b orphan) int { return cmp.Compare(a.child.Start, b.child.Start) })
	a := &adoption{callReader: c, relations: make(map[relation][]kinsman), wanted: make(map[otlpdata.TraceID]struct{})}
	for i := range c.orphans {
		a.relations[c.orphans[i].relation()] = nil
	}
	for src := range c.sources {
		from, to := a.near(src)
		if err := a.search(ctx, src, c.orphans[from:to]); err != nil {
			return err
		}
	}
	if err := a.assign(ctx); err != nil {
		return err
	}
	all := true
	for src := range c.sources {
		if all = c.searched < maxSearched; !all {
			break
		}
		from, to := a.near(src)
		if err := a.search(ctx, src, c.orphans[:from], c.orphans[to:]); err != nil {
			return err
		}
		c.searched += len(a.ids)
	}
	if err := a.assign(ctx); err != nil {
		return err
	}
	for i := range c.orphans {
		if !all && !c.orphans[i].done {
			c.given++
		}
	}
	c.orphans = c.orphans[:0]
	return nil
}

func (o *orphan) relation() relation { return relation{o.trace, o.child.Parent} }

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
	clear(a.wanted)
	for _, list := range lists {
		for i := range list {
			o := &list[i]
			if _, again := a.wanted[o.trace]; !again && !o.done && o.src != src {
				a.wanted[o.trace] = struct{}{}
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
	infos, err := a.blocksOf(src)
	if err != nil || infos == nil {
		return err
	}
	t, err := a.tablesOf(src)
	if err != nil || t == nil {
		return err
	}
	blocks, err := s.TraceBlocks(a.tenant, a.ids)
	if err != nil {
		blocks = blocks[:0]
		for i := range infos {
			blocks = append(blocks, i)
		}
	}
	for _, i := range blocks {
		err := a.open(ctx, src, i, func(b source.Block) error { return a.searchRows(src, t, b) })
		if err = a.damage.note(a.sources[src], blockName(i), infos[i].Rows, err); err != nil {
			return err
		}
	}
	return nil
}

func (a *adoption) searchRows(src int, t *rows.Tables, b source.Block) error {
	var h rows.Head
	var s tracestore.CallSpan
	var last otlpdata.TraceID
	wanted := false
	for row := range b.Len() {
		ours, err := a.callSpan(t, b, row, &h, &s)
		if err != nil {
			return err
		}
		if row == 0 || h.TraceID != last {
			last = h.TraceID
			_, wanted = a.wanted[last]
		}
		if ours && wanted {
			a.add(src, last, &s)
		}
	}
	return nil
}

// add notes a span for those orphans whose parent has its id.
func (a *adoption) add(src int, id otlpdata.TraceID, s *tracestore.CallSpan) {
	at := relation{id, s.ID}
	list, ok := a.relations[at]
	if c := (kinsman{src, *s}); ok && len(list) < tracestore.MaxAlike && !slices.Contains(list, c) {
		a.relations[at] = append(list, c)
	}
}

// assign counts the calls of orphans whose parent was found.
func (a *adoption) assign(ctx context.Context) error {
	for i := range a.orphans {
		o := &a.orphans[i]
		if o.done {
			continue
		}
		list := a.relations[o.relation()]
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
			a.calls.Call(parent, &o.child)
			o.done = true
		}
	}
	return nil
}

// choose returns the parent by the rules of tracestore.Dependencies: one of the same service, else one of the server's side, else any; the
// earliest of these.
func (o *orphan) choose(list []kinsman) *tracestore.CallSpan {
	var best *tracestore.CallSpan
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
		s := &list[i].span
		if list[i].src == o.src {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(rank(s), rank(best)), cmp.Compare(s.Start, best.Start)) < 0 {
			best = s
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
