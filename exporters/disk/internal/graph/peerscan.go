package graph

import (
	"context"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// parentBlock is a block that finds the parents among its rows faster than Head does.
type parentBlock interface {
	idBlock
	// Parents returns the row of the parent of each row: the first row with the parent's id, or a
	// negative number if the trace has none in this block.
	Parents() ([]int32, error)
	// SpanIDs returns the ids of all rows, concatenated.
	SpanIDs() ([]byte, error)
}

var _ parentBlock = (*block.Block)(nil)

// scanPeers counts the calls to peers of the spans of a source that start within a window. Damage
// is recorded.
func (p *peerReader) scanPeers(ctx context.Context, src int, w scan.Window) error {
	part, err := p.reader.callScan(src, w)
	if err != nil || part == nil {
		return err
	}
	p.names.enter(p.session.Sources[src], part.tables)
	if part.clusters == nil {
		err = part.countPooled(ctx, maxPooled)
	} else {
		err = (&peerScan{session: p.session, peers: p, scan: part}).run(ctx)
	}
	if err != nil {
		return err
	}
	return part.countWholeTraces(ctx)
}

// peerScan reads the rows of one source. In each of its blocks, the rows of a trace are adjacent.
type peerScan struct {
	session     *scan.Session
	peers       *peerReader
	scan        *callScan
	blockShapes []source.BlockShape // scratch
	callers     []int32             // scratch: rows of a trace that start within the window and may call a peer
	answered    []bool              // scratch, by row of a trace: another row has it as its parent

	// Of the open block.
	block        parentBlock
	traces       []block.Trace
	shapes       []uint32
	parents      []int32
	starts, ends []uint64
	ids          []byte
}

func (c *peerScan) run(ctx context.Context) error {
	for i := range c.scan.blocks {
		if !c.scan.window.Touches(&c.scan.blocks[i]) || !c.concerns(i) {
			continue
		}
		err := c.session.OpenBlock(ctx, c.scan.src, i, c.scanBlock)
		if err = c.session.NoteDamage(c.scan.src, scan.BlockPart(i), c.scan.blocks[i].Rows, err); err != nil {
			return err
		}
		if err := c.scan.reader.flushIfMany(ctx); err != nil {
			return err
		}
	}
	return nil
}

// concerns reports whether a block may have rows that call a peer.
func (c *peerScan) concerns(block int) bool {
	var known bool
	c.blockShapes, known = c.session.Sources[c.scan.src].BlockShapes(c.blockShapes[:0], block)
	return !known || slices.ContainsFunc(c.blockShapes, func(s source.BlockShape) bool { return c.peers.names.mayCallPeer(s.Shape) })
}

// scanBlock counts the calls in a block, trace by trace. Traces that are in several blocks are left
// to countWholeTraces.
func (c *peerScan) scanBlock(b source.Block) error {
	parents, ok := b.(parentBlock)
	if !ok {
		return c.scan.block(b)
	}
	if err := c.use(parents); err != nil {
		return err
	}
	for i := range c.traces {
		t := &c.traces[i]
		err := c.findCallers(t)
		switch {
		case err != nil:
			return err
		case len(c.callers) == 0:
		case (i == 0 || i == len(c.traces)-1) && c.scan.isCut(t.ID):
			c.scan.cutTraces[t.ID] = struct{}{}
		case t.Rows > maxScannedRows:
			err = c.countLarge(t)
		default:
			err = c.countSmall(t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// use reads the fields of a block that determine which rows call a peer.
func (c *peerScan) use(b parentBlock) (err error) {
	c.block, c.parents, c.ends = b, nil, nil
	if c.traces, err = b.Traces(); err != nil {
		return err
	}
	if c.shapes, err = b.Shapes(); err != nil {
		return err
	}
	c.starts, err = b.Starts()
	return err
}

// findCallers sets callers to the rows of a trace that may call a peer, including answered ones.
func (c *peerScan) findCallers(t *block.Trace) error {
	c.callers = c.callers[:0]
	for row := t.First; row < t.First+t.Rows; row++ {
		if !c.peers.names.mayCallPeer(c.shapes[row]) || !c.scan.window.Contains(c.starts[row]) {
			continue
		}
		ours, err := c.scan.reader.belongsToTenant(c.scan.tables, c.shapes[row])
		if err != nil || !ours { // all rows of a trace belong to one tenant
			return err
		}
		c.callers = append(c.callers, row)
	}
	return nil
}

// maxScannedRows is the maximum number of rows of a trace whose ids are compared one by one.
const maxScannedRows = 64

// countLarge counts the calls of a trace of many rows.
func (c *peerScan) countLarge(t *block.Trace) error {
	c.scan.reader.spans = c.scan.reader.spans[:0]
	var h rows.Head
	var s storequery.CallSpan
	for row := t.First; row < t.First+t.Rows; row++ {
		if _, err := c.scan.reader.callSpan(c.scan.tables, c.block, int(row), &h, &s); err != nil {
			return err
		}
		c.scan.reader.spans = append(c.scan.reader.spans, s)
	}
	c.peers.count(t.ID, c.scan.window, c.scan.reader.spans)
	return nil
}

// countSmall counts the calls of a trace of few rows.
func (c *peerScan) countSmall(t *block.Trace) (err error) {
	if c.parents == nil {
		if c.parents, err = c.block.Parents(); err != nil {
			return err
		}
		if c.ends, err = c.block.Ends(); err != nil {
			return err
		}
		if c.ids, err = c.block.SpanIDs(); err != nil {
			return err
		}
	}
	c.answered = append(c.answered[:0], make([]bool, t.Rows)...)
	for _, parent := range c.parents[t.First : t.First+t.Rows] {
		if parent >= 0 {
			c.answered[parent-t.First] = true
		}
	}
	for _, row := range c.callers {
		if c.answered[row-t.First] {
			continue
		}
		if err := c.countRow(t, row); err != nil {
			return err
		}
	}
	return nil
}

// countRow counts a row that is not a parent, if it calls a peer and no row with the same id is its
// counterpart.
func (c *peerScan) countRow(t *block.Trace, row int32) error {
	id := c.id(row)
	for other := t.First; other < t.First+t.Rows; other++ {
		if c.id(other) == id && (c.answered[other-t.First] || isServer(c.scan.tables, c.shapes[other])) {
			return nil
		}
	}
	peer, err := c.peers.names.peerOf(c.block, int(row), c.shapes[row])
	if err != nil || peer == 0 {
		return err
	}
	shape := &c.scan.tables.Shapes[c.shapes[row]]
	h := rows.Head{Start: c.starts[row], End: c.ends[row]}
	c.peers.add(t.ID, &storequery.CallSpan{ID: id, Start: h.Start, Duration: h.Duration(), Service: shape.Service,
		Peer: c.peers.names.names[peer], Kind: shape.Kind, Connection: c.scan.reader.connection(c.scan.tables, c.shapes[row]),
		Failed: shape.Status == otlpdata.StatusError})
	return nil
}

func (c *peerScan) id(row int32) otlpdata.SpanID { return otlpdata.SpanID(c.ids[8*row:]) }

// isServer reports whether rows of a shape are of the kind server or consumer.
func isServer(t *rows.Tables, shape uint32) bool {
	kind := t.Shapes[shape].Kind
	return kind == otlpdata.KindServer || kind == otlpdata.KindConsumer
}
