package graph

import (
	"context"
	"encoding/binary"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// maxPooled is the approximate number of rows of a memtable in a callPool, which then takes about
// 16 MiB. A memtable with more rows is read several times, each time for a part of its traces.
const maxPooled = 1 << 18

// callPool groups rows by trace, wherever they are in the source.
//
//	index   trace id → group
//	groups  trace id, whether a span starts within the window, first row ─╮
//	rows    fields of a row that calls need, next row of the trace  ◀─────╯
type callPool struct {
	index  map[otlpdata.TraceID]int32
	groups []callGroup
	rows   []pooledRow
}

// pooledMemory is the approximate size in bytes of a row in the pool, with its share of the groups
// and the index.
const pooledMemory = 96

type callGroup struct {
	id     otlpdata.TraceID
	within bool
	first  int32 // 1 + index in rows
}

type pooledRow struct {
	id, parent      otlpdata.SpanID
	start, duration uint64
	shape, peer     uint32 // peer: number of its name; 0: none, or not needed
	next            int32  // 1 + index of the next row of the trace; 0: none
}

func (p *callPool) reset() {
	clear(p.index)
	p.groups, p.rows = p.groups[:0], p.rows[:0]
}

func (p *callPool) add(h *rows.Head, within bool, peer uint32) {
	i, ok := p.index[h.TraceID]
	if !ok {
		i = int32(len(p.groups))
		p.index[h.TraceID] = i
		p.groups = append(p.groups, callGroup{id: h.TraceID})
	}
	g := &p.groups[i]
	p.rows = append(p.rows, pooledRow{h.SpanID, h.ParentID, h.Start, h.Duration(), h.Shape, peer, g.first})
	g.first, g.within = int32(len(p.rows)), g.within || within
}

// countPooled counts the calls of a source whose rows are in any order. It reads about most rows
// per pass.
func (c *callScan) countPooled(ctx context.Context, most int) error {
	n, _, _ := c.session.Sources[c.src].Bounds()
	memory := int64(min(n, most)) * pooledMemory
	if err := c.session.Memory.Grow(memory); err != nil {
		return err
	}
	defer func() { _ = c.session.Memory.Grow(-memory) }() // cannot fail
	shares := uint64(n/most + 1)
	pool := &callPool{index: make(map[otlpdata.TraceID]int32), rows: make([]pooledRow, 0, min(n, most))}
	for share := range shares {
		pool.reset()
		for i := range c.blocks {
			err := c.session.OpenBlock(ctx, c.src, i, func(b source.Block) error {
				return c.fill(pool, b, func(id *otlpdata.TraceID) bool { return binary.LittleEndian.Uint64(id[8:])%shares == share })
			})
			if err != nil {
				if err = c.session.NoteDamage(c.src, scan.BlockPart(i), c.blocks[i].Rows, err); err != nil {
					return err
				}
			}
		}
		if err := c.countPool(ctx, pool); err != nil {
			return err
		}
	}
	return nil
}

// fill adds the rows of the wanted traces.
func (c *callScan) fill(p *callPool, b source.Block, wanted func(*otlpdata.TraceID) bool) error {
	var h rows.Head
	for row := range b.Len() {
		err := b.Head(row, &h)
		if err == nil && wanted(&h.TraceID) {
			err = c.fillRow(p, b, row, &h)
		}
		if err == nil {
			continue
		}
		if err = c.session.NoteDamage(c.src, scan.TracePart(h.TraceID), 1, err); err != nil {
			return err
		}
	}
	return nil
}

func (c *callScan) fillRow(p *callPool, b source.Block, row int, h *rows.Head) error {
	ours, err := c.reader.belongsToTenant(c.tables, h.Shape)
	if !ours {
		return err
	}
	within, peer := c.window.Contains(h.Start), uint32(0)
	if within && c.reader.peers != nil {
		peer, err = c.reader.peers.names.peerOf(b, row, h.Shape)
	}
	p.add(h, within, peer)
	return err
}

// countPool counts the calls of the traces in the pool. Traces with spans that share an id may have
// duplicates and are left to countWholeTraces.
func (c *callScan) countPool(ctx context.Context, p *callPool) error {
	for i := range p.groups {
		g := &p.groups[i]
		if !g.within {
			continue
		}
		c.reader.spans = c.reader.spans[:0]
		for at := g.first; at > 0; at = p.rows[at-1].next {
			r := &p.rows[at-1]
			shape := &c.tables.Shapes[r.shape]
			c.reader.spans = append(c.reader.spans, storequery.CallSpan{ID: r.id, Parent: r.parent, Start: r.start, Duration: r.duration,
				Service: shape.Service, Kind: shape.Kind, Connection: c.reader.connection(c.tables, r.shape),
				Failed: shape.Status == otlpdata.StatusError})
			if r.peer > 0 {
				c.reader.spans[len(c.reader.spans)-1].Peer = c.reader.peers.names.names[r.peer]
			}
		}
		if c.reader.parents.Index(c.reader.spans) {
			c.cutTraces[g.id] = struct{}{}
			continue
		}
		if c.reader.peers != nil {
			c.reader.peers.count(g.id, c.window, c.reader.spans)
		} else {
			c.reader.countTaken(c.src, g.id, c.window)
		}
		if err := c.reader.flushIfMany(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}
