package find

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// sort sorts the spans and drops duplicates.
func (r *traceReader) sort() {
	l := r.list
	raw := func(s *storedSpan) []byte { return l.arena[s.from:s.to] }
	order := func(a, b storedSpan) int {
		if c := a.key.compare(b.key); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.origin, b.origin), bytes.Compare(raw(&a), raw(&b)))
	}
	if !slices.IsSortedFunc(l.spans, order) {
		slices.SortFunc(l.spans, order)
	}
	l.spans = slices.CompactFunc(l.spans, func(a, b storedSpan) bool { return order(a, b) == 0 })
}

// cutArena keeps the earliest spans, up to about half of the limit, and leaves the others for the
// next round. Spans with the same key stay together, so that their duplicates are found.
func (r *traceReader) cutArena() {
	r.sort()
	l := r.list
	n, size := 0, 0
	for ; n < len(l.spans); n++ {
		s := &l.spans[n]
		if size > r.limit/2 && s.key != l.spans[n-1].key {
			r.before, r.bounded = s.key, true
			break
		}
		size += s.to - s.from
	}
	l.spans = l.spans[:n]
	kept := r.spare[:0]
	for i := range l.spans {
		s := &l.spans[i]
		from := len(kept)
		kept = append(kept, l.arena[s.from:s.to]...)
		s.from, s.to = from, len(kept)
	}
	l.arena, r.spare = kept, l.arena
	r.limit = max(r.limit, 2*size) // the spans of one key may not fit
}

// pieceLength returns the number of spans in the next piece.
func (r *traceReader) pieceLength(spans []storedSpan) int {
	size := 0
	for i := range spans {
		if size += spans[i].to - spans[i].from; size >= r.session.Options.PieceBytes {
			return i + 1
		}
	}
	return len(spans)
}

// batch returns a batch of spans, grouped by origin.
func (r *traceReader) batch(spans []storedSpan) *otlpdata.Batch {
	type share struct {
		spans [][]byte
		count otlpdata.ServiceCount
	}
	shares := make(map[int]*share)
	var order []int
	size := 0
	for i := range spans {
		s := &spans[i]
		sh := shares[s.origin]
		if sh == nil {
			o := r.origins[s.origin]
			sh = &share{count: otlpdata.ServiceCount{Service: o.resource.Service}}
			shares[s.origin] = sh
			order = append(order, s.origin)
			size += len(o.resource.Raw) + len(o.scope.Raw) + len(o.resource.SchemaURL) + len(o.scope.SchemaURL) + 6*headBytes
		}
		sh.spans = append(sh.spans, r.list.arena[s.from:s.to])
		sh.count.Add(s.root, s.debug)
		size += s.to - s.from + headBytes
	}
	segment := make([]byte, 0, size)
	counts := make([]otlpdata.ServiceCount, len(order))
	for i, o := range order {
		segment = otlpdata.AppendResourceSpans(segment, r.origins[o].resource, r.origins[o].scope, shares[o].spans...)
		counts[i] = shares[o].count
	}
	return otlpdata.FromStored(segment, otlpdata.Meta{Tenant: r.tenant}, counts...)
}

// headBytes is the maximum size of a field in bytes, not counting its content.
const headBytes = 6
