package search

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
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
func (e *Engine) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	first, last, ok := tracestore.Query{From: from, To: to}.Window()
	if !ok || ctx.Err() != nil {
		return tracestore.Graph{Complete: true}, ctx.Err()
	}
	s := e.begin()
	defer s.lease.release()
	c := &callReader{session: s, tenant: tenant, from: first, to: last}
	for src := range s.sources {
		if err := c.source(ctx, src); err != nil {
			return tracestore.Graph{}, err
		}
	}
	if err := c.adopt(ctx); err != nil {
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
	calls    tracestore.CallCounter
	parents  tracestore.Parents
	spans    []tracestore.CallSpan // of the trace at hand
	orphans  []orphan
	searched int // see maxSearched
	given    int // orphans whose parent was not looked for everywhere
}

func (c *callReader) reason() string {
	reason := c.damage.reason()
	if c.given == 0 {
		return reason
	}
	if reason != "" {
		reason += "; "
	}
	return reason + fmt.Sprintf("the parents of %d spans were not looked for everywhere; narrow the time range", c.given)
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

// source counts the calls of the spans in a source.
func (c *callReader) source(ctx context.Context, src int) error {
	rows, oldest, newest := c.sources[src].Bounds()
	if rows == 0 || newest < c.from || oldest > c.to {
		return nil
	}
	all := bounds{max(c.from, oldest), min(c.to, newest)}
	statistics, ok := c.sources[src].(source.Statistics)
	if !ok {
		return c.scan(ctx, src, window{all})
	}
	// A minute is whole if the source has no span of it outside of the window.
	first, last := stats.MinuteOf(all.from), stats.MinuteOf(all.to)
	if c.from > oldest && c.from%minute != 0 {
		first++
	}
	if c.to < newest && (c.to+1)%minute != 0 {
		last-- // there is one before, or first is behind it
	}
	if first > last || last > stats.MinuteOf(all.to) {
		return c.scan(ctx, src, window{all})
	}
	used, err := c.addStatistics(ctx, src, statistics, first, last)
	if err != nil {
		return err
	}
	if !used {
		return c.scan(ctx, src, window{all})
	}
	var rest window
	if begin := first * minute; all.from < begin {
		rest = append(rest, bounds{all.from, begin - 1})
	}
	if last < stats.MinuteOf(all.to) {
		rest = append(rest, bounds{(last + 1) * minute, all.to})
	}
	if len(rest) == 0 {
		return nil
	}
	return c.scan(ctx, src, rest)
}

// addStatistics adds what a source knows of whole minutes, and notes their orphans. It is false where that cannot be used: where it is
// damaged, which costs no spans, or not all spans had room in it.
func (c *callReader) addStatistics(ctx context.Context, src int, s source.Statistics, first, last uint64) (used bool, _ error) {
	var edges *stats.EdgeStats
	var orphans *stats.OrphanStats
	err := c.decode(ctx, func() (err error) {
		if edges, err = s.Edges(); err == nil {
			orphans, err = s.Orphans()
		}
		return err
	})
	if d := (*source.DamageError)(nil); errors.As(err, &d) {
		c.engine.options.OnDamage(d)
		return false, nil
	}
	if err != nil || edges.Dropped > 0 || orphans.Dropped > 0 {
		return false, err
	}
	c.addEdges(edges, first, last)
	return true, c.addOrphans(ctx, src, orphans, first, last)
}

func (c *callReader) addEdges(edges *stats.EdgeStats, first, last uint64) {
	for p := range edges.Points(first, last) {
		if e := &edges.Edges[p.Edge]; e.Tenant == c.tenant {
			c.calls.Add(&tracestore.Edge{Parent: e.Parent, Child: e.Child, Messaging: e.Kind == stats.Messaging,
				Calls: p.Calls, Errors: p.Errors, Duration: p.Sum})
		}
	}
}

func (c *callReader) addOrphans(ctx context.Context, src int, orphans *stats.OrphanStats, first, last uint64) error {
	for o := range orphans.Orphans(first, last) {
		if o.Tenant != c.tenant {
			continue
		}
		child := tracestore.CallSpan{Parent: o.ParentID, Start: o.Minute * minute, Duration: o.Duration, Service: o.Service, Failed: o.Failed}
		if o.Kind == stats.Messaging {
			child.Kind = otlpdata.KindConsumer // as far as it matters
		}
		c.orphans = append(c.orphans, orphan{trace: o.TraceID, src: src, child: child})
		if err := c.adoptMany(ctx); err != nil {
			return err
		}
	}
	return nil
}
