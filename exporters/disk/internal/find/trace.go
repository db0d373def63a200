package find

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"iter"
	"slices"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Traces implements tracestore.Reader. It returns all spans that were stored when the iteration
// began, and ignores the time hints of refs.
func (f *Finder) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		s := f.store.BeginQuery(ctx)
		defer s.Release()
		r := newTraceReader(s, tenant)
		for some := range slices.Chunk(refs, maxPrefetch) {
			if err := r.prefetchRefs(ctx, some); err != nil {
				yield(tracestore.Trace{}, err)
				return
			}
			for _, ref := range some {
				for b, err := range r.pieces(ctx, ref.ID) {
					if !yield(tracestore.Trace{ID: ref.ID, Spans: b}, err) || err != nil {
						return
					}
				}
			}
		}
		if err := s.Damaged(); err != nil {
			yield(tracestore.Trace{}, err)
		}
	}
}

// traceReader reads whole traces. It encodes the spans of all sources into an arena, sorts them,
// drops duplicates, and returns them in pieces. If they do not fit into the arena, it keeps the
// earliest and reads the others in another round.
type traceReader struct {
	session   *scan.Session
	tenant    string
	order     []int // see sources
	origins   []origin
	byTable   map[tableOrigin]int
	byContent map[string]int

	id              otlpdata.TraceID
	keys            map[spanKey]struct{} // the spans to read; nil: all
	from, before    spanKey              // bounds of the round
	bounded         bool                 // before is set
	limit           int                  // size of the arena in bytes at which it is cut
	list            *spanList            // the list in use: own, or the list of a prefetched trace
	own             spanList
	spare           []byte
	prefetched      prefetched
	prefetchedHeads prefetchedHeads
	buffered        int64 // bytes reserved in session.Memory for buffers

	extras   *extrasReader // nil: not needed
	selector *selector     // nil: all spans

	head      rows.Head // scratch
	cells     []rows.Cell
	assembler rows.Assembler
}

// spanList is a list of encoded spans of one trace.
type spanList struct {
	spans []storedSpan
	arena []byte
}

// memory returns the size of the list in bytes.
func (l *spanList) memory() int64 {
	return int64(cap(l.arena)) + int64(cap(l.spans))*int64(unsafe.Sizeof(storedSpan{}))
}

func (l *spanList) reset() { l.spans, l.arena = l.spans[:0], l.arena[:0] }

// spanKey is the position of a span in its trace. Duplicates have the same key.
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
	debug    bool // has the flag otlpdata.FlagDebug
	from, to int
}

// origin is a resource and a scope.
type origin struct {
	resource *otlpdata.Resource
	scope    *otlpdata.Scope
}

// tableOrigin is an origin by its numbers in the vocabulary of a source.
type tableOrigin struct {
	src             int
	resource, scope uint32
}

func newTraceReader(s *scan.Session, tenant string) *traceReader {
	r := &traceReader{session: s, tenant: tenant, byTable: make(map[tableOrigin]int), byContent: make(map[string]int)}
	r.list = &r.own
	return r
}

// sources returns the numbers of the sources, the ones with the oldest spans first, so that a long
// trace is read in order of time.
func (r *traceReader) sources() []int {
	if r.order != nil {
		return r.order
	}
	all := r.session.Sources
	r.order = make([]int, len(all))
	oldest := make([]uint64, len(all))
	for src := range all {
		r.order[src] = src
		_, oldest[src], _ = all[src].Bounds()
	}
	slices.SortStableFunc(r.order, func(a, b int) int { return cmp.Compare(oldest[a], oldest[b]) })
	return r.order
}

// forgetOrigins drops resources and scopes, which keep the vocabularies of their sources in memory.
func (r *traceReader) forgetOrigins() {
	r.origins = r.origins[:0]
	clear(r.byTable)
	clear(r.byContent)
}

// arenaPieces is the size of the arena in pieces.
const arenaPieces = 4

// pieces returns a trace in one or more pieces. Damage is recorded; the readable parts are
// returned.
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

// whole returns a trace as one batch. If maxSpans is not 0, it may stop after that many spans. The
// memory of the batch is reserved until whole returns; then it belongs to the caller.
func (r *traceReader) whole(ctx context.Context, id otlpdata.TraceID, maxSpans int) (*otlpdata.Batch, error) {
	r.keys = nil
	var all []*otlpdata.Batch
	spans, size := 0, int64(0)
	defer func() { _ = r.session.Memory.Grow(-size) }() // cannot fail
	for b, err := range r.pieces(ctx, id) {
		if err == nil {
			err = r.session.Memory.Grow(int64(b.Size()))
		}
		if err != nil {
			return nil, err
		}
		size += int64(b.Size())
		all = append(all, b)
		if spans += b.Len(); maxSpans > 0 && spans > maxSpans {
			break
		}
	}
	if len(all) == 0 { // the whole trace is damaged
		return otlpdata.FromStored(nil, otlpdata.Meta{Tenant: r.tenant}), nil
	}
	return otlpdata.Concat(all...)
}

