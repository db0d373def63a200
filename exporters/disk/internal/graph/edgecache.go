package graph

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// ledgers keep what queries for calls have found out, by tenant. Segments do not change, so what is known of two of them stays true as long
// as both are there.
type edgeCaches struct {
	lock       chan struct{} // holds a token while somebody uses the rest; see acquire
	byTenant   map[string]*edgeCache
	clock      int64                              // counts uses
	cancelWarm atomic.Pointer[context.CancelFunc] // makes Warm give up the lock; nil: it does not have it
}

func newEdgeCaches() edgeCaches {
	return edgeCaches{lock: make(chan struct{}, 1), byTenant: make(map[string]*edgeCache)}
}

// ledger is what is known of the calls of a tenant.
//
//	book of a segment   calls within it, in sum over all minutes
//	                    left: bit i says that the parent of orphan i is in none of the sources up to a number
//	   adopted          by the segment that has the parents: calls by minute, and which orphans these are
//
// A source that goes takes what was adopted from it along; those orphans are looked for again.
type edgeCache struct {
	used      int64
	numbers   map[source.Source]int // of all sources with statistics, in the order in which they appeared; from 1
	last      int
	entries   map[source.Source]*cacheEntry
	ids       map[callName]uint32
	names     []callName
	texts     map[string]string // one copy of each name of a service
	memory    int64             // bytes, about
	nameBytes int64             // bytes of ids, names and texts, which are of books that went, too
}

func newEdgeCache() *edgeCache {
	return &edgeCache{numbers: make(map[source.Source]int), entries: make(map[source.Source]*cacheEntry), ids: make(map[callName]uint32),
		texts: make(map[string]string)}
}

// callName is what calls are added up by.
type callName struct {
	parent, child string
	messaging     bool
}

type cacheEntry struct {
	totals          []callSum // by name
	unresolvedBits  []uint64  // bits
	unresolvedCount int       // of bits that are set
	resolved        map[source.Source]*resolvedCalls
	searchedUpTo    int            // sources up to this number were asked for the parents
	unresolved      []stats.Orphan // those that are left, unless they are too many; nil: not read
	memory          int64
}

type resolvedCalls struct {
	points []callPoint // by minute and name
	spans  []uint32    // orphans, by their number
}

type callSum struct {
	name                    uint32
	calls, errors, duration uint64
}

type callPoint struct {
	minute uint64
	sum    callSum
}

// maxBookOrphans is how many orphans the source of a book has at most.
const maxEntrySpans = 1 << 20

// maxWaifs is how many orphans without parents a book holds. Those of other segments are read again by every query.
const maxCachedUnresolved = 4096

func (s *callSum) add(o *callSum) {
	s.calls += o.calls
	s.errors += o.errors
	if s.duration += o.duration; s.duration < o.duration {
		s.duration = math.MaxUint64
	}
}

// ledger returns the ledger of the tenant, which knows the sources at hand. The caller holds the lock.
func (c *callReader) cache() *edgeCache {
	all := c.caches
	l := all.byTenant[c.tenant]
	// Names of what went are left behind.
	if l == nil || l.update(c.session.Sources) && l.nameBytes > c.session.Options.Memory/2 {
		l = newEdgeCache()
		l.update(c.session.Sources)
		all.byTenant[strings.Clone(c.tenant)] = l
	}
	all.clock++
	l.used = all.clock
	return l
}

// trim forgets the ledgers that were not used for longest where all together take too much memory.
func (a *edgeCaches) trim(limit int64) {
	const own = 1 << 10
	for {
		sum, oldest := int64(0), ""
		for tenant, l := range a.byTenant {
			sum += own + l.memory
			if o := a.byTenant[oldest]; o == nil || l.used < o.used {
				oldest = tenant
			}
		}
		if sum <= limit || len(a.byTenant) == 1 {
			return
		}
		delete(a.byTenant, oldest)
	}
}

