package graph

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// edgeCaches holds the edge caches of tenants. A segment does not change, so calls between two
// segments stay valid while both exist.
type edgeCaches struct {
	lock       chan struct{} // holds a token while a goroutine uses the other fields; see acquire
	byTenant   map[string]*edgeCache
	clock      int64                              // number of uses so far
	cancelWarm atomic.Pointer[context.CancelFunc] // makes Warm release the lock; nil: Warm does not hold it
}

func newEdgeCaches() edgeCaches {
	return edgeCaches{lock: make(chan struct{}, 1), byTenant: make(map[string]*edgeCache)}
}

// edgeCache has the counted calls of a tenant.
//
//	entry of a segment
//	  totals          calls within the segment, summed over all minutes
//	  unresolvedBits  spans whose parent is in no segment with a number up to searchedUpTo
//	  resolved        calls whose parent is in another segment: by segment, minute and duration
//
// When a segment is removed, calls with parents in it are removed as well, and the search for their
// parents is repeated.
type edgeCache struct {
	used      int64
	numbers   map[source.Source]int // numbers of all sources with statistics, from 1, in order of appearance
	last      int
	entries   map[source.Source]*cacheEntry
	ids       map[callName]uint32
	names     []callName
	texts     map[string]string // one copy of each service name
	memory    int64             // approximate size in bytes
	nameBytes int64             // size of ids, names and texts, including the ones of removed entries
}

func newEdgeCache() *edgeCache {
	return &edgeCache{numbers: make(map[source.Source]int), entries: make(map[source.Source]*cacheEntry), ids: make(map[callName]uint32),
		texts: make(map[string]string)}
}

// callName identifies calls that are added up.
type callName struct {
	parent, child string
	kind          stats.EdgeKind
}

type cacheEntry struct {
	totals          []callSum // by name
	unresolvedBits  []uint64  // one bit for each unresolved span in the statistics
	unresolvedCount int       // number of bits that are set
	resolved        map[source.Source]*resolvedCalls
	searchedUpTo    int            // segments up to this number were searched for parents
	unresolved      []stats.Orphan // the spans with a bit, unless there are too many; nil: not read
	memory          int64
}

type resolvedCalls struct {
	points []callPoint // by minute, name and bucket
	spans  []uint32    // the resolved spans, by index in the statistics
}

type callSum struct {
	name                    uint32
	calls, errors, duration uint64
}

type callPoint struct {
	minute uint64
	sum    callSum
	bucket uint16 // of the durations, unless the calls are inner
}

// maxEntrySpans is the maximum number of unresolved spans of a segment with an entry.
const maxEntrySpans = 1 << 20

// maxCachedUnresolved is the maximum number of spans in cacheEntry.unresolved. Every query rereads
// segments with more.
const maxCachedUnresolved = 4096

func (s *callSum) add(o *callSum) {
	s.calls += o.calls
	s.errors += o.errors
	if s.duration += o.duration; s.duration < o.duration {
		s.duration = math.MaxUint64
	}
}

// cache returns the edge cache of the tenant, updated for the sources of the session. The caller
// holds the lock.
func (c *callReader) cache() *edgeCache {
	all := c.caches
	cache := all.byTenant[c.tenant]
	// A new cache drops the names of removed entries.
	if cache == nil || cache.update(c.session.Sources) && cache.nameBytes > c.session.Options.Memory/2 {
		cache = newEdgeCache()
		cache.update(c.session.Sources)
		all.byTenant[strings.Clone(c.tenant)] = cache
	}
	all.clock++
	cache.used = all.clock
	return cache
}

// trim removes the least recently used caches if their total size exceeds limit.
func (c *edgeCaches) trim(limit int64) {
	const own = 1 << 10
	for {
		sum, oldest := int64(0), ""
		for tenant, cache := range c.byTenant {
			sum += own + cache.memory
			if o := c.byTenant[oldest]; o == nil || cache.used < o.used {
				oldest = tenant
			}
		}
		if sum <= limit || len(c.byTenant) == 1 {
			return
		}
		delete(c.byTenant, oldest)
	}
}

// update numbers new sources and removes sources that are gone. It reports whether it removed any.
func (cache *edgeCache) update(sources []source.Source) (gone bool) {
	here := make(map[source.Source]bool, len(sources))
	for _, src := range sources {
		if _, ok := src.(source.Statistics); !ok {
			continue
		}
		here[src] = true
		if cache.numbers[src] == 0 {
			cache.last++
			cache.numbers[src] = cache.last
		}
	}
	gone = len(here) < len(cache.numbers)
	for src := range cache.numbers {
		if gone && !here[src] {
			cache.remove(src)
		}
	}
	return gone
}

