package scantest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// table is a simple memtable whose hints are imprecise at random, but never wrong.
type table struct {
	name    string
	seed    uint64
	gauge   *Gauge
	precise bool       // hints are precise
	mu      sync.Mutex // guards all fields below
	intern  interner
	Blocks  []*testBlock
	traces  map[tenantTrace][]place
	first   map[[2]uint32]rows.Cell // the first cell at a position of a shape
	varies  map[[2]uint32]bool      // whether other rows have another cell there
	texts   map[uint32]map[string]bool
}

type tenantTrace struct {
	tenant string
	id     otlpdata.TraceID
}

type place struct{ block, row int }

// Gauge counts open blocks: now, at most at the same time, and in total.
type Gauge struct{ Open, Most, Total atomic.Int64 }

func (g *Gauge) enter() {
	g.Total.Add(1)
	for n := g.Open.Add(1); ; {
		most := g.Most.Load()
		if n <= most || g.Most.CompareAndSwap(most, n) {
			return
		}
	}
}

// testBlock does not change, except that it can be damaged.
type testBlock struct {
	info   source.BlockInfo
	shapes []source.BlockShape // nil: not known
	rows   []testRow
	held   map[[2]string]bool // keys and texts of string attributes
	Rot    atomic.Int32       // what is damaged
}

// The parts of a block that can be damaged.
const (
	Sound = iota
	RottenBlock
	rottenHeads
	rottenCells
)

func newTable(name string, seed uint64, g *Gauge) *table {
	return &table{name: name, seed: seed, gauge: g,
		intern: interner{rng: rand.New(rand.NewPCG(seed, 1)), ids: make(map[string]uint32)}, traces: make(map[tenantTrace][]place),
		first: make(map[[2]uint32]rows.Cell), varies: make(map[[2]uint32]bool), texts: make(map[uint32]map[string]bool)}
}

// add stores spans in blocks of at most blockRows rows.
func (t *table) add(tenant string, spans []tracestore.Span, blockRows int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for part := range slices.Chunk(spans, blockRows) {
		b := &testBlock{held: make(map[[2]string]bool)}
		b.info = source.BlockInfo{Rows: len(part), MinStart: ^uint64(0)}
		longest := make(map[uint32]uint64)
		for i, s := range part {
			r := t.intern.row(tenant, s)
			b.rows = append(b.rows, r)
			b.info.MinStart, b.info.MaxStart = min(b.info.MinStart, s.Start), max(b.info.MaxStart, s.Start)
			longest[r.head.Shape] = max(longest[r.head.Shape], r.head.Duration())
			at := tenantTrace{tenant, s.TraceID}
			t.traces[at] = append(t.traces[at], place{len(t.Blocks), i})
			t.note(&r)
			b.note(s)
		}
		for shape, d := range longest {
			b.shapes = append(b.shapes, source.BlockShape{Shape: shape, Longest: source.StepOf(d + t.slack(d))})
		}
		if !t.precise && t.intern.rng.IntN(4) == 0 {
			b.shapes = nil
		}
		t.Blocks = append(t.Blocks, b)
	}
}

// slack is the imprecision of a bound on durations.
func (t *table) slack(d uint64) uint64 {
	if t.precise {
		return 0
	}
	return d / 8 * t.intern.rng.Uint64N(2)
}

// note records what the hints need.
func (t *table) note(r *testRow) {
	for i, column := range t.intern.tables.Shapes[r.head.Shape].Columns {
		at := [2]uint32{r.head.Shape, uint32(i)}
		if c, ok := t.first[at]; !ok {
			t.first[at] = r.cells[i]
		} else if c != r.cells[i] {
			t.varies[at] = true
		}
		if t.intern.tables.Columns[column].Kind == otlpdata.ValueString {
			if t.texts[column] == nil {
				t.texts[column] = make(map[string]bool)
			}
			t.texts[column][t.intern.tables.Text(column, r.cells[i])] = true
		}
	}
}

func (b *testBlock) note(s tracestore.Span) {
	lists := [][]otlpdata.KeyValue{s.Attributes}
	for i := range s.Events {
		lists = append(lists, s.Events[i].Attributes)
	}
	for i := range s.Links {
		lists = append(lists, s.Links[i].Attributes)
	}
	for _, kv := range slices.Concat(lists...) {
		if kv.Value.Kind() == otlpdata.ValueString {
			b.held[[2]string{kv.Key, kv.Value.Str()}] = true
		}
	}
}

// withholds reports whether to withhold a hint. The result depends only on the arguments.
func (t *table) withholds(question ...any) bool {
	if t.precise {
		return false
	}
	h := t.seed
	for _, c := range fmt.Sprint(question...) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h>>40%3 == 0
}

// snapshot returns what is stored now.
func (t *table) snapshot(released *atomic.Bool) source.Source {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &testSource{table: t, tables: t.intern.tables.Snapshot(), blocks: t.Blocks, released: released}
}

type testSource struct {
	*table
	tables   *rows.Tables
	blocks   []*testBlock
	released *atomic.Bool
}

func (s *testSource) Name() string { return s.name }