// meet gives numbers to new sources, and forgets those that went, which it reports.
func (l *edgeCache) update(sources []source.Source) (gone bool) {
	here := make(map[source.Source]bool, len(sources))
	for _, src := range sources {
		if _, ok := src.(source.Statistics); !ok {
			continue
		}
		here[src] = true
		if l.numbers[src] == 0 {
			l.last++
			l.numbers[src] = l.last
		}
	}
	gone = len(here) < len(l.numbers)
	for src := range l.numbers {
		if gone && !here[src] {
			l.remove(src)
		}
	}
	return gone
}

func (l *edgeCache) remove(gone source.Source) {
	delete(l.numbers, gone)
	if b := l.entries[gone]; b != nil {
		delete(l.entries, gone)
		l.memory -= b.memory
	}
	for _, b := range l.entries {
		a := b.resolved[gone]
		if a == nil {
			continue
		}
		for _, i := range a.spans {
			b.unresolvedBits[i/64] |= 1 << (i % 64)
		}
		b.unresolvedCount += len(a.spans)
		b.searchedUpTo, b.unresolved = 0, nil // another source may have the same parents
		delete(b.resolved, gone)
		l.measure(b)
	}
}

// measure brings the estimate of memory up to date.
func (l *edgeCache) measure(b *cacheEntry) {
	const own = 512
	n := own + int64(len(b.totals))*int64(unsafe.Sizeof(callSum{})) + int64(len(b.unresolvedBits))*8 +
		int64(len(b.unresolved))*int64(unsafe.Sizeof(stats.Orphan{}))
	for _, a := range b.resolved {
		n += own + int64(cap(a.points))*int64(unsafe.Sizeof(callPoint{})) + int64(cap(a.spans))*4
	}
	l.memory += n - b.memory
	b.memory = n
}

// id returns the number of a name.
func (l *edgeCache) id(name callName) uint32 {
	id, ok := l.ids[name]
	if !ok {
		id = uint32(len(l.names))
		name.parent, name.child = l.text(name.parent), l.text(name.child)
		l.names = append(l.names, name)
		l.ids[name] = id
		l.addNameBytes(3 * int64(unsafe.Sizeof(name)))
	}
	return id
}

// text returns the ledger's own copy of a text: others alias sections that are not kept.
func (l *edgeCache) text(s string) string {
	own, ok := l.texts[s]
	if !ok {
		own = strings.Clone(s)
		l.texts[own] = own
		l.addNameBytes(int64(len(s)) + 3*int64(unsafe.Sizeof(s)))
	}
	return own
}

func (l *edgeCache) addNameBytes(bytes int64) {
	l.nameBytes += bytes
	l.memory += bytes
}

// bookOf returns the book of a source, and makes one where there is none and room for it. It is nil where the source's statistics cannot
// be used.
func (c *callReader) entryOf(ctx context.Context, l *edgeCache, src int) (*cacheEntry, error) {
	b := l.entries[c.session.Sources[src]]
	if b != nil || l.memory >= c.session.Options.Memory {
		return b, nil
	}
	edges, orphans, err := c.readStatistics(ctx, src)
	if err != nil || edges == nil || orphans.Len() > maxEntrySpans {
		return nil, err
	}
	b = &cacheEntry{resolved: make(map[source.Source]*resolvedCalls), unresolvedBits: make([]uint64, (orphans.Len()+63)/64)}
	sums := make([]callSum, len(edges.Edges))
	for p := range edges.Points(0, math.MaxUint64) {
		sums[p.Edge].add(&callSum{calls: p.Calls, errors: p.Errors, duration: p.Sum})
	}
	for i := range sums {
		if e := &edges.Edges[i]; e.Tenant == c.tenant && sums[i].calls > 0 {
			sums[i].name = l.id(callName{e.Parent, e.Child, e.Kind == stats.Messaging})
			b.totals = append(b.totals, sums[i])
		}
	}
	i := 0
	for o := range orphans.Orphans(0, math.MaxUint64) {
		if o.Tenant == c.tenant {
			b.unresolvedBits[i/64] |= 1 << (i % 64)
			b.unresolvedCount++
		}
		i++
	}
	l.entries[c.session.Sources[src]] = b
	l.measure(b)
	return b, nil
}

