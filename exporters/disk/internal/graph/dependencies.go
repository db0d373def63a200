package graph

import (
	"context"
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Builder builds the graphs of calls between services and to peers. It is safe for concurrent use.
type Builder struct {
	store  *scan.Store
	caches edgeCaches
}

var _ tracestore.Edges = (*Builder)(nil)

// New returns a Builder for a store.
func New(s *scan.Store) *Builder { return &Builder{store: s, caches: newEdgeCaches()} }

// Dependencies implements tracestore.Edges.
//
//	segment   │ rows │     edges of whole minutes     │ rows │
//	          ▲      ╰─────── unresolved spans ───────╯      ▲
//	         from                                           to
//	memtable  │                     rows                     │
//
// Each source finds the parents of its own spans, and counts its spans without their duplicates.
// For parents that it does not have, other sources are searched, see resolveParents. A span that is
// in several sources, because it was resent after a flush, is counted in each.
//
// The results for whole minutes of segments are kept in the edge cache.
func (b *Builder) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	first, last, ok := tracestore.Query{From: from, To: to}.Window()
	if !ok || ctx.Err() != nil {
		return tracestore.Graph{}, ctx.Err()
	}
	c := &callReader{caches: &b.caches, tenant: tenant, from: first, to: last}
	reasons, err := b.readCalls(ctx, c)
	if err != nil {
		return tracestore.Graph{}, err
	}
	return tracestore.Graph{Edges: c.calls.Edges(), Reasons: reasons}, nil
}

// readCalls counts calls. It returns the reasons if some are missing.
func (b *Builder) readCalls(ctx context.Context, c *callReader) (reasons tracestore.Reasons, _ error) {
	c.session = b.store.BeginQuery(ctx)
	defer c.session.Release()
	if err := c.session.Memory.Grow(batchMemory); err != nil {
		return nil, err
	}
	reasons, err := outOfMemory(c.run(ctx))
	return append(reasons, c.reasons()...), err
}

// batchMemory is the approximate size in bytes of the unresolved spans, or uncertain calls, that
// are collected before they are resolved.
const batchMemory = 12 << 20

// outOfMemory returns a reason for a partial result if a running query could not get more memory,
// and any other error unchanged.
func outOfMemory(err error) (tracestore.Reasons, error) {
	if tracestore.IsOutOfMemory(err) {
		return tracestore.Because(tracestore.ReasonLimit, "not all calls were counted: "+err.Error()), nil
	}
	return nil, err
}

// callReader counts the calls of a tenant within a window.
type callReader struct {
	session     *scan.Session
	caches      *edgeCaches // nil: peers are counted
	tenant      string
	from, to    uint64
	peers       *peerReader             // counts calls to peers; nil: calls between services are counted
	edges       *storequery.EdgeCounter // counts instead of calls, if calls are measured
	connections shapeConnections
	calls       storequery.CallCounter
	parents     storequery.ParentFinder
	spans       []storequery.CallSpan // scratch
	unresolved  []unresolvedSpan
	farLookups  int // see maxFarLookups
	abandoned   int // number of spans whose parents were not searched in all sources
}

func (c *callReader) reasons() tracestore.Reasons {
	reasons := c.session.DamageReasons()
	if c.abandoned > 0 {
		reasons = append(reasons, tracestore.Reason{Kind: tracestore.ReasonLimit,
			Text: fmt.Sprintf("callers of %d spans not searched in all segments; narrow the time range", c.abandoned)})
	}
	return reasons
}

// sourceShare is the part of a source within the window.
type sourceShare struct {
	src    int
	split  scan.Split
	entire bool // all rows of the source are in its whole minutes
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

// shareOf returns false if a source has no rows within the window.
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

// count counts the calls of a share without the edge cache.
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
			if c.edges != nil {
				c.addMeasured(edges, &p)
				continue
			}
			c.calls.AddEdge(&tracestore.Edge{Parent: e.Parent, Child: e.Child, Messaging: e.Kind&stats.Messaging != 0,
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

// unresolvedOf converts a span without a parent of the statistics of a source.
func unresolvedOf(o *stats.Orphan, src int) unresolvedSpan {
	child := storequery.CallSpan{Parent: o.ParentID, Start: o.Minute * scan.Minute, Duration: o.Duration, Service: o.Service, Failed: o.Failed}
	child.Connection = o.Kind.Connection()
	switch {
	case o.Kind&stats.Consumer != 0:
		child.Kind = otlpdata.KindConsumer
	case o.Kind&stats.Server != 0:
		child.Kind = otlpdata.KindServer
	}
	return unresolvedSpan{trace: o.TraceID, src: src, child: child}
}
