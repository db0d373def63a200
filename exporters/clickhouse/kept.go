package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// keptResults caches results of queries that read many spans, for queries with the same window. The
// zero value is ready to use. Safe for concurrent use.
type keptResults struct {
	mu      sync.Mutex
	results map[string]keptResult
	size    int
}

// keptResult is a result that does not change.
type keptResult struct {
	state uint64 // see callHours.state
	until time.Time
	size  int
	value any
}

const (
	// keptTime is how long a result is cached. Meanwhile, spans may expire.
	keptTime = 10 * time.Minute
	// maxKeptSize and maxKeptResult are the maximum sizes of all results and of one, in bytes.
	maxKeptSize, maxKeptResult = 16 << 20, 2 << 20
	// liveTime is the time before now in which spans are likely to start that are not stored yet.
	liveTime = 30 * time.Second
	// settledOnServer is like settled if there are no replicas.
	settledOnServer = 5 * time.Second
)

// find returns the result of a question if the spans are the same.
func (k *keptResults) find(question string, state uint64, now time.Time) any {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r, ok := k.results[question]; ok && r.state == state && now.Before(r.until) {
		return r.value
	}
	return nil
}

// keep adds a result. If all results are too large, it forgets the others.
func (k *keptResults) keep(question string, r keptResult) {
	if r.size += len(question); r.size > maxKeptResult {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.size += r.size - k.results[question].size
	if k.results == nil || k.size > maxKeptSize {
		k.results, k.size = make(map[string]keptResult), r.size
	}
	k.results[question] = r
}

// isSettled reports whether all servers have the spans of which the last was stored at a time.
func (e *exporter) isSettled(stored time.Time) bool {
	if e.cfg.Cluster.Name == "" && len(e.cfg.Endpoints) == 1 {
		return e.set.Env.Now().Sub(stored) >= settledOnServer
	}
	return e.set.Env.Now().Sub(stored) >= settled
}

// recall returns the cached result of an aggregation, or nil and a function that caches its result.
// It caches facets that the server counts, unless spans of the window are likely to be stored soon.
func (a *aggregation) recall(ctx context.Context) (*tracestore.Aggregate, func(*tracestore.Aggregate), error) {
	dontKeep := func(*tracestore.Aggregate) {}
	e, now := a.store, a.store.set.Env.Now()
	if a.facets == nil || a.heatmap != nil || a.groups != nil || a.picks != nil || !a.cond.Exact || a.mayBeSelected != a.selected ||
		a.selectedByWhole || a.to > uint64(max(now.Add(-liveTime).UnixNano(), 0)) {
		return nil, dontKeep, nil
	}
	c, more, err := e.hours(ctx, a.query.Tenant, a.from, a.to)
	switch {
	case shardMissing(err) || more:
		return nil, dontKeep, nil
	case err != nil:
		return nil, dontKeep, err
	}
	question := fmt.Sprintf("facets %q %d %d %s | %s | %v %d %t %d", a.query.Tenant, a.from, a.to, a.cond.SQL, a.selected,
		a.want.Facets.Fields, a.want.Facets.Values, a.want.Facets.All, a.query.Budget.Spans)
	state, stored := c.stateOf(c.hours)
	if kept, ok := e.kept.find(question, state, now).(*tracestore.Aggregate); ok {
		return withOwnFacets(kept), dontKeep, nil
	}
	return nil, func(found *tracestore.Aggregate) {
		if found.Complete() && !a.facets.OutOfMemory() && e.isSettled(stored) {
			kept := withOwnFacets(found)
			e.kept.keep(question, keptResult{state: state, until: now.Add(keptTime), size: sizeOf(kept.Facets), value: kept})
		}
	}, nil
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

// sizeOf returns the approximate size of facets in bytes.
func sizeOf(f *tracestore.Facets) (bytes int) {
	const perFacet, perValue = 128, 48
	for i := range f.Facets {
		bytes += perFacet + len(f.Facets[i].Field.Key)
		for _, v := range f.Facets[i].Values {
			bytes += perValue + len(v.Text)
		}
	}
	return bytes
}