// readStatistics reads what a source knows of its calls. They are nil where that cannot be used: where it is damaged, which costs no
// spans, or not all spans had room in it.
func (c *callReader) readStatistics(ctx context.Context, src int) (edges *stats.EdgeStats, orphans *stats.OrphanStats, _ error) {
	s, ok := c.session.Sources[src].(source.Statistics)
	if !ok {
		return nil, nil, nil
	}
	err := c.session.Decode(ctx, func() (err error) {
		if edges, err = s.Edges(); err == nil {
			orphans, err = s.Orphans()
		}
		return err
	})
	if d := (*source.DamageError)(nil); errors.As(err, &d) {
		c.session.ReportDamage(d)
		return nil, nil, nil
	}
	if err != nil || edges.Dropped > 0 || orphans.Dropped > 0 {
		return nil, nil, err
	}
	return edges, orphans, nil
}

// eachLeft calls f with the orphans of a source that have no parent yet, and their numbers.
func (c *callReader) eachUnresolved(ctx context.Context, l *edgeCache, b *cacheEntry, src int, f func(number int, o *stats.Orphan)) error {
	number := -1
	next := func() {
		for number++; b.unresolvedBits[number/64]>>(number%64)&1 == 0; number++ {
		}
	}
	if b.unresolved != nil {
		for i := range b.unresolved {
			next()
			f(number, &b.unresolved[i])
		}
		return nil
	}
	if b.unresolvedCount == 0 {
		return nil
	}
	var orphans *stats.OrphanStats
	err := c.session.Decode(ctx, func() (err error) {
		orphans, err = c.session.Sources[src].(source.Statistics).Orphans()
		return err
	})
	if err != nil { // it could be read before
		return c.session.NoteDamage(src, "orphans", 0, err)
	}
	keep := b.unresolvedCount <= maxCachedUnresolved
	for o := range orphans.Orphans(0, math.MaxUint64) {
		if number++; b.unresolvedBits[number/64]>>(number%64)&1 == 0 {
			continue
		}
		f(number, &o)
		if keep {
			o.Tenant, o.Service = c.tenant, l.text(o.Service)
			b.unresolved = append(b.unresolved, o)
		}
	}
	l.measure(b)
	return nil
}

// adopt notes that the parent of an orphan is in a source.
func (l *edgeCache) addResolved(b *cacheEntry, from source.Source, o *unresolvedSpan, parent *storequery.CallSpan) {
	a := b.resolved[from]
	if a == nil {
		a = new(resolvedCalls)
		b.resolved[from] = a
	}
	messaging := parent.Kind == otlpdata.KindProducer || o.child.Kind == otlpdata.KindConsumer // as in tracestore.Edge
	p := callPoint{minute: stats.MinuteOf(o.child.Start), sum: callSum{calls: 1, duration: o.child.Duration}}
	p.sum.name = l.id(callName{parent.Service, o.child.Service, messaging})
	if o.child.Failed {
		p.sum.errors = 1
	}
	a.points = append(a.points, p)
	a.spans = append(a.spans, uint32(o.statsIndex))
	b.unresolvedBits[o.statsIndex/64] &^= 1 << (o.statsIndex % 64)
	b.unresolvedCount--
	b.unresolved = nil
}

// settle brings a book in order after some orphans were adopted.
func (l *edgeCache) compact(b *cacheEntry) {
	for _, a := range b.resolved {
		slices.SortFunc(a.points, func(x, y callPoint) int {
			return cmp.Or(cmp.Compare(x.minute, y.minute), cmp.Compare(x.sum.name, y.sum.name))
		})
		sums := a.points[:0]
		for _, p := range a.points {
			if n := len(sums); n > 0 && sums[n-1].minute == p.minute && sums[n-1].sum.name == p.sum.name {
				sums[n-1].sum.add(&p.sum)
			} else {
				sums = append(sums, p)
			}
		}
		a.points = slices.Clone(sums)
		a.spans = slices.Clip(a.spans)
	}
	l.measure(b)
}
