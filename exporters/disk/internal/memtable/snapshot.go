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

// Input is what a segment is made of.
type Input struct {
	Tables *rows.Tables
	Rows   int
	// Row returns the encoded row with a number below Rows, as rows.Tables.ReadRow reads it. Safe for concurrent use.
	Row func(i int) []byte
}

// Source returns the rows that are visible now. It is valid until the table's Release, and stays as it is when more come.
func (t *Table) Source() source.Source { return t.snapshot() }

// Input returns the rows that are visible now for the segment writer. It is valid until the table's Release.
func (t *Table) Input() Input {
	s := t.snapshot()
	return Input{Tables: s.tables, Rows: s.rows, Row: s.row}
}

// snapshot is a table at one moment. It shares all memory that does not change with it.
type snapshot struct {
	name   string
	size   int // rows of a block
	rows   int
	tables *rows.Tables
	chunks [][]byte
	blocks []*block
	infos  []source.BlockInfo
	notes  []blockNotes
	inline []bool // by column: some text is no word
	table  *Table // for traces, linked, hash and open, which need no lock

	mu    sync.Mutex
	known map[[2]string]answer // at most maxKnown
}

var _ source.Source = (*snapshot)(nil)

// snapshot takes a snapshot, or returns the last one when nothing has changed since.
func (t *Table) snapshot() *snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.latest != nil {
		return t.latest
	}
	n := (t.published + t.options.BlockRows - 1) / t.options.BlockRows
	s := &snapshot{name: t.options.Name, size: t.options.BlockRows, rows: t.published, tables: t.tables.Snapshot(),
		chunks: t.arena.chunks[:len(t.arena.chunks):len(t.arena.chunks)], blocks: slices.Clone(t.blocks[:n]),
		infos: make([]source.BlockInfo, n), notes: make([]blockNotes, n), inline: make([]bool, len(t.columns)),
		table: t, known: map[[2]string]answer{}}
	for i := range n {
		s.infos[i], s.notes[i] = t.describe(i), t.notes(i)
	}
	for i := range t.columns {
		s.inline[i] = t.columns[i].words.inline
	}
	t.latest = s
	return s
}

// Name returns the table's name.
func (s *snapshot) Name() string { return s.name }

// Bounds returns the number of rows and bounds of their starts.
func (s *snapshot) Bounds() (rows int, minStart, maxStart uint64) {
	minStart = math.MaxUint64
	for i := range s.infos {
		minStart, maxStart = min(minStart, s.infos[i].MinStart), max(maxStart, s.infos[i].MaxStart)
	}
	return s.rows, minStart, maxStart
}

// Tables returns the vocabulary; there is no error.
func (s *snapshot) Tables() (*rows.Tables, error) { return s.tables, nil }

// Blocks describes the blocks; there is no error.
func (s *snapshot) Blocks() ([]source.BlockInfo, error) { return s.infos, nil }

// BlockShapes appends the shapes of a block, which are always known.
func (s *snapshot) BlockShapes(dst []source.BlockShape, block int) (shapes []source.BlockShape, known bool) {
	return append(dst, s.notes[block].shapes...), true
}

// row returns the payload of a row.
func (s *snapshot) row(i int) []byte {
	_, payload, _, err := rows.NextItem(s.blocks[i/s.size].refs[i%s.size].in(s.chunks))
	if err != nil {
		return nil // the item was written by put
	}
	return payload
}

// Open opens a block. Nothing is read yet.
func (s *snapshot) Open(ctx context.Context, block int) (source.Block, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.openBlock(block), nil
}

// Trace visits the rows of a trace, last block first.
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
	// The first rows may be newer than the snapshot and lie in blocks that it does not have.
	for blocks := *t.linked.Load(); at > 0; {
		row := int(at - 1)
		at = blocks[row/s.size].prev[row%s.size]
		if row >= s.rows || !s.isOf(row, tenant, &id) {
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

// isOf compares the ids of which only the hashes are known to be equal.
func (s *snapshot) isOf(row int, tenant string, id *otlpdata.TraceID) bool {
	var h rows.Head
	if _, err := rows.ReadHead(s.row(row), &h); err != nil {
		return false
	}
	return h.TraceID == *id && s.tables.Resources[h.Resource].Tenant == tenant
}
