package find

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Traces implements tracestore.Reader. It sees what was stored when ranging began; hints are not needed. Where parts of a trace are damaged
// the others come first, and then an error.
func (f *Finder) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		s := f.store.Begin()
		defer s.Release()
		r := newTraceReader(s, tenant)
		for _, ref := range refs {
			for b, err := range r.pieces(ctx, ref.ID) {
				if !yield(tracestore.Trace{ID: ref.ID, Spans: b}, err) || err != nil {
					return
				}
			}
			if s.FirstDamage() != nil {
				yield(tracestore.Trace{ID: ref.ID}, fmt.Errorf("reading trace %s: %s: %w", ref.ID, s.DamageReason(), s.FirstDamage()))
				return
			}
		}
	}
}

// traceReader reads whole traces. Spans of all sources are encoded into an arena, put in order, freed of duplicates, and given out in
// pieces. When there are too many of them it keeps the earliest, and reads the others in another round.
type traceReader struct {
	session   *scan.Session
	tenant    string
	origins   []origin
	byTable   map[tableOrigin]int
	byContent map[string]int

	id              otlpdata.TraceID
	keys            map[spanKey]struct{} // the spans to read; nil: all
	from, before    spanKey              // bounds of the round
	bounded         bool                 // before is one
	limit           int                  // bytes of the arena above which it is cut
	list            *spanList            // that is written or given out
	own             spanList
	spare           []byte
	prefetched      prefetched
	prefetchedHeads prefetchedHeads

	head      rows.Head // of the row that is being read
	cells     []rows.Cell
	assembler rows.Assembler
}

// spanList is spans of one trace, encoded.
type spanList struct {
	spans []storedSpan
	arena []byte
}

func (l *spanList) reset() { l.spans, l.arena = l.spans[:0], l.arena[:0] }

// spanKey is a span's place in its trace. Duplicates have the same.
type spanKey struct {
	start uint64
	id    otlpdata.SpanID
}

func (k spanKey) compare(o spanKey) int {
	return cmp.Or(cmp.Compare(k.start, o.start), bytes.Compare(k.id[:], o.id[:]))
}

// storedSpan is an encoded span in the arena.
type storedSpan struct {
	key      spanKey
	origin   int
	root     bool
	debug    bool // it has the flag otlpdata.FlagDebug
	from, to int
}

// origin is a resource and a scope.
type origin struct {
	resource *otlpdata.Resource
	scope    *otlpdata.Scope
}

// tableOrigin is an origin by its numbers in the tables of a source.
type tableOrigin struct {
	src             int
	resource, scope uint32
}

func newTraceReader(s *scan.Session, tenant string) *traceReader {
	r := &traceReader{session: s, tenant: tenant, byTable: make(map[tableOrigin]int), byContent: make(map[string]int)}
	r.list = &r.own
	return r
}

// forgetOrigins lets go of resources and scopes, which keep the tables of their sources in memory.
func (r *traceReader) forgetOrigins() {
	r.origins = r.origins[:0]
	clear(r.byTable)
	clear(r.byContent)
}

// rounds is how many pieces fit into the arena before it is cut.
const arenaPieces = 4

// pieces ranges over a trace, which may come in several pieces of different spans. Damage is noted and does not end it.
func (r *traceReader) pieces(ctx context.Context, id otlpdata.TraceID) iter.Seq2[*otlpdata.Batch, error] {
	return func(yield func(*otlpdata.Batch, error) bool) {
		r.id, r.from = id, spanKey{}
		for {
			if err := r.readRound(ctx); err != nil {
				yield(nil, err)
				return
			}
			for rest := r.list.spans; len(rest) > 0; {
				n := r.pieceLength(rest)
				if !yield(r.batch(rest[:n]), nil) {
					return
				}
				rest = rest[n:]
			}
			if !r.bounded {
				return
			}
			r.from = r.before
		}
	}
}

// whole returns a trace as one batch. Behind more than most spans, if that is not 0, it may end.
func (r *traceReader) whole(ctx context.Context, id otlpdata.TraceID, most int) (*otlpdata.Batch, error) {
	r.keys = nil
	var all []*otlpdata.Batch
	spans := 0
	for b, err := range r.pieces(ctx, id) {
		if err != nil {
			return nil, err
		}
		all = append(all, b)
		if spans += b.Len(); most > 0 && spans > most {
			break
		}
	}
	if len(all) == 0 { // all of it is damaged
		return otlpdata.FromStored(nil, otlpdata.Meta{Tenant: r.tenant}), nil
	}
	return otlpdata.Concat(all...)
}

