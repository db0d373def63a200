package memory

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Dependencies implements tracestore.Edges. It counts duplicates once. It ignores spans that
// are stored after the call, and includes traces that are evicted while it runs.
func (e *exporter) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	c := callReader{store: e, tenant: tenant, snapshot: e.snapshot(), convert: storequery.CallSpanOf}
	var calls storequery.CallCounter
	var parents storequery.ParentFinder
	err := c.run(ctx, from, to, func(spans []storequery.CallSpan) {
		parents.Index(spans)
		parents.Each(func(span, parent *storequery.CallSpan) {
			if parent != nil && c.has(span) {
				calls.AddCall(parent, span)
			}
		})
	})
	if err != nil {
		return tracestore.Graph{}, err
	}
	return tracestore.Graph{Edges: calls.Edges()}, nil
}

// Peers implements tracestore.Edges. It counts like Dependencies.
func (e *exporter) Peers(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	c := callReader{store: e, tenant: tenant, snapshot: e.snapshot(), convert: storequery.CallSpanOf}
	var calls storequery.PeerCounter
	var finder storequery.PeerCallFinder
	err := c.run(ctx, from, to, func(spans []storequery.CallSpan) {
		finder.Each(spans, func(at int) {
			if s := &spans[at]; c.has(s) {
				calls.AddPeer(s)
			}
		})
	})
	if err != nil {
		return tracestore.Graph{}, err
	}
	return calls.Graph(), nil
}

// Edges implements tracestore.Edges. It counts like Dependencies.
func (e *exporter) Edges(ctx context.Context, tenant string, q tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
	c := callReader{store: e, tenant: tenant, snapshot: e.snapshot(), convert: storequery.EdgeSpanOf}
	counter := storequery.NewEdgeCounter(&q)
	var finder storequery.EdgeFinder
	err := c.run(ctx, q.From, q.To, func(spans []storequery.CallSpan) { finder.Count(spans, c.has, counter) })
	if err != nil {
		return tracestore.EdgeGraph{}, err
	}
	return counter.Graph(), nil
}

// callReader reads the traces with a span within a window.
type callReader struct {
	store    *exporter
	tenant   string
	snapshot uint64
	convert  func(tracestore.Span) storequery.CallSpan
	from, to uint64
	reader   otlpdata.SpanReader
	spans    []storequery.CallSpan // of the current trace
}

// has reports whether a span starts within the window.
func (c *callReader) has(s *storequery.CallSpan) bool { return s.Start >= c.from && s.Start <= c.to }

// run calls visit with all spans of each trace.
func (c *callReader) run(ctx context.Context, from, to time.Time, visit func([]storequery.CallSpan)) error {
	var ok bool
	if c.from, c.to, ok = (tracestore.Query{From: from, To: to}).Window(); !ok {
		return ctx.Err()
	}
	traces, err := c.traces(ctx)
	if err != nil {
		return err
	}
	for tr := range traces {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.read(tr); err != nil {
			return err
		}
		visit(c.spans)
	}
	return nil
}

// traces returns the traces with a span within the window. It takes a limited number of rows at a
// time and holds the lock only for that.
func (c *callReader) traces(ctx context.Context) (map[*trace]struct{}, error) {
	found := make(map[*trace]struct{})
	end := position{c.to, otlpdata.TraceID(maxID()), math.MaxUint64}
	rows := make([]*row, 0, maxRows)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows = c.before(end, rows[:0])
		for _, r := range rows {
			if r.start < c.from {
				return found, nil
			}
			if r.seq <= c.snapshot {
				found[r.trace] = struct{}{}
			}
			end = r.position()
		}
		if len(rows) < maxRows {
			return found, nil
		}
	}
}

// before returns the newest rows before a position.
func (c *callReader) before(end position, dst []*row) []*row {
	c.store.mu.RLock()
	defer c.store.mu.RUnlock()
	if t := c.store.tenants[c.tenant]; t != nil {
		return t.all.below(end, dst, maxRows)
	}
	return dst
}

// read sets spans to the spans of a trace.
func (c *callReader) read(tr *trace) error {
	c.spans = c.spans[:0]
	for _, b := range c.store.blocks(tr, c.snapshot) {
		for i := range b.rows {
			r := &b.rows[i]
			s, err := c.reader.Read(r.raw)
			if err != nil {
				return fmt.Errorf("parsing stored span: %w", err)
			}
			c.spans = append(c.spans, c.convert(tracestore.Span{Resource: &r.origin.resource, Scope: &r.origin.scope, Span: s}))
		}
	}
	return nil
}
