package memory

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Dependencies implements tracestore.Dependencies. It counts every duplicate once, and what was stored before it was called, also of
// traces that are evicted meanwhile.
func (e *exporter) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	c := callReader{store: e, tenant: tenant, snapshot: e.snapshot()}
	var ok bool
	if c.from, c.to, ok = (tracestore.Query{From: from, To: to}).Window(); !ok {
		return tracestore.Graph{Complete: true}, ctx.Err()
	}
	traces, err := c.traces(ctx)
	if err != nil {
		return tracestore.Graph{}, err
	}
	for tr := range traces {
		if err := ctx.Err(); err != nil {
			return tracestore.Graph{}, err
		}
		if err := c.count(tr); err != nil {
			return tracestore.Graph{}, err
		}
	}
	return tracestore.Graph{Edges: c.calls.Edges(), Complete: true}, nil
}

// callReader counts the calls within a window.
type callReader struct {
	store    *exporter
	tenant   string
	snapshot uint64
	from, to uint64
	reader   otlpdata.SpanReader
	parents  tracestore.Parents
	calls    tracestore.CallCounter
	spans    []tracestore.CallSpan // of the trace at hand
}

// traces returns the traces with a span within the window. It takes some rows at a time, and the lock only for that.
func (c *callReader) traces(ctx context.Context) (map[*trace]struct{}, error) {
	found := make(map[*trace]struct{})
	end := position{c.to, otlpdata.TraceID(maxID()), math.MaxUint64}
	rows := make([]*row, 0, mostRows)
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
		if len(rows) < mostRows {
			return found, nil
		}
	}
}

// before returns the newest rows before a position.
func (c *callReader) before(end position, dst []*row) []*row {
	c.store.mu.RLock()
	defer c.store.mu.RUnlock()
	if t := c.store.tenants[c.tenant]; t != nil {
		return t.all.below(end, dst, mostRows)
	}
	return dst
}

// count counts the calls of a trace.
func (c *callReader) count(tr *trace) error {
	c.spans = c.spans[:0]
	for _, b := range c.store.blocks(tr, c.snapshot) {
		for i := range b.rows {
			r := &b.rows[i]
			s, err := c.reader.Read(r.raw)
			if err != nil {
				return fmt.Errorf("reading a stored span: %w", err)
			}
			c.spans = append(c.spans, tracestore.CallSpanOf(tracestore.Span{Resource: &r.origin.resource, Scope: &r.origin.scope, Span: s}))
		}
	}
	c.parents.Take(c.spans)
	c.parents.Each(func(span, parent *tracestore.CallSpan) {
		if parent != nil && span.Start >= c.from && span.Start <= c.to {
			c.calls.Call(parent, span)
		}
	})
	return nil
}
