package aggregate

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// countCache caches the counts of queries for ranges of blocks of segments, which do not change. If
// a query is repeated, even with another window, only blocks at both ends of the window, new
// segments and memtables are read. It is safe for concurrent use.
type countCache struct {
	limit int64

	mu     sync.Mutex
	counts map[rangeKey]*rangeCounts
	memory int64
	uses   int64 // number of queries
}

func newCountCache(limit int64) countCache {
	return countCache{limit: limit, counts: make(map[rangeKey]*rangeCounts)}
}

// rangeKey identifies a range of blocks and what is counted there. first may be wholeSegment, or
// fromSeries for a whole segment that is counted from statistics. fewHints has no counts; see
// excludeByHints.
type rangeKey struct {
	source        source.Source
	first, blocks int
	step          int // blockSample.blockStep
	question      string
}

const wholeSegment, fromSeries, fewHints = -1, -2, -3

// rangeCounts is what a query counted for a rangeKey. It does not change.
type rangeCounts struct {
	facets struct {
		total  total
		codes  []byte // of facetSource.append; none of a whole segment, which has texts
		values string // of storequery.FacetCounter.Append
	}
	groups  groupCounts
	rest    total
	picks   []tracestore.Exemplar // of storequery.ExemplarPicker.Retained
	ids     []tracestore.Field    // fields that have ids; see facetField
	lastUse int64                 // guarded by countCache.mu
}

// groupCounts is what a groupTotal has counted.
type groupCounts struct {
	total  total
	values string // of storequery.GroupCounter.Append
}

// countUse is the use of the cache by one query.
type countUse struct {
	cache    *countCache
	number   int64
	previous int64 // number of the previous query with the same question, or 0
	question string
}

// begin returns the use of the cache by a query, or nil if the query cannot use it: heatmaps take
// little time, and parts depend on the window, except parts of a step. Exemplars are cached if
// nothing else is requested. Otherwise, which blocks they come from depends on the window.
func (c *countCache) begin(a *aggregation) *countUse {
	t := &a.targets
	if (t.rest != nil) != (t.picks != nil) || t.heat != nil || a.want.Groups.Parts > 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	here := make(map[source.Source]bool, len(a.session.Sources))
	for _, src := range a.session.Sources {
		if _, ok := src.(source.Statistics); ok {
			here[src] = true
		}
	}
	c.uses++
	use := &countUse{cache: c, number: c.uses, question: a.question()}
	for key, counts := range c.counts {
		if !here[key.source] {
			c.remove(key)
		} else if key.question == use.question {
			use.previous = max(use.previous, counts.lastUse)
		}
	}
	return use
}

// find returns the counts of a range of blocks, or nil.
func (u *countUse) find(key rangeKey) *rangeCounts {
	u.cache.mu.Lock()
	defer u.cache.mu.Unlock()
	found := u.cache.counts[key]
	if found != nil {
		found.lastUse = u.number
	}
	return found
}

// maxCountShare is the part of the cache, 1/maxCountShare, that one range may take.
const maxCountShare = 2

// keep adds counts. If memory is short, it evicts counts that only earlier queries used, except
// those that the previous query with the same question used: this query may need them next. When
// the sum of a segment is kept, its ranges may be evicted. If that is not enough, keep does not add
// the new counts.
func (u *countUse) keep(key rangeKey, counts *rangeCounts) {
	c := u.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts[key] != nil || counts.memory() > c.limit/maxCountShare {
		return
	}
	if key.first == wholeSegment {
		for k, v := range c.counts {
			if k.source == key.source && k.question == key.question {
				v.lastUse = min(v.lastUse, u.previous-1)
			}
		}
	}
	counts.lastUse = u.number
	c.counts[key] = counts
	for c.memory += counts.memory(); c.memory > c.limit; {
		oldest := key
		for k, v := range c.counts {
			needed := k.question == u.question && v.lastUse >= u.previous
			if !needed && v.lastUse < c.counts[oldest].lastUse {
				oldest = k
			}
		}
		c.remove(oldest)
	}
}

// forget removes all counts with the question of the query.
func (u *countUse) forget() {
	u.cache.mu.Lock()
	defer u.cache.mu.Unlock()
	for key := range u.cache.counts {
		if key.question == u.question {
			u.cache.remove(key)
		}
	}
}

func (c *countCache) remove(key rangeKey) {
	c.memory -= c.counts[key].memory()
	delete(c.counts, key)
}

// memory returns the approximate size in bytes.
func (r *rangeCounts) memory() int64 {
	const own = 1 << 10
	size := own + len(r.facets.codes) + len(r.facets.values) + len(r.groups.values)
	for i := range r.picks {
		size += int(unsafe.Sizeof(r.picks[i])) + len(r.picks[i].Service) + len(r.picks[i].Name)
	}
	return int64(size)
}

// question returns a text that is the same for queries that count the same, perhaps in different
// windows.
func (a *aggregation) question() string {
	f := &a.want.Facets
	key := appendExpr(fmt.Appendf(nil, "%q %d %d %t", a.query.Tenant, a.want.Exemplars, f.Values, f.All), a.query.Where)
	g := &a.want.Groups
	key = appendFields(appendFields(key, f.Fields), g.By)
	if g.Requested() {
		key = appendFields(fmt.Appendf(key, "%d %d %t", g.Step, g.Measure, g.Adjusted), []tracestore.Field{g.Of})
	}
	if a.selection != nil {
		key = appendExpr(fmt.Append(key, a.selection.starts), f.Selection.Where)
	}
	return string(key)
}

// appendFields appends fields, which have no [tracestore.Field.Names] here: package aggregates
// requests each name alone.
func appendFields(dst []byte, fields []tracestore.Field) []byte {
	for _, f := range fields {
		dst = fmt.Appendf(dst, " %d %q", f.Place, f.Key)
	}
	return append(dst, ';')
}

// appendExpr appends a condition as returned by [tracestore.WithContext], without names.
func appendExpr(dst []byte, e tracestore.Expr) []byte {
	switch e := e.(type) {
	case tracestore.And:
		return appendParts(dst, '&', e)
	case tracestore.Or:
		return appendParts(dst, '|', e)
	case tracestore.Not:
		return appendParts(dst, '!', []tracestore.Expr{e.Expr})
	case tracestore.Cond:
		v := &e.Value
		return fmt.Appendf(dst, " %d %q %d %q %t %v %d %q", e.Field.Place, e.Field.Key, e.Op, v.Text, v.IsNumber, v.Number, v.Kind,
			fmt.Sprint(v.Regexp))
	}
	return append(dst, '*')
}

func appendParts(dst []byte, kind byte, parts []tracestore.Expr) []byte {
	dst = append(dst, kind, '(')
	for _, part := range parts {
		dst = appendExpr(dst, part)
	}
	return append(dst, ')')
}
