package graph

import (
	"context"
	"errors"
	"math"
	"sort"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// useCache counts the whole minutes of segments that are in the edge cache or can be added to it,
// and returns the shares that are left to count.
func (c *callReader) useCache(ctx context.Context, shares []sourceShare) (rest []sourceShare, _ error) {
	all := c.caches
	if err := all.acquire(ctx); err != nil {
		return nil, err
	}
	defer all.release()
	cache := c.cache()
	defer all.trim(c.session.Options.Memory)
	if err := c.updateCache(ctx, cache, shares); err != nil {
		return nil, err
	}
	sums := make([]callSum, len(cache.names)) // by name; not used if calls are measured
	for _, sh := range shares {
		entry := cache.entries[c.session.Sources[sh.src]]
		if entry != nil && sh.split.HasMinutes {
			used, err := c.addEntry(ctx, cache, entry, &sh, sums)
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
			name := &cache.names[i]
			c.calls.AddEdge(&tracestore.Edge{Parent: name.parent, Child: name.child, Messaging: name.kind&stats.Messaging != 0,
				Calls: s.calls, Errors: s.errors, Duration: s.duration})
		}
	}
	return rest, nil
}

// updateCache adds segments to the edge cache. It searches segments that are new to a cache entry
// for the parents of its unresolved spans (those whose parent is not in their segment).
func (c *callReader) updateCache(ctx context.Context, cache *edgeCache, shares []sourceShare) error {
	due := make(map[int]*cacheEntry) // entries to resolve, by source
	for i := range shares {
		src := shares[i].src
		if !shares[i].split.HasMinutes {
			continue
		}
		entry, err := c.entryOf(ctx, cache, src)
		if err != nil {
			return err
		}
		if entry == nil || entry.searchedUpTo == cache.last {
			continue
		}
		err = c.eachUnresolved(ctx, cache, entry, src, func(number int, of *stats.Orphan) {
			o := unresolvedOf(of, src)
			o.statsIndex = number
			c.unresolved = append(c.unresolved, o)
		})
		if err != nil {
			return err
		}
		due[src] = entry
		if len(c.unresolved) >= resolveBatch {
			if err := c.resolveIntoCache(ctx, cache, due); err != nil {
				return err
			}
		}
	}
	return c.resolveIntoCache(ctx, cache, due)
}

// resolveIntoCache searches for the parents of the unresolved spans of the entries in due, adds
// their calls to the entries, and clears due. If damage or the limit stops the search, the next
// query retries it.
func (c *callReader) resolveIntoCache(ctx context.Context, cache *edgeCache, due map[int]*cacheEntry) error {
	if len(due) == 0 {
		return nil
	}
	r := c.newParentResolver()
	numbers, upTo := make([]int, len(c.session.Sources)), make([]int, len(c.session.Sources)) // by source
	for src := range c.session.Sources {
		numbers[src] = cache.numbers[c.session.Sources[src]]
		if entry := due[src]; entry != nil {
			upTo[src] = entry.searchedUpTo
		}
	}
	r.shouldSearch = func(o *unresolvedSpan, src int) bool { return numbers[src] > upTo[o.src] }
	r.onResolved = func(o *unresolvedSpan, k *parentCandidate) {
		cache.addResolved(due[o.src], c.session.Sources[k.src], o, &k.span)
	}
	all, err := r.run(ctx)
	for _, entry := range due {
		if all && err == nil && c.session.DamagedParts() == 0 {
			entry.searchedUpTo = cache.last
		}
		cache.compact(entry)
	}
	clear(due)
	return err
}

// addEntry adds the calls of a share to sums, by name. It adds the spans without a parent to
// unresolved, because memtables may have the parent. It returns false if statistics that it needs
// can no longer be read.
func (c *callReader) addEntry(
	ctx context.Context, cache *edgeCache, entry *cacheEntry, sh *sourceShare, sums []callSum,
) (used bool, _ error) {
	if sh.entire && c.edges == nil {
		for i := range entry.totals {
			sums[entry.totals[i].name].add(&entry.totals[i])
		}
	} else {
		edges, _, err := c.readStatistics(ctx, sh.src)
		if err != nil || edges == nil {
			return false, err
		}
		c.addEdges(edges, sh)
	}
	for _, res := range entry.resolved {
		from := sort.Search(len(res.points), func(i int) bool { return res.points[i].minute >= sh.split.Minutes.From })
		for i := from; i < len(res.points) && res.points[i].minute <= sh.split.Minutes.To; i++ {
			if p := &res.points[i]; c.edges != nil {
				c.addResolved(&cache.names[p.sum.name], p)
			} else {
				sums[p.sum.name].add(&p.sum)
			}
		}
	}
	if len(cache.numbers) == len(c.session.Sources) {
		return true, nil
	}
	return true, c.eachUnresolved(ctx, cache, entry, sh.src, func(_ int, of *stats.Orphan) {
		if of.Minute >= sh.split.Minutes.From && of.Minute <= sh.split.Minutes.To {
			o := unresolvedOf(of, sh.src)
			o.searchedSegments = true
			c.unresolved = append(c.unresolved, o)
		}
	})
}

// entryOf returns the entry of a source, and creates it if necessary. It returns nil if there is no
// memory for an entry or the statistics of the source are unusable.
func (c *callReader) entryOf(ctx context.Context, cache *edgeCache, src int) (*cacheEntry, error) {
	entry := cache.entries[c.session.Sources[src]]
	if entry != nil || cache.memory >= c.session.Options.Memory {
		return entry, nil
	}
	edges, orphans, err := c.readStatistics(ctx, src)
	if err != nil || edges == nil || orphans.Len() > maxEntrySpans {
		return nil, err
	}
	entry = &cacheEntry{resolved: make(map[source.Source]*resolvedCalls), unresolvedBits: make([]uint64, (orphans.Len()+63)/64)}
	sums := make([]callSum, len(edges.Edges))
	for p := range edges.Points(0, math.MaxUint64) {
		sums[p.Edge].add(&callSum{calls: p.Calls, errors: p.Errors, duration: p.Sum})
	}
	for i := range sums {
		if e := &edges.Edges[i]; e.Tenant == c.tenant && sums[i].calls > 0 {
			sums[i].name = cache.id(callName{e.Parent, e.Child, e.Kind})
			entry.totals = append(entry.totals, sums[i])
		}
	}
	i := 0
	for o := range orphans.Orphans(0, math.MaxUint64) {
		if o.Tenant == c.tenant {
			entry.unresolvedBits[i/64] |= 1 << (i % 64)
			entry.unresolvedCount++
		}
		i++
	}
	cache.entries[c.session.Sources[src]] = entry
	cache.measure(entry)
	return entry, nil
}

// readStatistics returns the statistics of calls of a source. It returns nil if they are
// incomplete, or damaged (which loses no spans).
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

// eachUnresolved calls f with the unresolved spans of an entry and their indexes in the statistics.
func (c *callReader) eachUnresolved(
	ctx context.Context, cache *edgeCache, entry *cacheEntry, src int, f func(number int, o *stats.Orphan),
) error {
	number := -1
	next := func() {
		for number++; entry.unresolvedBits[number/64]>>(number%64)&1 == 0; number++ {
		}
	}
	if entry.unresolved != nil {
		for i := range entry.unresolved {
			next()
			f(number, &entry.unresolved[i])
		}
		return nil
	}
	if entry.unresolvedCount == 0 {
		return nil
	}
	var orphans *stats.OrphanStats
	err := c.session.Decode(ctx, func() (err error) {
		orphans, err = c.session.Sources[src].(source.Statistics).Orphans()
		return err
	})
	if err != nil { // they were readable before
		return c.session.NoteDamage(src, "orphans", 0, err)
	}
	keep := entry.unresolvedCount <= maxCachedUnresolved
	for o := range orphans.Orphans(0, math.MaxUint64) {
		if number++; entry.unresolvedBits[number/64]>>(number%64)&1 == 0 {
			continue
		}
		f(number, &o)
		if keep {
			o.Tenant, o.Service = c.tenant, cache.text(o.Service)
			entry.unresolved = append(entry.unresolved, o)
		}
	}
	cache.measure(entry)
	return nil
}