// round makes the list of the spans within the bounds, in order and without duplicates. A trace that was read ahead is one round.
func (r *traceReader) readRound(ctx context.Context) error {
	r.bounded = false
	if r.list = r.prefetched.take(r.id); r.list != nil && r.keys == nil && r.from == (spanKey{}) {
		r.sort()
		return nil
	}
	r.list = &r.own
	r.list.reset()
	r.limit = arenaPieces * r.session.Options.PieceBytes
	if r.prefetched.empty() {
		r.forgetOrigins()
	}
	err := r.eachPart(ctx, r.id, func(src int, t *rows.Tables, b source.Block, list []int32) error {
		for _, row := range list {
			err := r.add(src, t, b, int(row))
			if err != nil {
				err = r.session.NoteDamage(src, scan.TracePart(r.id), 1, err)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.sort()
	return nil
}

// eachPart calls f with the rows of a trace, by source and block. Damage of a whole source or block is noted.
func (r *traceReader) eachPart(
	ctx context.Context, id otlpdata.TraceID, f func(src int, t *rows.Tables, b source.Block, list []int32) error,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for src := range r.session.Sources {
		err := r.session.Decode(ctx, func() error {
			return r.session.Sources[src].Trace(ctx, r.tenant, id, func(b source.Block, list []int32) error {
				t, err := r.session.Sources[src].Tables()
				if err != nil {
					return err
				}
				return f(src, t, b, list)
			})
		})
		if err = r.session.NoteDamage(src, scan.TracePart(id), 0, err); err != nil {
			return err
		}
	}
	return nil
}

// add encodes the span of a row, if it is within the bounds.
func (r *traceReader) add(src int, t *rows.Tables, b source.Block, row int) error {
	var h rows.Head
	if err := b.Head(row, &h); err != nil {
		return err
	}
	key := spanKey{h.Start, h.SpanID}
	if key.compare(r.from) < 0 || r.bounded && key.compare(r.before) >= 0 {
		return nil
	}
	if _, wanted := r.keys[key]; r.keys != nil && !wanted {
		return nil
	}
	s, err := scan.Assemble(t, b, row, &h, &r.cells, &r.assembler)
	if err != nil {
		return err
	}
	l := r.list
	from := len(l.arena)
	l.arena = otlpdata.AppendSpan(l.arena, s)
	l.spans = append(l.spans, storedSpan{key, r.origin(src, t, &h), h.ParentID.IsZero(), s.NativeFlags()&otlpdata.FlagDebug != 0, from, len(l.arena)})
	if len(l.arena) > r.limit {
		r.cutArena()
	}
	return nil
}

// origin numbers resources and scopes by their content, which is what makes duplicates in different sources equal.
func (r *traceReader) origin(src int, t *rows.Tables, h *rows.Head) int {
	at := tableOrigin{src, h.Resource, t.Shapes[h.Shape].Scope}
	if i, ok := r.byTable[at]; ok {
		return i
	}
	o := origin{&t.Resources[at.resource].Resource, &t.Scopes[at.scope]}
	var content []byte
	for _, part := range []string{o.resource.SchemaURL, o.scope.SchemaURL, string(o.resource.Raw), string(o.scope.Raw)} {
		content = append(binary.AppendUvarint(content, uint64(len(part))), part...)
	}
	i, ok := r.byContent[string(content)]
	if !ok {
		i = len(r.origins)
		r.origins = append(r.origins, o)
		r.byContent[string(content)] = i
	}
	r.byTable[at] = i
	return i
}

// sort puts the spans in order and drops duplicates.
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

// cut makes room: it keeps the earliest spans, about half of what the arena may hold, and leaves the others to the next round. Spans of one
// key stay together, so that their duplicates are found.
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
	r.limit = max(r.limit, 2*size) // one key may have more than fits
}

// piece returns how many spans make the next piece.
func (r *traceReader) pieceLength(spans []storedSpan) int {
	size := 0
	for i := range spans {
		if size += spans[i].to - spans[i].from; size >= r.session.Options.PieceBytes {
			return i + 1
		}
	}
	return len(spans)
}

// batch makes a batch of spans, those of one origin together.
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

// headBytes is the number of bytes that a field needs at most besides its content.
const headBytes = 6
