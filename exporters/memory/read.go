package memory

import (
	"context"
	"iter"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Traces implements tracestore.Reader. It ignores hints, and spans that are stored while it runs.
func (e *exporter) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		snapshot := e.snapshot()
		for _, ref := range refs {
			for b, err := range e.batches(ctx, tenant, e.find(tenant, ref.ID, snapshot)) {
				if !yield(tracestore.Trace{ID: ref.ID, Spans: b}, err) || err != nil {
					return
				}
			}
		}
	}
}

// TraceSpans implements tracestore.Reader.
func (e *exporter) TraceSpans(_ context.Context, tenant string, id otlpdata.TraceID) (spans int, _ error) {
	for _, b := range e.find(tenant, id, e.snapshot()) {
		spans += len(b.rows)
	}
	return spans, nil
}

// snapshot returns the sequence number up to which rows are visible to a reader that starts now.
func (e *exporter) snapshot() uint64 {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.seq
}

func (e *exporter) find(tenant string, id otlpdata.TraceID, snapshot uint64) []block {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if t := e.tenants[tenant]; t != nil && t.traces[id] != nil {
		return visible(t.traces[id].blocks, snapshot)
	}
	return nil
}

// blocks returns the blocks of a trace up to a snapshot. The trace may already be evicted.
func (e *exporter) blocks(tr *trace, snapshot uint64) []block {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return visible(tr.blocks, snapshot)
}

func visible(blocks []block, snapshot uint64) []block {
	n := len(blocks)
	for n > 0 && blocks[n-1].rows[0].seq > snapshot {
		n--
	}
	return blocks[:n]
}

// pieceBytes is the size above which a trace is returned in several batches.
const pieceBytes = 4 << 20

// batches yields the spans of blocks of one trace in pieces. When ctx ends, it yields the error of
// ctx.
func (e *exporter) batches(ctx context.Context, tenant string, blocks []block) iter.Seq2[*otlpdata.Batch, error] {
	return func(yield func(*otlpdata.Batch, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(nil, err)
			return
		}
		p := newPiece()
		for _, b := range blocks {
			for i := range b.rows {
				if p.add(&b.rows[i]); p.size < pieceBytes {
					continue
				}
				if !yield(p.batch(tenant), nil) {
					return
				}
				if err := ctx.Err(); err != nil {
					yield(nil, err)
					return
				}
				p = newPiece()
			}
		}
		if p.size > 0 {
			yield(p.batch(tenant), nil)
		}
	}
}

// piece holds spans of a trace, grouped by origin.
type piece struct {
	shares []share
	index  map[*origin]int // of shares
	last   *share          // requests contain many consecutive spans of one origin
	size   int             // bytes, estimated
}

// share holds the spans of one origin in a piece.
type share struct {
	origin *origin
	spans  [][]byte
	count  otlpdata.ServiceCount
}

func newPiece() *piece { return &piece{index: make(map[*origin]int)} }

func (p *piece) add(r *row) {
	if p.last == nil || p.last.origin != r.origin {
		p.last = p.share(r.origin)
	}
	s := p.last
	s.spans = append(s.spans, r.raw)
	s.count.Add(r.root, r.debug)
	p.size += len(r.raw) + maxFieldHeader
}

// share returns the share of an origin, and creates it if necessary.
func (p *piece) share(o *origin) *share {
	i, ok := p.index[o]
	if !ok {
		i = len(p.shares)
		p.index[o] = i
		p.shares = append(p.shares, share{origin: o, count: otlpdata.ServiceCount{Service: o.service.name}})
		p.size += len(o.key) + 4*maxFieldHeader
	}
	return &p.shares[i]
}

// maxFieldHeader is the maximum number of bytes of a field besides its content.
const maxFieldHeader = 6

func (p *piece) batch(tenant string) *otlpdata.Batch {
	chunk := make([]byte, 0, p.size)
	counts := make([]otlpdata.ServiceCount, len(p.shares))
	for i := range p.shares {
		s := &p.shares[i]
		chunk = otlpdata.AppendResourceSpans(chunk, &s.origin.resource, &s.origin.scope, s.spans...)
		counts[i] = s.count
	}
	return otlpdata.FromStored(chunk, otlpdata.Meta{Tenant: tenant}, counts...)
}
