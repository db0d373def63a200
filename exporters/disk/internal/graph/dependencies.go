package graph

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Builder builds graphs of calls. Safe for concurrent use.
type Builder struct {
	store  *scan.Store
	caches edgeCaches
}

var (
	_ tracestore.Dependencies = (*Builder)(nil)
	_ tracestore.Peers        = (*Builder)(nil)
)

// NewBuilder returns a Builder for a store.
func New(s *scan.Store) *Builder { return &Builder{store: s, caches: newEdgeCaches()} }

// Dependencies implements tracestore.Dependencies.
//
//	segment   │ rows │      edges of whole minutes      │ rows │
//	          ▲      ╰──────────── orphans ─────────────╯      ▲
//	         from                                              to
//	memtable  │                 rows                           │
//
// Each source finds the parents of its own spans and counts them without their duplicates. Spans whose parent it does not have are looked
// for in the other sources, see adopt. A span that is in several sources, because it was sent again after a flush, is counted in each.
//
// What holds for whole minutes of segments is kept from query to query, see ledger.
func (e *Builder) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	first, last, ok := tracestore.Query{From: from, To: to}.Window()
	if !ok || ctx.Err() != nil {
		return tracestore.Graph{Complete: true}, ctx.Err()
	}
	s := e.store.Begin()
	defer s.Release()
	c := &callReader{session: s, caches: &e.caches, tenant: tenant, from: first, to: last}
	if err := c.run(ctx); err != nil {
		return tracestore.Graph{}, err
	}
	g := tracestore.Graph{Edges: c.calls.Edges(), Reason: c.reason()}
	g.Complete = g.Reason == ""
	return g, nil
}

// callReader counts the calls of a tenant within a window.
type callReader struct {
	session    *scan.Session
	caches     *edgeCaches // nil for calls to peers
	tenant     string
	from, to   uint64
	peers      *peerReader // counts the calls to peers instead; nil: those between services are counted
	calls      storequery.CallCounter
	parents    storequery.ParentFinder
	spans      []storequery.CallSpan // of the trace at hand
	unresolved []unresolvedSpan
	farLookups int // see maxSearched
	abandoned  int // orphans whose parent was not looked for everywhere
}

func (c *callReader) reason() string {
	reason := c.session.DamageReason()
	if c.abandoned == 0 {
		return reason
	}
	return scan.JoinReasons(reason, fmt.Sprintf("the parents of %d spans were not looked for everywhere; narrow the time range", c.abandoned))
}

// share is what a source has within the window.
type sourceShare struct {
	src    int
	split  scan.Split
	entire bool // its minutes are all that the source has
}

// run counts the calls of all sources.
func (c *callReader) run(ctx context.Context) error {
	var shares []sourceShare
	for src := range c.session.Sources {
		if sh, ok := c.shareOf(src); ok {
			shares = append(shares, sh)
		}
	}
	shares, err := c.useCache(ctx, shares)
	if err != nil {
		return err
	}
	for i := range shares {
		if err := c.count(ctx, &shares[i]); err != nil {
			return err
		}
	}
	return c.resolveParents(ctx)
}

// shareOf is false where a source has nothing within the window.
func (c *callReader) shareOf(src int) (sourceShare, bool) {
	rows, oldest, newest := c.session.Sources[src].Bounds()
	if rows == 0 || newest < c.from || oldest > c.to {
		return sourceShare{}, false
	}
	sh := sourceShare{src: src, split: scan.SplitWindow(scan.Range{From: c.from, To: c.to}, oldest, newest)}
	if _, ok := c.session.Sources[src].(source.Statistics); !ok {
		sh.split.HasMinutes, sh.split.Rest = false, sh.split.All
	}
	sh.entire = sh.split.HasMinutes && sh.split.Minutes.From <= stats.MinuteOf(oldest) && sh.split.Minutes.To >= stats.MinuteOf(newest)
	return sh, true
}

// count counts the calls of a share without a ledger.
func (c *callReader) count(ctx context.Context, sh *sourceShare) error {
	if sh.split.HasMinutes {
		edges, orphans, err := c.readStatistics(ctx, sh.src)
		if err != nil {
			return err
		}
		if edges == nil {
			sh.split.Rest = sh.split.All
		} else {
			c.addEdges(edges, sh)
			if err := c.addUnresolved(ctx, orphans, sh); err != nil {
				return err
			}
		}
	}
	if len(sh.split.Rest) == 0 {
		return nil
	}
	return c.scanRows(ctx, sh.src, sh.split.Rest)
}

func (c *callReader) addEdges(edges *stats.EdgeStats, sh *sourceShare) {
	for p := range edges.Points(sh.split.Minutes.From, sh.split.Minutes.To) {
		if e := &edges.Edges[p.Edge]; e.Tenant == c.tenant {
			c.calls.AddEdge(&tracestore.Edge{Parent: e.Parent, Child: e.Child, Messaging: e.Kind == stats.Messaging,
				Calls: p.Calls, Errors: p.Errors, Duration: p.Sum})
		}
	}
}

func (c *callReader) addUnresolved(ctx context.Context, orphans *stats.OrphanStats, sh *sourceShare) error {
	for o := range orphans.Orphans(sh.split.Minutes.From, sh.split.Minutes.To) {
		if o.Tenant != c.tenant {
			continue
		}
		c.unresolved = append(c.unresolved, unresolvedOf(&o, sh.src))
		if err := c.resolveIfMany(ctx); err != nil {
			return err
		}
	}
	return nil
}

