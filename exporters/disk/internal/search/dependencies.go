package search

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var _ tracestore.Dependencies = (*Engine)(nil)

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
func (e *Engine) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	first, last, ok := tracestore.Query{From: from, To: to}.Window()
	if !ok || ctx.Err() != nil {
		return tracestore.Graph{Complete: true}, ctx.Err()
	}
	s := e.begin()
	defer s.lease.release()
	c := &callReader{session: s, tenant: tenant, from: first, to: last}
	if err := c.run(ctx); err != nil {
		return tracestore.Graph{}, err
	}
	g := tracestore.Graph{Edges: c.calls.Edges(), Reason: c.reason()}
	g.Complete = g.Reason == ""
	return g, nil
}

// callReader counts the calls of a tenant within a window.
type callReader struct {
	*session
	tenant   string
	from, to uint64
	peers    *peerReader // counts the calls to peers instead; nil: those between services are counted
	calls    storequery.CallCounter
	parents  storequery.ParentFinder
	spans    []storequery.CallSpan // of the trace at hand
	orphans  []orphan
	searched int // see maxSearched
	given    int // orphans whose parent was not looked for everywhere
}

func (c *callReader) reason() string {
	reason := c.damage.reason()
	if c.given == 0 {
		return reason
	}
	return joinReasons(reason, fmt.Sprintf("the parents of %d spans were not looked for everywhere; narrow the time range", c.given))
}

// bounds are a range of starts, both inclusive.
type bounds struct{ from, to uint64 }

// window is what of a source is counted from rows: two ranges at most.
type window []bounds

func (w window) has(start uint64) bool {
	for _, s := range w {
		if start >= s.from && start <= s.to {
			return true
		}
	}
	return false
}

func (w window) touches(info *source.BlockInfo) bool {
	for _, s := range w {
		if info.Rows > 0 && info.MaxStart >= s.from && info.MinStart <= s.to {
			return true
		}
	}
	return false
}

const minute = uint64(time.Minute)

// share is what a source has within the window.
type share struct {
	src int
	divided
	entire bool // its minutes are all that the source has
}

// run counts the calls of all sources.
func (c *callReader) run(ctx context.Context) error {
	var shares []share
	for src := range c.sources {
		if sh, ok := c.shareOf(src); ok {
			shares = append(shares, sh)
		}
	}
	shares, err := c.useLedger(ctx, shares)
	if err != nil {
		return err
	}
	for i := range shares {
		if err := c.count(ctx, &shares[i]); err != nil {
			return err
		}
	}
	return c.adopt(ctx)
}

// shareOf is false where a source has nothing within the window.
func (c *callReader) shareOf(src int) (share, bool) {
	rows, oldest, newest := c.sources[src].Bounds()
	if rows == 0 || newest < c.from || oldest > c.to {
		return share{}, false
	}
	sh := share{src: src, divided: divide(bounds{c.from, c.to}, oldest, newest)}
	if _, ok := c.sources[src].(source.Statistics); !ok {
		sh.some, sh.rest = false, sh.all
	}
	sh.entire = sh.some && sh.minutes.from <= stats.MinuteOf(oldest) && sh.minutes.to >= stats.MinuteOf(newest)
	return sh, true
}

// count counts the calls of a share without a ledger.
func (c *callReader) count(ctx context.Context, sh *share) error {
	if sh.some {
		edges, orphans, err := c.readStatistics(ctx, sh.src)
		if err != nil {
			return err
		}
		if edges == nil {
			sh.rest = sh.all
		} else {
			c.addEdges(edges, sh)
			if err := c.addOrphans(ctx, orphans, sh); err != nil {
				return err
			}
		}
	}
	if len(sh.rest) == 0 {
		return nil
	}
	return c.scan(ctx, sh.src, sh.rest)
}

func (c *callReader) addEdges(edges *stats.EdgeStats, sh *share) {
	for p := range edges.Points(sh.minutes.from, sh.minutes.to) {
		if e := &edges.Edges[p.Edge]; e.Tenant == c.tenant {
			c.calls.AddEdge(&tracestore.Edge{Parent: e.Parent, Child: e.Child, Messaging: e.Kind == stats.Messaging,
				Calls: p.Calls, Errors: p.Errors, Duration: p.Sum})
		}
	}
}