// readRound fills the list with the spans within the bounds, sorted and without duplicates. A
// prefetched trace takes one round.
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
	err := r.eachPartIn(ctx, r.id, r.mayHold, func(src int, t *rows.Tables, b source.Block, list []int32) error {
		for _, row := range list {
			err := r.add(src, t, b, int(row))
			if err != nil {
				err = r.session.NoteDamage(src, scan.TracePart(r.id), 1, err)
			}
			if err != nil {
				return err
			}
		}
		return r.reserveBuffers()
	})
	if err != nil {
		return err
	}
	r.sort()
	return nil
}

// reserveBuffers reserves memory for the current size of the buffers. A block makes them grow by a
// few MiB at most, so it is called after each block.
func (r *traceReader) reserveBuffers() error {
	size := r.own.memory() + int64(cap(r.spare))
	for i := range r.prefetched.ids {
		size += r.prefetched.lists[i].memory()
	}
	err := r.session.Memory.Grow(size - r.buffered)
	if err == nil {
		r.buffered = size
	}
	return err
}

// eachPart calls f with the rows of a trace in each block. Damage to whole sources or blocks is
// recorded.
func (r *traceReader) eachPart(
	ctx context.Context, id otlpdata.TraceID, f func(src int, t *rows.Tables, b source.Block, list []int32) error,
) error {
	return r.eachPartIn(ctx, id, func(int, int) bool { return true }, f)
}

// eachPartIn is like eachPart for the blocks that enter selects. Sources that cannot select blocks
// ignore it.
func (r *traceReader) eachPartIn(
	ctx context.Context, id otlpdata.TraceID, enter func(src, block int) bool,
	f func(src int, t *rows.Tables, b source.Block, list []int32) error,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, src := range r.sources() {
		err := r.session.Decode(ctx, func() error {
			visit := func(b source.Block, list []int32) error {
				t, err := r.session.Sources[src].Tables()
				if err != nil {
					return err
				}
				return f(src, t, b, list)
			}
			if s, ok := r.session.Sources[src].(source.SelectiveTrace); ok {
				return s.TraceIn(ctx, r.tenant, id, func(block int) bool { return enter(src, block) }, visit)
			}
			return r.session.Sources[src].Trace(ctx, r.tenant, id, visit)
		})
		if err = r.session.NoteDamage(src, scan.TracePart(id), 0, err); err != nil {
			return err
		}
	}
	return nil
}

// mayHold reports whether a block may have rows within the bounds of the round.
func (r *traceReader) mayHold(src, block int) bool {
	if !r.bounded && r.from == (spanKey{}) { // the most frequent case
		return true
	}
	blocks, err := r.session.Sources[src].Blocks()
	if err != nil {
		return true // opening the block reports the damage
	}
	return blocks[block].MaxStart >= r.from.start && (!r.bounded || blocks[block].MinStart <= r.before.start)
}

// add encodes the span of a row if it lies within the bounds.
func (r *traceReader) add(src int, t *rows.Tables, b source.Block, row int) error {
	h := &r.head
	if err := b.Head(row, h); err != nil {
		return err
	}
	key := spanKey{h.Start, h.SpanID}
	if key.compare(r.from) < 0 || r.bounded && key.compare(r.before) >= 0 {
		return nil
	}
	if _, wanted := r.keys[key]; r.keys != nil && !wanted {
		return nil
	}
	if r.selector != nil {
		if selected, err := r.selector.selects(t, b, row, h); err != nil || !selected {
			return err
		}
	}
	s, err := scan.Assemble(t, b, row, h, &r.cells, &r.assembler)
	if err != nil {
		return err
	}
	l := r.list
	from := len(l.arena)
	l.arena = otlpdata.AppendSpan(l.arena, s)
	l.spans = append(l.spans, storedSpan{
		key: key, origin: r.origin(src, t, h), root: h.ParentID.IsZero(), debug: s.NativeFlags()&otlpdata.FlagDebug != 0,
		from: from, to: len(l.arena),
	})
	if len(l.arena) > r.limit {
		r.cutArena()
	}
	return nil
}

// origin returns the number of a resource and scope. It depends on their content, so that
// duplicates in different sources are equal.
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