func (cache *edgeCache) remove(gone source.Source) {
	delete(cache.numbers, gone)
	if entry := cache.entries[gone]; entry != nil {
		delete(cache.entries, gone)
		cache.memory -= entry.memory
	}
	for _, entry := range cache.entries {
		res := entry.resolved[gone]
		if res == nil {
			continue
		}
		for _, i := range res.spans {
			entry.unresolvedBits[i/64] |= 1 << (i % 64)
		}
		entry.unresolvedCount += len(res.spans)
		entry.searchedUpTo, entry.unresolved = 0, nil // other sources may have the same parents
		delete(entry.resolved, gone)
		cache.measure(entry)
	}
}

// measure updates the estimated size.
func (cache *edgeCache) measure(entry *cacheEntry) {
	const own = 512
	n := own + int64(len(entry.totals))*int64(unsafe.Sizeof(callSum{})) + int64(len(entry.unresolvedBits))*8 +
		int64(len(entry.unresolved))*int64(unsafe.Sizeof(stats.Orphan{}))
	for _, res := range entry.resolved {
		n += own + int64(cap(res.points))*int64(unsafe.Sizeof(callPoint{})) + int64(cap(res.spans))*4
	}
	cache.memory += n - entry.memory
	entry.memory = n
}

// id returns the number of a name.
func (cache *edgeCache) id(name callName) uint32 {
	id, ok := cache.ids[name]
	if !ok {
		id = uint32(len(cache.names))
		name.parent, name.child = cache.text(name.parent), cache.text(name.child)
		cache.names = append(cache.names, name)
		cache.ids[name] = id
		cache.addNameBytes(3 * int64(unsafe.Sizeof(name)))
	}
	return id
}

// text returns a copy of s that the cache owns. Names in statistics refer to sections that do not
// stay in memory.
func (cache *edgeCache) text(s string) string {
	own, ok := cache.texts[s]
	if !ok {
		own = strings.Clone(s)
		cache.texts[own] = own
		cache.addNameBytes(int64(len(s)) + 3*int64(unsafe.Sizeof(s)))
	}
	return own
}

func (cache *edgeCache) addNameBytes(bytes int64) {
	cache.nameBytes += bytes
	cache.memory += bytes
}

// addResolved adds the call of a span whose parent is in another source.
func (cache *edgeCache) addResolved(entry *cacheEntry, from source.Source, o *unresolvedSpan, parent *storequery.CallSpan) {
	res := entry.resolved[from]
	if res == nil {
		res = new(resolvedCalls)
		entry.resolved[from] = res
	}
	kind := stats.EdgeKindOf(sideOf(parent), sideOf(&o.child))
	p := callPoint{minute: stats.MinuteOf(o.child.Start), sum: callSum{calls: 1, duration: o.child.Duration}}
	p.sum.name = cache.id(callName{parent.Service, o.child.Service, kind})
	if kind&stats.Inner == 0 {
		p.bucket = uint16(tracestore.BucketOf(o.child.Duration))
	}
	if o.child.Failed {
		p.sum.errors = 1
	}
	res.points = append(res.points, p)
	res.spans = append(res.spans, uint32(o.statsIndex))
	entry.unresolvedBits[o.statsIndex/64] &^= 1 << (o.statsIndex % 64)
	entry.unresolvedCount--
	entry.unresolved = nil
}

// compact merges the calls that addResolved has added.
func (cache *edgeCache) compact(entry *cacheEntry) {
	for _, res := range entry.resolved {
		slices.SortFunc(res.points, func(x, y callPoint) int {
			return cmp.Or(cmp.Compare(x.minute, y.minute), cmp.Compare(x.sum.name, y.sum.name), cmp.Compare(x.bucket, y.bucket))
		})
		sums := res.points[:0]
		for _, p := range res.points {
			if n := len(sums); n > 0 && sums[n-1].minute == p.minute && sums[n-1].sum.name == p.sum.name && sums[n-1].bucket == p.bucket {
				sums[n-1].sum.add(&p.sum)
			} else {
				sums = append(sums, p)
			}
		}
		res.points = slices.Clone(sums)
		res.spans = slices.Clip(res.spans)
	}
	cache.measure(entry)
}
