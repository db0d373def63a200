package memtable

import (
	"cmp"
	"context"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

var _ source.TraceParts = (*snapshot)(nil)

// TraceParts implements source.TraceParts. It cannot fail.
func (s *snapshot) TraceParts() (source.PartReader, error) {
	return &partReader{s: s, traces: s.table.traces.maximum(s.rows)}, nil
}

// maximum returns an upper bound for the number of traces with the given number of rows.
func (t *traces) maximum(rows int) int {
	if p := t.slots.Load(); p != nil {
		return min(rows, len(*p))
	}
	return 0
}

// maxParts is the approximate maximum number of parts that a partReader holds in memory. For more
// traces it reads all rows several times.
const maxParts = 64 << 10

// partReader finds the parts of traces by reading the heads of all rows.
type partReader struct {
	s      *snapshot
	traces int    // maximum number
	read   uint64 // hashes below it were read
	list   []source.TracePart
	rest   []source.TracePart // those of list that were not returned
	open   []openPart
	byHash map[uint64]int32 // index in open
}

// openPart is a part while its rows are read.
type openPart struct {
	hash, start, end uint64
	trace            otlpdata.TraceID
	tenant           string
	unbounded        bool
	root             source.RootFinder
}

// Parts implements source.PartReader.
func (r *partReader) Parts() int { return r.traces }

// Before implements source.PartReader.
func (r *partReader) Before(ctx context.Context, dst []source.TracePart, limit uint64) ([]source.TracePart, error) {
	const end = 1 << source.TraceHashBits
	for {
		for len(r.rest) > 0 && r.rest[0].Hash < limit {
			dst, r.rest = append(dst, r.rest[0]), r.rest[1:]
		}
		if len(r.rest) > 0 || r.read >= min(limit, end) {
			return dst, nil
		}
		to := min(end, r.read+end/uint64(r.traces/maxParts+1)+1)
		if err := r.readHeads(ctx, to); err != nil {
			return dst, err
		}
		r.read = to
	}
}

// readHeads sets rest to the parts whose hash is between read and to.
func (r *partReader) readHeads(ctx context.Context, to uint64) error {
	r.open = r.open[:0]
	if r.byHash == nil {
		r.byHash = make(map[uint64]int32)
	}
	clear(r.byHash)
	var h, last rows.Head // rows of a trace often follow each other
	hash, hashed := uint64(0), false
	for row := range r.s.rows {
		if row%r.s.size == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := rows.ReadHead(r.s.row(row), &h); err != nil {
			return err
		}
		if int(h.Resource) >= len(r.s.tables.Resources) {
			continue // unreadable, because its definitions were lost
		}
		if !hashed || h.TraceID != last.TraceID || h.Resource != last.Resource {
			hashed = true
			hash = source.TraceHash(r.s.tables.Resources[h.Resource].Tenant, h.TraceID)
		}
		if last = h; hash >= r.read && hash < to {
			r.add(hash, r.s.tables.Resources[h.Resource].Tenant, &h)
		}
	}
	r.close()
	return nil
}

// add adds a row to its part.
func (r *partReader) add(hash uint64, tenant string, h *rows.Head) {
	i, ok := r.byHash[hash]
	if !ok {
		i = int32(len(r.open))
		r.byHash[hash] = i
		r.open = append(r.open, openPart{hash: hash, start: h.Start, trace: h.TraceID, tenant: tenant})
	}
	p := &r.open[i]
	end := h.Start + h.Duration()
	if h.Start == 0 || end < h.Start { // without a start time, or beyond the range of times
		p.unbounded = true
	}
	if h.TraceID != p.trace || tenant != p.tenant { // two traces with the same hash
		p.unbounded = true
	}
	p.start, p.end = min(p.start, h.Start), max(p.end, end)
	p.root.Add(h.Shape, h.Start, h.SpanID, h.ParentID, nil)
}

// close sets rest to the parts that were read.
func (r *partReader) close() {
	r.list = r.list[:0]
	for i := range r.open {
		p := &r.open[i]
		part := source.TracePart{Hash: p.hash, Block: source.AnyBlock}
		if !p.unbounded {
			part.Base, part.Duration, part.Bounds = p.start, source.StepOf(p.end-p.start), source.Exact
			part.Root = p.root.Root()
		}
		r.list = append(r.list, part)
	}
	slices.SortFunc(r.list, func(a, b source.TracePart) int { return cmp.Compare(a.Hash, b.Hash) })
	r.rest = r.list
}