func (s *testSource) Tables() (*rows.Tables, error) { return s.tables, nil }

func (s *testSource) Bounds() (rows int, minStart, maxStart uint64) {
	minStart = math.MaxUint64
	for _, b := range s.blocks {
		rows += b.info.Rows
		minStart, maxStart = min(minStart, b.info.MinStart), max(maxStart, b.info.MaxStart)
	}
	return rows, minStart, maxStart
}

func (s *testSource) Blocks() ([]source.BlockInfo, error) {
	out := make([]source.BlockInfo, len(s.blocks))
	for i, b := range s.blocks {
		out[i] = b.info
	}
	return out, nil
}

func (s *testSource) BlockShapes(dst []source.BlockShape, block int) (shapes []source.BlockShape, known bool) {
	b := s.blocks[block]
	return append(dst, b.shapes...), b.shapes != nil
}

func (s *testSource) damage(block int) error {
	return &source.DamageError{
		File: s.name, Part: fmt.Sprint("block ", block), Rows: len(s.blocks[block].rows), Err: errors.New("wrong checksum"),
	}
}

func (s *testSource) Open(ctx context.Context, block int) (source.Block, error) {
	if s.released.Load() {
		panic("block opened after its view was released")
	}
	if s.blocks[block].Rot.Load() == RottenBlock {
		return nil, s.damage(block)
	}
	s.gauge.enter()
	return &openBlock{testBlock: s.blocks[block], source: s, number: block}, ctx.Err()
}

func (s *testSource) Trace(ctx context.Context, tenant string, id otlpdata.TraceID, visit func(b source.Block, rows []int32) error) error {
	s.mu.Lock()
	places := s.traces[tenantTrace{tenant, id}]
	s.mu.Unlock()
	byBlock := make(map[int][]int32)
	for _, p := range places {
		if p.block < len(s.blocks) {
			byBlock[p.block] = append(byBlock[p.block], int32(p.row))
		}
	}
	var errs []error
	for block, list := range byBlock {
		b, err := s.Open(ctx, block)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		err = visit(b, list)
		b.Close()
		if err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

func (s *testSource) HoldsIntegers() bool { return false }
func (s *testSource) HoldsElements() bool { return false }

func (s *testSource) MayHold(block int, key, text string) bool {
	return s.blocks[block].held[[2]string{key, text}] || s.withholds(block, key, text)
}

func (s *testSource) Constant(shape uint32, position int) (rows.Cell, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := [2]uint32{shape, uint32(position)}
	return s.first[at], !s.varies[at] && !s.withholds("constant", at)
}

func (s *testSource) Words(column uint32) ([]string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.withholds("words", column) {
		return nil, false
	}
	var out []string
	for w := range s.texts[column] {
		out = append(out, w)
	}
	return out, true
}

// openBlock overwrites the slices that it returned when it is closed.
type openBlock struct {
	*testBlock
	source *testSource
	number int
	closed bool
	given  [][]uint64
}

func (b *openBlock) Close() {
	if b.closed {
		panic("block closed twice")
	}
	b.closed = true
	b.source.gauge.Open.Add(-1)
	for _, g := range b.given {
		clear(g)
	}
}

func (b *openBlock) Len() int { return len(b.rows) }

func (b *openBlock) fails(rot int32) error {
	if b.closed {
		panic("block read after it was closed")
	}
	if b.Rot.Load() == rot {
		return b.source.damage(b.number)
	}
	return nil
}

func (b *openBlock) Shapes() ([]uint32, error) {
	return collect(b, func(h *rows.Head) uint32 { return h.Shape }), b.fails(RottenBlock)
}

func (b *openBlock) Resources() ([]uint32, error) {
	return collect(b, func(h *rows.Head) uint32 { return h.Resource }), b.fails(rottenHeads)
}

func (b *openBlock) Starts() ([]uint64, error) {
	out := collect(b, func(h *rows.Head) uint64 { return h.Start })
	b.given = append(b.given, out)
	return out, b.fails(RottenBlock)
}

func (b *openBlock) Ends() ([]uint64, error) {
	out := collect(b, func(h *rows.Head) uint64 { return h.End })
	b.given = append(b.given, out)
	return out, b.fails(rottenHeads)
}

func collect[T any](b *openBlock, f func(h *rows.Head) T) []T {
	out := make([]T, len(b.rows))
	for i := range b.rows {
		out[i] = f(&b.rows[i].head)
	}
	return out
}

func (b *openBlock) Head(row int, h *rows.Head) error {
	*h = b.rows[row].head
	return b.fails(rottenHeads)
}

func (b *openBlock) HasParent(row int) (bool, error) {
	return !b.rows[row].head.ParentID.IsZero(), b.fails(rottenHeads)
}

func (b *openBlock) Cell(row, position int) (rows.Cell, error) {
	return b.rows[row].cells[position], b.fails(rottenCells)
}

func (b *openBlock) Cells(dst []rows.Cell, row int) ([]rows.Cell, error) {
	return append(dst, b.rows[row].cells...), b.fails(rottenCells)
}
