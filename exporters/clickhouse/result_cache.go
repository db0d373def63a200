package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// resultCache caches results of queries that read many spans: facets of a window, and calls of
// hours and their parts, which windows share. The zero value is ready to use. Safe for concurrent
// use.
type resultCache struct {
	mu      sync.Mutex
	results map[string]cachedResult
	size    int
}

// cachedResult is a result that is valid until a time, while no spans of its hours are stored or
// deleted.
type cachedResult struct {
	state uint64 // see storedHours.state
	until time.Time
	size  int
	value any
}

const (
	// resultTime is how long a result is cached. Meanwhile, spans may expire.
	resultTime = 10 * time.Minute
	// maxCacheSize and maxResultSize are the maximum sizes of all results and of one, in bytes. A
	// histogram often has 3 KiB, so the calls between 40 services can have 2 MiB.
	maxCacheSize, maxResultSize = 32 << 20, 8 << 20
	// perResult is the approximate size in bytes of a result without its key and value.
	perResult = 256
	// liveTime is the time before now in which spans are likely to start that are not stored yet.
	liveTime = 30 * time.Second
)

// lookup returns the result with a key if the spans are the same, or nil.
func (c *resultCache) lookup(key string, state uint64, now time.Time) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.results[key]; ok && r.state == state && now.Before(r.until) {
		return r.value
	}
	return nil
}

// store adds a result, which must not share memory with others. If the results together exceed
// maxCacheSize, it removes the oldest ones until they have three quarters of it.
func (c *resultCache) store(key string, r cachedResult) {
	if r.size += perResult + len(key); r.size > maxResultSize {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.results == nil {
		c.results = make(map[string]cachedResult)
	}
	c.size += r.size - c.results[key].size
	c.results[key] = r
	if c.size <= maxCacheSize {
		return
	}
	older := func(a, b string) int { return c.results[a].until.Compare(c.results[b].until) }
	for _, oldest := range slices.SortedFunc(maps.Keys(c.results), older) {
		if c.size <= maxCacheSize/4*3 {
			break
		}
		if oldest != key {
			c.size -= c.results[oldest].size
			delete(c.results, oldest)
		}
	}
}

// isPast reports whether a time is so long ago that few further spans will start before it.
func (e *exporter) isPast(ns uint64) bool {
	return ns <= uint64(max(e.set.Env.Now().Add(-liveTime).UnixNano(), 0))
}

// cached returns the cached result of an aggregation, or nil and a function that caches its result.
// It caches facets that the server counts, unless spans of the window are likely to be stored soon.
func (a *aggregation) cached(ctx context.Context) (*tracestore.Aggregate, func(*tracestore.Aggregate)) {
	dontStore := func(*tracestore.Aggregate) {}
	e := a.store
	if a.facets == nil || a.heatmap != nil || a.groups != nil || a.picks != nil || !a.cond.Exact || a.mayBeSelected != a.selected ||
		a.selectedByWhole || !e.isPast(a.to) {
		return nil, dontStore
	}
	hours, more, err := e.hours(ctx, a.query.Tenant, a.from, a.to)
	if more || err != nil || !e.isSettled(&hours) {
		return nil, dontStore
	}
	key := fmt.Sprintf("facets %q %d %d %s | %s | %v %d %t %d", a.query.Tenant, a.from, a.to, a.cond.SQL, a.selected,
		a.want.Facets.Fields, a.want.Facets.Values, a.want.Facets.All, a.query.Budget.Spans)
	state, now := hours.state(), e.set.Env.Now()
	if found, ok := e.results.lookup(key, state, now).(*tracestore.Aggregate); ok {
		return withOwnFacets(found), dontStore
	}
	return nil, func(found *tracestore.Aggregate) {
		if found.Complete() && !a.facets.OutOfMemory() {
			found = withOwnFacets(found)
			size := ownTexts(found.Facets)
			e.results.store(key, cachedResult{state: state, until: now.Add(resultTime), size: size, value: found})
		}
	}
}

// withOwnFacets returns a copy of a result, whose lists may be sorted and cut.
func withOwnFacets(a *tracestore.Aggregate) *tracestore.Aggregate {
	out, facets := *a, *a.Facets
	facets.Facets = slices.Clone(facets.Facets)
	for i := range facets.Facets {
		facets.Facets[i].Values = slices.Clone(facets.Facets[i].Values)
	}
	out.Facets = &facets
	return &out
}

// ownTexts copies the texts of values, which are parts of the counter's memory. It returns the
// approximate size of the facets in bytes.
func ownTexts(f *tracestore.Facets) (bytes int) {
	const perFacet, perValue = 128, 56
	for i := range f.Facets {
		bytes += perFacet + len(f.Facets[i].Field.Key)
		for j := range f.Facets[i].Values {
			v := &f.Facets[i].Values[j]
			v.Text = strings.Clone(v.Text)
			bytes += perValue + len(v.Text)
		}
	}
	return bytes
}
