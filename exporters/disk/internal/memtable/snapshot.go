package memtable

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Input is the input of the segment writer.
type Input struct {
	Tables *rows.Tables
	Rows   int
	// Row returns the encoded row i, which must be less than Rows, for rows.Tables.ReadRow. It is
	// safe for concurrent use.
	Row func(i int) []byte
}

// Source returns the currently visible rows. It does not change when rows are added, and is valid
// until the table's Release.
func (t *Table) Source() source.Source { return t.snapshot() }

// Input returns the currently visible rows for the segment writer. It is valid until the table's
// Release.
func (t *Table) Input() Input {
	s := t.snapshot()
	return Input{Tables: s.tables, Rows: s.rows, Row: s.row}
}

// snapshot is the state of a table at one moment. It shares all unchanging memory with the table.
type snapshot struct {
	name   string
	size   int // rows per block
	rows   int
	tables *rows.Tables
	chunks [][]byte
	blocks []*block
	infos  []source.BlockInfo
	hints  []blockHints
	inline []bool // by column: whether some text is not a word
	table  *Table // for traces, linkedBlocks, hash and open, which need no lock

	mu     sync.Mutex
	cached map[[2]string]attributeInfo // at most maxCached
}

var _ source.Source = (*snapshot)(nil)

// snapshot takes a snapshot, or returns the last one if nothing has changed.
func (t *Table) snapshot() *snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.latest != nil {
		return t.latest
	}
	n := (t.published + t.options.BlockRows - 1) / t.options.BlockRows
	s := &snapshot{name: t.options.Name, size: t.options.BlockRows, rows: t.published, tables: t.tables.Snapshot(),
		chunks: t.arena.chunks[:len(t.arena.chunks):len(t.arena.chunks)], blocks: slices.Clone(t.blocks[:n]),
		infos: make([]source.BlockInfo, n), hints: make([]blockHints, n), inline: make([]bool, len(t.columns)),
		table: t, cached: map[[2]string]attributeInfo{}}
	for i := range n {
		s.infos[i], s.hints[i] = t.describe(i), t.hints(i)
	}
	for i := range t.columns {
		s.inline[i] = t.columns[i].words.inline
	}
	t.latest = s
	return s
}

// Name returns the name of the table.
func (s *snapshot) Name() string { return s.name }

// Bounds returns the number of rows and the bounds of their start times.
func (s *snapshot) Bounds() (rows int, minStart, maxStart uint64) {
	minStart = math.MaxUint64
	for i := range s.infos {
		minStart, maxStart = min(minStart, s.infos[i].MinStart), max(maxStart, s.infos[i].MaxStart)
	}
	return s.rows, minStart, maxStart
}

// Tables returns the vocabulary. It cannot fail.
func (s *snapshot) Tables() (*rows.Tables, error) { return s.tables, nil }

// Blocks describes the blocks. It cannot fail.
func (s *snapshot) Blocks() ([]source.BlockInfo, error) { return s.infos, nil }

// BlockShapes appends the shapes of a block, which are always known.
func (s *snapshot) BlockShapes(dst []source.BlockShape, block int) (shapes []source.BlockShape, known bool) {
	return append(dst, s.hints[block].shapes...), true
}

// row returns the payload of a row.
func (s *snapshot) row(i int) []byte {
	_, payload, _, err := rows.NextItem(s.blocks[i/s.size].refs[i%s.size].in(s.chunks))
	if err != nil {
		return nil // cannot happen: put wrote the item
	}
	return payload
}

// Open opens a block without reading it.
func (s *snapshot) Open(ctx context.Context, block int) (source.Block, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.openBlock(block), nil
}

// Trace visits the rows of a trace, the last block first.
func (s *snapshot) Trace(ctx context.Context, tenant string, id otlpdata.TraceID, visit func(b source.Block, rows []int32) error) error {
	var found []int32
	current := -1
	flush := func() error {
		if len(found) == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		slices.Reverse(found)
		b := s.openBlock(current)
		defer b.Close()
		return visit(b, found)
	}
	t := s.table
	at := t.traces.last(t.hash.trace(t.hash.text(tenant), &id))
	if at == 0 {
		return nil
	}
	// The first rows may be newer than the snapshot and be in blocks that it does not have.
	for blocks := *t.linkedBlocks.Load(); at > 0; {
		row := int(at - 1)
		at = blocks[row/s.size].prev[row%s.size]
		if row >= s.rows || !s.isTrace(row, tenant, &id) {
			continue
		}
		if row/s.size != current {
			if err := flush(); err != nil {
				return err
			}
			current, found = row/s.size, found[:0]
		}
		found = append(found, int32(row%s.size))
	}
	return flush()
}

// isTrace compares the tenant and trace id of a row. Only their hash is known to be equal.
func (s *snapshot) isTrace(row int, tenant string, id *otlpdata.TraceID) bool {
	var h rows.Head
	if _, err := rows.ReadHead(s.row(row), &h); err != nil {
		return false
	}
	return h.TraceID == *id && s.tables.Resources[h.Resource].Tenant == tenant
}
