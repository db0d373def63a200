package find

import (
	"context"
	"errors"
	"math/bits"
	"reflect"
	"slices"
	"sort"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// traceFilter selects the traces for which the condition on the trace may hold, plus a few others,
// and the blocks that have their rows.
type traceFilter struct {
	tenant    string
	hashes    bitset   // of traces, by the lowest bits of their hashes
	decided   bitset   // traces whose rows in a block give no further information, by the same bits
	blocks    []bitset // by source, by block; nil: all blocks
	condition traceCondition
}

type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) set(i uint64)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i uint64) bool { return b[i/64]>>(i%64)&1 != 0 }

// memory returns the approximate size in bytes.
func (f *traceFilter) memory() int64 {
	if f == nil {
		return 0
	}
	n := len(f.hashes) + len(f.decided)
	for _, blocks := range f.blocks {
		n += len(blocks)
	}
	return 8 * int64(n)
}

// index returns the index of a hash in hashes and decided.
func (f *traceFilter) index(hash uint64) uint64 { return hash & uint64(64*len(f.hashes)-1) }

// mayMatch reports whether the condition may hold for a trace. decided is false if the trace has
// all its rows in one block and nothing else is known about it.
func (f *traceFilter) mayMatch(id otlpdata.TraceID) (may, decided bool) {
	i := f.index(source.TraceHash(f.tenant, id))
	return f.hashes.has(i), f.decided.has(i)
}

// hasBlock reports whether a block may have rows of a matching trace.
func (f *traceFilter) hasBlock(src, block int) bool {
	return f.blocks[src] == nil || f.blocks[src].has(uint64(block))
}

const (
	// batchParts is the number of parts of traces that are in memory at the same time.
	batchParts = 32 << 10
	// maxHashBits limits the memory of each bitset of traces to 1 MiB.
	maxHashBits = 8 << 20
	// filterMemory is the approximate maximum memory that making a filter takes, in bytes.
	filterMemory = 8 << 20
	// spansPerTraceRead is the number of stored spans whose traces can be filtered in the time that
	// it takes to read one trace.
	spansPerTraceRead = 40_000
)

// filterTraces makes the filter of the search as soon as it is worthwhile: when reading the traces
// that were found so far has taken as long as making the filter takes. So a search whose first
// traces match does not wait for it.
func (s *search) filterTraces(ctx context.Context) error {
	if s.filtered || s.session == nil {
		return nil
	}
	if s.shared != nil {
		return s.shared.use(ctx, s)
	}
	if !s.filterPays(s.found) {
		return nil
	}
	s.filtered = true
	f, err := s.makeFilter(ctx, s.session.Memory)
	s.traceFilter = f
	return err
}

// filterPays reports whether reading a number of traces takes as long as making the filter.
func (s *search) filterPays(traces int) bool {
	spans := 0
	for _, src := range s.session.Sources {
		rows, _, _ := src.Bounds()
		spans += rows
	}
	return traces >= spans/spansPerTraceRead
}

// makeFilter makes a filter, whose memory it reserves in m. It returns nil if there is no filter.
func (s *search) makeFilter(ctx context.Context, m *tracestore.Memory) (*traceFilter, error) {
	if m.Grow(filterMemory) != nil {
		return nil, nil //nolint:nilnil // out of memory for queries: the search continues without a filter
	}
	b := filterBuilder{search: s}
	f, err := b.build(ctx)
	return f, errors.Join(err, m.Grow(f.memory()-filterMemory))
}

// sharedFilter is the filter of several searches of one view with the same condition on the trace.
// It is not safe for concurrent use.
type sharedFilter struct {
	memory *tracestore.Memory
	of     tracestore.Expr
	found  int // traces that earlier searches with the condition have read
	made   bool
	filter *traceFilter
}

// use gives the filter to a search as soon as it is worthwhile for all searches together.
func (f *sharedFilter) use(ctx context.Context, s *search) (err error) {
	if !reflect.DeepEqual(f.of, s.query.OfTrace) {
		f.memory.Release()
		*f = sharedFilter{memory: f.memory, of: s.query.OfTrace}
	}
	if !f.made {
		if !s.filterPays(f.found + s.found) {
			return nil
		}
		f.made = true
		f.filter, err = s.makeFilter(ctx, f.memory)
	}
	s.filtered, s.traceFilter = true, f.filter
	return err
}

// note counts the traces that a search has read.
func (f *sharedFilter) note(s *search) {
	if f != nil && s.query.OfTrace != nil && reflect.DeepEqual(f.of, s.query.OfTrace) {
		f.found += s.found
	}
}

// filterBuilder makes a traceFilter. It goes through the parts of all traces in the order of their
// hashes, because the duration and the root of a trace depend on all its parts.
type filterBuilder struct {
	search  *search
	filter  *traceFilter
	readers []source.PartReader // by source
	parts   []source.TracePart  // of the batch
	ends    []int               // by source: end of its parts in parts
	order   []uint64            // hash << indexBits | index in parts
	facts   traceFacts          // scratch
	extents []extent            // scratch
}

