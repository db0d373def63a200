package graph

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	// resolveBatch is the approximate number of unresolved spans that are collected before their
	// parents are searched.
	resolveBatch = 1 << 16
	// maxFarLookups is the maximum number of traces that one query looks up in sources without
	// spans of about the same time. That many lookups take a few seconds. If they do not suffice,
	// the result says so.
	maxFarLookups = 1 << 23
	// nearMinutes defines "about the same time": at most this number of minutes before the first or
	// after the last span of a source.
	nearMinutes = 1
)

// unresolvedSpan is a span whose parent is not in its source.
type unresolvedSpan struct {
	trace    otlpdata.TraceID
	src      int
	child    storequery.CallSpan // from statistics it has no id, and the minute as its start
	resolved bool

	statsIndex       int   // index in the statistics, for the edge cache
	searchedSegments bool  // no source with statistics has the parent
	traceAt          int32 // index in parentResolver.byTrace
	parent           int32 // index in parentResolver.parents
}

// parentResolver searches for the parents of the unresolved spans of a callReader.
type parentResolver struct {
	reader       *callReader
	byTime       []timeIndex
	shouldSearch func(o *unresolvedSpan, src int) bool            // whether to search a source
	onResolved   func(o *unresolvedSpan, parent *parentCandidate) // called for each span whose parent was found
	ids          []otlpdata.TraceID                               // to look up in the current source
	traceIndex   map[otlpdata.TraceID]int32                       // indexes in byTrace
	byTrace      []traceParents
	parents      []otlpdata.SpanID   // of each trace in order, without duplicates
	candidates   [][]parentCandidate // by parent: the spans with its id
}

// timeIndex is the minute of an unresolved span in the upper half and its index in the lower half.
type timeIndex uint64

func timeIndexOf(minute uint64, at int) timeIndex { return timeIndex(minute<<32 | uint64(at)) }

func (t timeIndex) minute() uint64 { return uint64(t >> 32) }
func (t timeIndex) index() uint32  { return uint32(t) }

// traceParents are the parents of the unresolved spans of a trace.
type traceParents struct {
	from, to   int32 // range in parents
	searchedIn int32 // 1 + the last source in which the trace was looked up
}

// parentCandidate is a span with the id of a parent.
type parentCandidate struct {
	src  int
	span storequery.CallSpan
}

// resolveIfMany calls resolveParents if there are many unresolved spans.
func (c *callReader) resolveIfMany(ctx context.Context) error {
	if len(c.unresolved) < resolveBatch {
		return nil
	}
	return c.resolveParents(ctx)
}

// resolveParents counts the calls of the unresolved spans whose parents it finds, and then forgets
// all unresolved spans. Most parents are in a source with spans of about the same time, because a
// flush has cut the trace. For other parents it searches all sources.
func (c *callReader) resolveParents(ctx context.Context) error {
	if len(c.unresolved) == 0 {
		return nil
	}
	r := c.newParentResolver()
	r.shouldSearch = func(o *unresolvedSpan, src int) bool {
		_, statistics := c.session.Sources[src].(source.Statistics)
		return !o.searchedSegments || !statistics
	}
	r.onResolved = func(o *unresolvedSpan, parent *parentCandidate) { c.addCall(&parent.span, &o.child) }
	_, err := r.run(ctx)
	return err
}

func (c *callReader) newParentResolver() *parentResolver {
	return &parentResolver{reader: c, traceIndex: make(map[otlpdata.TraceID]int32)}
}