func (c *callReader) addOrphans(ctx context.Context, orphans *stats.OrphanStats, sh *share) error {
	for o := range orphans.Orphans(sh.minutes.from, sh.minutes.to) {
		if o.Tenant != c.tenant {
			continue
		}
		c.orphans = append(c.orphans, orphanOf(&o, sh.src))
		if err := c.adoptMany(ctx); err != nil {
			return err
		}
	}
	return nil
}

// orphanOf returns an orphan of a source that its statistics list.
func orphanOf(o *stats.Orphan, src int) orphan {
	child := storequery.CallSpan{Parent: o.ParentID, Start: o.Minute * minute, Duration: o.Duration, Service: o.Service, Failed: o.Failed}
	if o.Kind == stats.Messaging {
		child.Kind = otlpdata.KindConsumer // as far as it matters
	}
	return orphan{trace: o.TraceID, src: src, child: child}
}

// useLedger counts the whole minutes of shares that the ledger has a book for or can make one, and returns what is left to count.
func (c *callReader) useLedger(ctx context.Context, shares []share) (rest []share, _ error) {
	all := &c.engine.ledgers
	if err := all.acquire(ctx); err != nil {
		return nil, err
	}
	defer all.release()
	l := c.ledger()
	defer all.trim(c.engine.options.Memory)
	if err := c.bringUp(ctx, l, shares); err != nil {
		return nil, err
	}
	sums := make([]callSum, len(l.names))
	for _, sh := range shares {
		b := l.books[c.sources[sh.src]]
		if b != nil && sh.some {
			used, err := c.read(ctx, l, b, &sh, sums)
			if err != nil {
				return nil, err
			}
			if used {
				sh.some = false
			}
		}
		if sh.some || len(sh.rest) > 0 {
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
func (c *callReader) bringUp(ctx context.Context, l *ledger, shares []share) error {
	due := make(map[int]*book) // by source
	for i := range shares {
		src := shares[i].src
		if !shares[i].some {
			continue
		}
		b, err := c.bookOf(ctx, l, src)
		if err != nil {
			return err
		}
		if b == nil || b.upTo == l.last {
			continue
		}
		err = c.eachLeft(ctx, l, b, src, func(number int, of *stats.Orphan) {
			o := orphanOf(of, src)
			o.number = number
			c.orphans = append(c.orphans, o)
		})
		if err != nil {
			return err
		}
		due[src] = b
		if len(c.orphans) >= manyOrphans {
			if err := c.placeOrphans(ctx, l, due); err != nil {
				return err
			}
		}
	}
	return c.placeOrphans(ctx, l, due)
}

// placeOrphans enters the calls of orphans, whose books are due, where it finds the parents. Then nothing is due. Where something could not
// be read, or the search was given up, the next query tries again.
func (c *callReader) placeOrphans(ctx context.Context, l *ledger, due map[int]*book) error {
	if len(due) == 0 {
		return nil
	}
	a := c.newAdoption()
	numbers, upTo := make([]int, len(c.sources)), make([]int, len(c.sources)) // by source
	for src := range c.sources {
		numbers[src] = l.number[c.sources[src]]
		if b := due[src]; b != nil {
			upTo[src] = b.upTo
		}
	}
	a.asks = func(o *orphan, src int) bool { return numbers[src] > upTo[o.src] }
	a.found = func(o *orphan, k *kinsman) { l.adopt(due[o.src], c.sources[k.src], o, &k.span) }
	all, err := a.run(ctx)
	for _, b := range due {
		if all && err == nil && len(c.damage.seen) == 0 {
			b.upTo = l.last
		}
		l.settle(b)
	}
	clear(due)
	return err
}

// read adds what a book says of a share to the sums, which are by name, and notes the orphans without parents: they may be in sources
// without statistics. It is false where a part that it needs cannot be read any more.
func (c *callReader) read(ctx context.Context, l *ledger, b *book, sh *share, sums []callSum) (used bool, _ error) {
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
	for _, a := range b.adopted {
		from := sort.Search(len(a.points), func(i int) bool { return a.points[i].minute >= sh.minutes.from })
		for i := from; i < len(a.points) && a.points[i].minute <= sh.minutes.to; i++ {
			sums[a.points[i].name].add(&a.points[i].callSum)
		}
	}
	if len(l.number) == len(c.sources) {
		return true, nil
	}
	return true, c.eachLeft(ctx, l, b, sh.src, func(_ int, of *stats.Orphan) {
		if of.Minute >= sh.minutes.from && of.Minute <= sh.minutes.to {
			o := orphanOf(of, sh.src)
			o.asked = true
			c.orphans = append(c.orphans, o)
		}
	})
}
