package graph

import (
	"context"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// scanRows counts the calls of the spans of a source that start within a window. Damage is
// recorded.
func (c *callReader) scanRows(ctx context.Context, src int, w scan.Window) error {
	part, err := c.callScan(src, w)
	if err != nil || part == nil {
		return err
	}
	if part.clusters == nil {
		err = part.countPooled(ctx, maxPooled)
	} else {
		err = part.countClustered(ctx)
	}
	if err != nil {
		return err
	}
	return part.countWholeTraces(ctx)
}

// callScan reads the rows of one source.
type callScan struct {
	session   *scan.Session
	reader    *callReader
	src       int
	tables    *rows.Tables
	blocks    []source.BlockInfo
	clusters  source.Clusters // nil: the source may have duplicates, and the rows of a trace are in any order
	window    scan.Window
	cutTraces map[otlpdata.TraceID]struct{} // traces to be read one by one

	content scan.ContentReader
}

// callScan returns a callScan, or nil if the vocabulary of the source is damaged.
func (c *callReader) callScan(src int, w scan.Window) (*callScan, error) {
	t, err := c.session.Tables(src)
	if err != nil || t == nil {
		return nil, err
	}
	blocks, err := c.session.Blocks(src)
	if err != nil {
		return nil, err
	}
	return &callScan{session: c.session, reader: c, src: src, tables: t, blocks: blocks, window: w,
		clusters: source.ClustersOf(c.session.Sources[src]), cutTraces: make(map[otlpdata.TraceID]struct{})}, nil
}

// flushIfMany resolves the collected spans if there are many.
func (c *callReader) flushIfMany(ctx context.Context) error {
	if c.peers != nil {
		return c.peers.resolveIfMany(ctx)
	}
	return c.resolveIfMany(ctx)
}

// callSpan reads the fields of a row that calls need. It returns false for spans of other tenants.
func (c *callReader) callSpan(t *rows.Tables, b source.Block, row int, h *rows.Head, s *storequery.CallSpan) (bool, error) {
	if err := b.Head(row, h); err != nil {
		return false, err
	}
	if ours, err := c.belongsToTenant(t, h.Shape); !ours {
		return false, err
	}
	shape := &t.Shapes[h.Shape]
	*s = storequery.CallSpan{ID: h.SpanID, Parent: h.ParentID, Start: h.Start, Duration: h.Duration(), Service: shape.Service,
		Kind: shape.Kind, Connection: c.connection(t, h.Shape), Failed: shape.Status == otlpdata.StatusError}
	if c.peers == nil {
		return true, nil
	}
	peer, err := c.peers.names.peerOf(b, row, h.Shape)
	s.Peer = c.peers.names.names[peer]
	return err == nil, err
}

// belongsToTenant reports whether the spans of a shape belong to the tenant. It returns an error if
// the shape is lost.
func (c *callReader) belongsToTenant(t *rows.Tables, id uint32) (bool, error) {
	if int(id) >= len(t.Shapes) {
		return false, scan.ErrReference
	}
	shape := &t.Shapes[id]
	if shape.Service == "" { // every shape has a service
		return false, scan.ErrReference
	}
	return shape.Tenant == c.tenant, nil
}

// countClustered counts the calls of a source. In each of its blocks, the rows of a trace are
// adjacent.
func (c *callScan) countClustered(ctx context.Context) error {
	for i := range c.blocks {
		if !c.window.Touches(&c.blocks[i]) {
			continue
		}
		err := c.session.OpenBlock(ctx, c.src, i, c.block)
		if err = c.session.NoteDamage(c.src, scan.BlockPart(i), c.blocks[i].Rows, err); err != nil {
			return err
		}
		if err := c.reader.flushIfMany(ctx); err != nil {
			return err
		}
	}
	return nil
}

// block counts the calls in a block, trace by trace. Traces that are in several blocks are left to
// countWholeTraces.
func (c *callScan) block(b source.Block) error {
	starts, err := b.Starts()
	if err != nil || !slices.ContainsFunc(starts, c.window.Contains) {
		return err
	}
	var h rows.Head
	var s storequery.CallSpan
	var id otlpdata.TraceID
	begun, within := false, false // a trace; one of its spans starts within the window
	first := true                 // trace of the block
	c.reader.spans = c.reader.spans[:0]
	end := func(last bool) {
		if within && (first || last) && c.isCut(id) {
			c.cutTraces[id] = struct{}{}
		} else if within {
			c.reader.countTrace(c.src, id, c.window, c.reader.spans)
		}
		c.reader.spans, within, first = c.reader.spans[:0], false, false
	}
	for row := range starts {
		ours, err := c.reader.callSpan(c.tables, b, row, &h, &s)
		if err != nil {
			return err
		}
		if !ours {
			continue
		}
		if begun && h.TraceID != id {
			end(false)
		}
		begun, id = true, h.TraceID
		c.reader.spans = append(c.reader.spans, s)
		within = within || c.window.Contains(s.Start)
	}
	end(true)
	return nil
}

// isCut reports whether a trace is in several blocks. Only the first and the last trace of a block
// can be.
func (c *callScan) isCut(id otlpdata.TraceID) bool {
	blocks, err := c.clusters.TraceBlocks(c.reader.tenant, []otlpdata.TraceID{id})
	return err != nil || len(blocks) > 1
}

// countTrace counts the calls among a trace's spans in one source. Spans without their parent are
// added to unresolved.
func (c *callReader) countTrace(src int, id otlpdata.TraceID, w scan.Window, spans []storequery.CallSpan) {
	if c.peers != nil {
		c.peers.count(id, w, spans)
		return
	}
	c.parents.Index(spans)
	c.countTaken(src, id, w)
}

// countTaken is like countTrace, for spans that c.parents has indexed.
func (c *callReader) countTaken(src int, id otlpdata.TraceID, w scan.Window) {
	c.parents.Each(func(span, parent *storequery.CallSpan) {
		switch {
		case !w.Contains(span.Start):
		case parent != nil:
			c.addCall(parent, span)
		case !span.Parent.IsZero():
			c.unresolved = append(c.unresolved, unresolvedSpan{trace: id, src: src, child: *span})
		}
	})
}

// countWholeTraces counts the calls of the traces in cutTraces.
func (c *callScan) countWholeTraces(ctx context.Context) error {
	ids := make([]otlpdata.TraceID, 0, len(c.cutTraces))
	for id := range c.cutTraces {
		ids = append(ids, id)
	}
	for some := range slices.Chunk(ids, scan.TracesPerDecode) {
		err := c.session.Decode(ctx, func() error {
			for _, id := range some {
				if err := c.countWholeTrace(ctx, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := c.reader.flushIfMany(ctx); err != nil {
			return err
		}
	}
	return nil
}

// wholeTraceMemory is the approximate size in bytes of a span of a trace that is read as a whole,
// with its share of the index for parent lookups.
const wholeTraceMemory = 160

func (c *callScan) countWholeTrace(ctx context.Context, id otlpdata.TraceID) error {
	c.reader.spans = c.reader.spans[:0]
	reserved := int64(0)
	defer func() { _ = c.session.Memory.Grow(-reserved) }() // cannot fail
	err := c.reader.eachSpan(ctx, c.src, c.tables, id, func(_ source.Block, _ int, _ *rows.Head, s *storequery.CallSpan) error {
		if err := c.session.Memory.Grow(wholeTraceMemory); err != nil {
			return err
		}
		reserved += wholeTraceMemory
		c.reader.spans = append(c.reader.spans, *s)
		return nil
	})
	if err == nil {
		err = c.dropDuplicates(ctx, id)
	}
	if err != nil {
		return err
	}
	c.reader.countTrace(c.src, id, c.window, c.reader.spans)
	return nil
}

// eachSpan calls f with the rows of a trace in a source. Damage is recorded even if f returns it.
// The caller runs it within Session.Decode.
func (c *callReader) eachSpan(ctx context.Context, src int, t *rows.Tables, id otlpdata.TraceID,
	f func(b source.Block, row int, h *rows.Head, s *storequery.CallSpan) error,
) error {
	var h rows.Head
	var s storequery.CallSpan
	err := c.session.Sources[src].Trace(ctx, c.tenant, id, func(b source.Block, list []int32) error {
		for _, row := range list {
			ours, err := c.callSpan(t, b, int(row), &h, &s)
			if err == nil && ours {
				err = f(b, int(row), &h, &s)
			}
			if err == nil {
				continue
			}
			if err = c.session.NoteDamage(src, scan.TracePart(id), 1, err); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		return nil
	}
	return c.session.NoteDamage(src, scan.TracePart(id), 0, err)
}

// callKey is equal for duplicates.
type callKey struct {
	start uint64
	id    otlpdata.SpanID
}

// dropDuplicates keeps one span of each group of duplicates in spans. Spans with the same key are
// compared by their content, because they may differ in fields that calls do not need.
func (c *callScan) dropDuplicates(ctx context.Context, id otlpdata.TraceID) error {
	if c.clusters != nil {
		return nil
	}
	seen := make(map[callKey]bool) // true: several spans have the key
	several := false
	for i := range c.reader.spans {
		key := callKey{c.reader.spans[i].Start, c.reader.spans[i].ID}
		_, again := seen[key]
		seen[key] = again
		several = several || again
	}
	if !several {
		return nil
	}
	c.reader.spans = slices.DeleteFunc(c.reader.spans, func(s storequery.CallSpan) bool { return seen[callKey{s.Start, s.ID}] })
	contents := make(map[string]struct{})
	return c.reader.eachSpan(ctx, c.src, c.tables, id, func(b source.Block, row int, h *rows.Head, s *storequery.CallSpan) error {
		if !seen[callKey{s.Start, s.ID}] {
			return nil
		}
		content, err := c.content.Read(c.tables, b, row, h)
		if err != nil {
			return err
		}
		if _, again := contents[string(content)]; !again {
			contents[string(content)] = struct{}{}
			c.reader.spans = append(c.reader.spans, *s)
		}
		return nil
	})
}