// A key of order has indexBits bits for the index. A batch has more than maxBatchParts only if
// traces were made to have similar hashes.
const (
	indexBits     = 64 - source.TraceHashBits
	maxBatchParts = 16 * batchParts
)

var errManyParts = errors.New("many traces have the same hash")

// build returns the filter, or nil if the parts of some source are unknown.
func (b *filterBuilder) build(ctx context.Context) (*traceFilter, error) {
	total, ok := b.open()
	if !ok {
		return nil, ctx.Err()
	}
	const end = uint64(1) << source.TraceHashBits
	size := min(maxHashBits, 1<<bits.Len(uint(16*total+63)))
	b.filter.hashes, b.filter.decided = newBitset(size), newBitset(size)
	for n, batches := uint64(1), uint64(total/batchParts+1); n <= batches; n++ {
		limit := end / batches * n
		if n == batches {
			limit = end
		}
		if ok, err := b.addBatch(ctx, limit); !ok || err != nil {
			return nil, err
		}
	}
	return b.filter, nil
}

// open opens the readers of all sources and returns the number of parts.
func (b *filterBuilder) open() (total int, ok bool) {
	s := b.search
	n := len(s.session.Sources)
	b.filter = &traceFilter{tenant: s.query.Tenant, blocks: make([]bitset, n), condition: traceCondition{
		expr: s.query.OfTrace, tables: make([]*rows.Tables, n), known: make(map[rootCondition]outcomes),
	}}
	roots := dependsOn(s.query.OfTrace, tracestore.RootService, tracestore.RootName)
	b.readers, b.ends = make([]source.PartReader, n), make([]int, n)
	for i, src := range s.session.Sources {
		known, ok := src.(source.TraceParts)
		if !ok {
			return 0, false
		}
		r, err := known.TraceParts()
		if r == nil || err != nil {
			b.report(err)
			return 0, false
		}
		if b.readers[i] = r; r.Parts() == 0 {
			continue
		}
		total += r.Parts()
		blocks, err := src.Blocks()
		if err != nil {
			return 0, false // the search reports the damage
		}
		b.filter.blocks[i] = newBitset(len(blocks))
		if !roots {
			continue
		}
		if b.filter.condition.tables[i], err = src.Tables(); err != nil {
			return 0, false // also
		}
	}
	return total, true
}

// dependsOn reports whether a condition has a field of one of the places.
func dependsOn(e tracestore.Expr, places ...tracestore.Place) bool {
	for f := range tracestore.Fields(e) {
		if slices.Contains(places, f.Place) {
			return true
		}
	}
	return false
}

// report reports damage that makes the search slower but not wrong.
func (b *filterBuilder) report(err error) {
	var d *source.DamageError
	if errors.As(err, &d) {
		b.search.session.ReportDamage(d)
	}
}

// addBatch adds the traces whose hash is less than limit and that were not added yet. It returns
// false if some parts are damaged.
func (b *filterBuilder) addBatch(ctx context.Context, limit uint64) (ok bool, err error) {
	err = b.search.session.Decode(ctx, func() error {
		b.parts, b.order = b.parts[:0], b.order[:0]
		for i, r := range b.readers {
			var err error
			if b.parts, err = r.Before(ctx, b.parts, limit); err != nil {
				return err
			}
			b.ends[i] = len(b.parts)
			if len(b.parts) > maxBatchParts {
				return errManyParts
			}
		}
		for i := range b.parts {
			b.order = append(b.order, b.parts[i].Hash<<indexBits|uint64(i))
		}
		slices.Sort(b.order)
		for rest := b.order; len(rest) > 0; {
			n := 1
			for n < len(rest) && rest[n]>>indexBits == rest[0]>>indexBits {
				n++
			}
			b.addTrace(rest[:n])
			rest = rest[n:]
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		b.report(err)
		return false, nil
	}
	return err == nil, err
}

// addTrace adds the trace with the given parts if the condition may hold for it. Traces with the
// same hash count as one.
func (b *filterBuilder) addTrace(keys []uint64) {
	b.setFacts(keys)
	if !b.filter.condition.mayHold(&b.facts) {
		return
	}
	hash := b.filter.index(keys[0] >> indexBits)
	b.filter.hashes.set(hash)
	if p, _ := b.part(keys[0]); len(keys) > 1 || p.Bounds != source.Unbounded || p.Block == source.AnyBlock {
		b.filter.decided.set(hash)
	}
	for _, key := range keys {
		p, src := b.part(key)
		switch blocks := b.filter.blocks[src]; {
		case p.Block == source.AnyBlock:
			b.filter.blocks[src] = nil
		case blocks != nil:
			blocks.set(uint64(p.Block))
		}
	}
}

// part returns a part and its source.
func (b *filterBuilder) part(key uint64) (p *source.TracePart, src int) {
	i := int(key & (1<<indexBits - 1))
	return &b.parts[i], sort.Search(len(b.ends), func(src int) bool { return b.ends[src] > i })
}