// orphanOf returns an orphan of a source that its statistics list.
func unresolvedOf(o *stats.Orphan, src int) unresolvedSpan {
	child := storequery.CallSpan{Parent: o.ParentID, Start: o.Minute * scan.Minute, Duration: o.Duration, Service: o.Service, Failed: o.Failed}
	if o.Kind == stats.Messaging {
		child.Kind = otlpdata.KindConsumer // as far as it matters
	}
	return unresolvedSpan{trace: o.TraceID, src: src, child: child}
}

// useLedger counts the whole minutes of shares that the ledger has a book for or can make one, and returns what is left to count.
func (c *callReader) useCache(ctx context.Context, shares []sourceShare) (rest []sourceShare, _ error) {
	all := c.caches
	if err := all.acquire(ctx); err != nil {
		return nil, err
	}
	defer all.release()
	l := c.cache()
	defer all.trim(c.session.Options.Memory)
	if err := c.updateCache(ctx, l, shares); err != nil {
		return nil, err
	}
	sums := make([]callSum, len(l.names))
	for _, sh := range shares {
		b := l.entries[c.session.Sources[sh.src]]
		if b != nil && sh.split.HasMinutes {
			used, err := c.addEntry(ctx, l, b, &sh, sums)
			if err != nil {
				return nil, err
			}
			if used {
				sh.split.HasMinutes = false
			}
		}
		if sh.split.HasMinutes || len(sh.split.Rest) > 0 {
			rest = append(rest, sh)
		}
	}
	for i := range sums {
		if s := &sums[i]; s.calls > 0 {
			name := &l.names[i]
			c.calls.AddEdge(&tracestore.Edge{Parent: name.parent, Child: name.child, Messaging: name.messaging,
				Calls: s.calls, Errors: s.errors, Duration: s.duration})
		}
	}
	return rest, nil
}

// bringUp makes books, and looks for the parents of their orphans in sources that were not asked yet.
func (c *callReader) updateCache(ctx context.Context, l *edgeCache, shares []sourceShare) error {
	due := make(map[int]*cacheEntry) // by source
	for i := range shares {
		src := shares[i].src
		if !shares[i].split.HasMinutes {
			continue
		}
		b, err := c.entryOf(ctx, l, src)
		if err != nil {
			return err
		}
		if b == nil || b.searchedUpTo == l.last {
			continue
		}
		err = c.eachUnresolved(ctx, l, b, src, func(number int, of *stats.Orphan) {
			o := unresolvedOf(of, src)
			o.statsIndex = number
			c.unresolved = append(c.unresolved, o)
		})
		if err != nil {
			return err
		}
		due[src] = b
		if len(c.unresolved) >= resolveBatch {
			if err := c.resolveIntoCache(ctx, l, due); err != nil {
				return err
			}
		}
	}
	return c.resolveIntoCache(ctx, l, due)
}

// placeOrphans enters the calls of orphans, whose books are due, where it finds the parents. Then nothing is due. Where something could not
// be read, or the search was given up, the next query tries again.
func (c *callReader) resolveIntoCache(ctx context.Context, l *edgeCache, due map[int]*cacheEntry) error {
	if len(due) == 0 {
		return nil
	}
	a := c.newParentResolver()
	numbers, upTo := make([]int, len(c.session.Sources)), make([]int, len(c.session.Sources)) // by source
	for src := range c.session.Sources {
		numbers[src] = l.numbers[c.session.Sources[src]]
		if b := due[src]; b != nil {
			upTo[src] = b.searchedUpTo
		}
	}
	a.shouldSearch = func(o *unresolvedSpan, src int) bool { return numbers[src] > upTo[o.src] }
	a.onResolved = func(o *unresolvedSpan, k *parentCandidate) {
		l.addResolved(due[o.src], c.session.Sources[k.src], o, &k.span)
	}
	all, err := a.run(ctx)
	for _, b := range due {
		if all && err == nil && c.session.DamagedParts() == 0 {
			b.searchedUpTo = l.last
		}
		l.compact(b)
	}
	clear(due)
	return err
}

// read adds what a book says of a share to the sums, which are by name, and notes the orphans without parents: they may be in sources
// without statistics. It is false where a part that it needs cannot be read any more.
func (c *callReader) addEntry(ctx context.Context, l *edgeCache, b *cacheEntry, sh *sourceShare, sums []callSum) (used bool, _ error) {
	if sh.entire {
		for i := range b.totals {
			sums[b.totals[i].name].add(&b.totals[i])
		}
	} else {
		edges, _, err := c.readStatistics(ctx, sh.src)
		if err != nil || edges == nil {
			return false, err
		}
		c.addEdges(edges, sh)
	}
	for _, a := range b.resolved {
		from := sort.Search(len(a.points), func(i int) bool { return a.points[i].minute >= sh.split.Minutes.From })
		for i := from; i < len(a.points) && a.points[i].minute <= sh.split.Minutes.To; i++ {
			sums[a.points[i].sum.name].add(&a.points[i].sum)
		}
	}
	if len(l.numbers) == len(c.session.Sources) {
		return true, nil
	}
	return true, c.eachUnresolved(ctx, l, b, sh.src, func(_ int, of *stats.Orphan) {
		if of.Minute >= sh.split.Minutes.From && of.Minute <= sh.split.Minutes.To {
			o := unresolvedOf(of, sh.src)
			o.searchedSegments = true
			c.unresolved = append(c.unresolved, o)
		}
	})
}
