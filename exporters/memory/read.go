package memory

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// decoder decodes single rows. Not for concurrent use.
type decoder struct {
	segment []byte
	visit   func(*otlpdata.Span)
}

// read calls visit with the row's span, which is valid during the call only.
func (d *decoder) read(r *row, visit func(*otlpdata.Span)) error {
	d.segment = otlpdata.AppendResourceSpans(d.segment[:0], &otlpdata.Resource{}, &otlpdata.Scope{}, r.raw)
	d.visit = visit
	return otlpdata.Walk(d.segment, d)
}

// Resource, Scope and Span are the visitor of read.
func (d *decoder) Resource(*otlpdata.Resource) error { return nil }

func (d *decoder) Scope(*otlpdata.Scope) error { return nil }

func (d *decoder) Span(s *otlpdata.Span) error {
	d.visit(s)
	return nil
}

// Traces implements tracestore.Reader. Hints are not needed. What is stored while it runs is not seen.
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

// snapshot returns the number up to which rows are visible to a reader that begins now.
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

// blocks returns what was stored of a trace up to a snapshot. The trace may be evicted already.
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

// pieceBytes is the size above which a trace is given back in several batches.
const pieceBytes = 4 << 20

// batches ranges over the spans of blocks of one trace, in pieces.
func (e *exporter) batches(ctx context.Context, tenant string, blocks []block) iter.Seq2[*otlpdata.Batch, error] {
	return func(yield func(*otlpdata.Batch, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(nil, err)
			return
		}
		var rows []*row
		size := 0
		for _, b := range blocks {
			for i := range b.rows {
				rows, size = append(rows, &b.rows[i]), size+len(b.rows[i].raw)
				if size < pieceBytes {
					continue
				}
				if b, err := encode(tenant, rows); !yield(b, err) || err != nil {
					return
				}
				rows, size = rows[:0], 0
			}
		}
		if len(rows) > 0 {
			yield(encode(tenant, rows))
		}
	}
}

// encode makes a batch of rows, those of one origin together.
func encode(tenant string, rows []*row) (*otlpdata.Batch, error) {
	var origins []*origin
	spans := make(map[*origin][][]byte)
	size := 0
	for _, r := range rows {
		if spans[r.origin] == nil {
			origins = append(origins, r.origin)
			size += len(r.origin.key) + 32
		}
		spans[r.origin] = append(spans[r.origin], r.raw)
		size += len(r.raw) + 8
	}
	segment := make([]byte, 0, size)
	for _, o := range origins {
		segment = otlpdata.AppendResourceSpans(segment, &o.resource, &o.scope, spans[o]...)
	}
	unlimited := otlpdata.Limits{Bytes: math.MaxInt, Spans: math.MaxInt, Depth: math.MaxInt}
	b, err := otlpdata.FromOTLP(segment, otlpdata.Meta{Tenant: tenant}, unlimited)
	if err != nil {
		return nil, fmt.Errorf("reading stored spans: %w", err)
	}
	return b, nil
}