// index groups the spans by trace and parent, and sorts them by time. Because the spans are large,
// it sorts keys.
func (r *parentResolver) index() {
	type key struct {
		trace uint64 // the first half of its id
		at    uint32
	}
	keys := make([]key, len(r.reader.unresolved))
	r.byTime = make([]timeIndex, len(r.reader.unresolved))
	for i := range r.reader.unresolved {
		o := &r.reader.unresolved[i]
		keys[i] = key{binary.BigEndian.Uint64(o.trace[:]), uint32(i)}
		r.byTime[i] = timeIndexOf(stats.MinuteOf(o.child.Start), i)
	}
	slices.Sort(r.byTime)
	slices.SortFunc(keys, func(x, y key) int {
		if x.trace != y.trace {
			return cmp.Compare(x.trace, y.trace)
		}
		o, p := &r.reader.unresolved[x.at], &r.reader.unresolved[y.at]
		return cmp.Or(bytes.Compare(o.trace[:], p.trace[:]), bytes.Compare(o.child.Parent[:], p.child.Parent[:]))
	})
	var before *unresolvedSpan
	for i := range keys {
		o := &r.reader.unresolved[keys[i].at]
		fresh := before == nil || o.trace != before.trace
		if fresh {
			r.traceIndex[o.trace] = int32(len(r.byTrace))
			r.byTrace = append(r.byTrace, traceParents{from: int32(len(r.parents))})
		}
		o.traceAt = int32(len(r.byTrace) - 1)
		if fresh || o.child.Parent != before.child.Parent {
			r.parents = append(r.parents, o.child.Parent)
			r.byTrace[o.traceAt].to = int32(len(r.parents))
		}
		o.parent = int32(len(r.parents) - 1)
		before = o
	}
	r.candidates = make([][]parentCandidate, len(r.parents))
}

// fewParents is the maximum number of parents of a trace that are compared one by one.
const fewParents = 8

// parentIndex returns the index of a span in parents, or -1.
func (r *parentResolver) parentIndex(f *traceParents, id otlpdata.SpanID) int {
	parents := r.parents[f.from:f.to]
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

// run searches for the parents of all unresolved spans, and forgets the spans. It returns false if
// the limit stopped it.
func (r *parentResolver) run(ctx context.Context) (all bool, _ error) {
	r.index()
	for src := range r.reader.session.Sources {
		from, to := r.nearbySpans(src)
		if err := r.searchSource(ctx, src, r.byTime[from:to]); err != nil {
			return false, err
		}
	}
	if err := r.assign(ctx); err != nil {
		return false, err
	}
	all = true
	for src := range r.reader.session.Sources {
		if all = r.reader.farLookups < maxFarLookups; !all {
			break
		}
		from, to := r.nearbySpans(src)
		if err := r.searchSource(ctx, src, r.byTime[:from], r.byTime[to:]); err != nil {
			return false, err
		}
		r.reader.farLookups += len(r.ids)
	}
	if err := r.assign(ctx); err != nil {
		return false, err
	}
	for i := range r.reader.unresolved {
		if !all && !r.reader.unresolved[i].resolved {
			r.reader.abandoned++
		}
	}
	r.reader.unresolved = r.reader.unresolved[:0]
	return all, nil
}

// assign calls onResolved for spans whose parent was found.
func (r *parentResolver) assign(ctx context.Context) error {
	for i := range r.reader.unresolved {
		o := &r.reader.unresolved[i]
		if o.resolved {
			continue
		}
		list := r.candidates[o.parent]
		if slices.ContainsFunc(list, o.maybeSameSpan) {
			own, err := r.isOwnParent(ctx, o)
			if err != nil {
				return err
			}
			if own {
				list = slices.DeleteFunc(slices.Clone(list), o.maybeSameSpan)
			}
		}
		if parent := o.chooseParent(list); parent != nil {
			r.onResolved(o, parent)
			o.resolved = true
		}
	}
	return nil
}

// chooseParent returns the parent by the rules of tracestore.Edges: a span of the same
// service, or else of the kind server or consumer, or else any; the earliest of these.
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

// maybeSameSpan reports whether a candidate may be a copy of the span, in case the span is its own
// parent.
func (o *unresolvedSpan) maybeSameSpan(k parentCandidate) bool {
	s := &k.span
	return k.src != o.src && s.ID == s.Parent && s.Service == o.child.Service && s.Duration == o.child.Duration &&
		s.Failed == o.child.Failed && stats.MinuteOf(s.Start) == stats.MinuteOf(o.child.Start)
}

// isOwnParent reports whether the span is its own parent. Its source then has no other span with
// that id.
func (r *parentResolver) isOwnParent(ctx context.Context, o *unresolvedSpan) (is bool, _ error) {
	t, err := r.reader.session.Tables(o.src)
	if err != nil || t == nil {
		return false, err
	}
	err = r.reader.session.Decode(ctx, func() error {
		return r.reader.eachSpan(ctx, o.src, t, o.trace, func(_ source.Block, _ int, _ *rows.Head, s *storequery.CallSpan) error {
			is = is || s.ID == o.child.Parent
			return nil
		})
	})
	return is, err
}
