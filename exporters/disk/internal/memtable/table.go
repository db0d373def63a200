package memtable

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Table is a memtable. Methods other than Replay and Release may be called concurrently; writers
// exclude each other. A reader may wait for a writer for about a millisecond when it takes a
// snapshot, but not when it reads one.
type Table struct {
	options Options
	hash    hasher
	writing sync.Mutex // held by the one writer; taken before mu
	intern  interner   // used by the writer

	mu        sync.Mutex // guards the following fields except traces; a writer releases it between spans
	arena     arena
	tables    rows.Tables
	columns   []column    // parallel to tables.Columns
	shapes    []shapeInfo // parallel to tables.Shapes
	slots     []slot      // of all shapes, one after the other
	serviceOf []uint32    // parallel to tables.Resources
	services  []service
	blocks    []*block
	rows      int // number of rows in blocks
	published int // number of visible rows
	latest    *snapshot

	byColumn, byShape, byScope, byResource, byService index

	pending     []byte // definitions of failed batches, for the next record
	starts      []mark // of the records of the current batch
	repeats     repeats
	logged      uint64 // number of rows in the log, including those that could not be replayed
	missingRows uint64 // number of rows of records that are missing in the log
	lost        int    // number of definitions missing in replayed records
	otherBytes  int64  // memory in use, without the arena, the traces and the indexes above
	first, last time.Time
	arrivals    []arrival
	item        []byte // scratch
	scratch     []field

	traces       traces
	linkedBlocks atomic.Pointer[[]*block] // includes the blocks of all rows in traces
	tally        tally
}

// shapeInfo holds the properties of a shape that interning needs, in one place because they are
// read for each span. Fields are zero unless known is set.
type shapeInfo struct {
	share     share
	name      string
	slots     uint32 // index of its first slot in Table.slots
	columns   uint32 // number of slots
	service   uint32
	scope     uint32
	kind      int32
	status    int32
	nameInRow bool
	known     bool // false: its definition, or one that it refers to, was lost
}

// Appended is the result of appending a batch.
type Appended struct {
	// Records are the records for the log, in order, each in parts. They alias the table and are
	// valid until its Release.
	Records [][][]byte
	// Spans is the number of rows in the records.
	Spans int
}

// New returns an empty table.
func New(o Options) *Table {
	t := &Table{options: o.orDefault(), hash: newHasher()}
	t.arena.pool = t.options.Pool
	t.intern.t = t
	return t
}

// Append adds the spans of a batch, starting at index from: as many as fit, at least one. They are
// visible when Append returns. After an error no span of the batch is visible.
func (t *Table) Append(b *otlpdata.Batch, from int) (Appended, error) {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.startRecord(0)
	t.writePending()
	t.intern.begin(b.Meta().Tenant, from)
	defer t.intern.end()
	err := b.Walk(&t.intern)
	if err == errRecordFull {
		err = nil
	}
	out := Appended{Records: t.takeRecords(), Spans: t.rows - t.published}
	if err != nil {
		t.rollBack(out.Records)
		return Appended{}, fmt.Errorf("interning batch: %w", err)
	}
	t.publish(t.intern.traces)
	t.logged += uint64(out.Spans)
	t.arrived(b.Meta().Received)
	return out, nil
}

// publish makes all added rows visible. hashes are the hashes of their traces.
func (t *Table) publish(hashes []uint64) {
	t.link(t.published, hashes)
	t.published, t.latest = t.rows, nil
}

// rollBack removes the rows of a batch. The definitions of its records remain, because later
// definitions may refer to them. They are written to the log with the next batch.
func (t *Table) rollBack(records [][][]byte) {
	t.dropUnpublished()
	for _, b := range slices.Concat(records...) {
		for len(b) > 0 {
			tag, payload, rest, err := rows.NextItem(b)
			if err != nil {
				break
			}
			if tag != rows.TagRow && tag != rows.TagPosition {
				t.pending = append(rows.AppendItem(t.pending, tag, len(payload)), payload...)
			}
			b = rest
		}
	}
}

// startRecord starts a record with the number of rows before it (those that are logged, and a
// number of rows of the same batch), and with repeated definitions.
func (t *Table) startRecord(more int) {
	t.starts = append(t.starts, t.arena.mark())
	t.item = rows.AppendPosition(t.item[:0], t.logged+uint64(more))
	_, at := t.arena.alloc(len(t.item))
	copy(at, t.item)
	t.repeatDefinitions()
}

// takeRecords returns the records that were started.
func (t *Table) takeRecords() [][][]byte {
	records := make([][][]byte, len(t.starts))
	for i, from := range t.starts {
		to := t.arena.mark()
		if i+1 < len(t.starts) {
			to = t.starts[i+1]
		}
		records[i] = t.arena.between(from, to)
	}
	t.starts = t.starts[:0]
	return records
}

// writePending continues a record with the definitions that are in no record yet.
func (t *Table) writePending() {
	for b := t.pending; len(b) > 0; {
		tag, payload, rest, err := rows.NextItem(b)
		if err != nil {
			break
		}
		t.arena.put(tag, payload)
		b = rest
	}
	t.pending = nil
}

// Rows returns the number of visible spans.
func (t *Table) Rows() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.published
}

// Bytes returns the approximate memory in use in bytes: rows, definitions and indexes.
func (t *Table) Bytes() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes()
}

func (t *Table) bytes() int64 {
	return t.arena.size + t.otherBytes + t.traces.bytes() + t.byColumn.bytes() + t.byShape.bytes() + t.byScope.bytes() +
		t.byResource.bytes() + t.byService.bytes()
}

// Full reports whether the table has reached one of its limits and should be flushed.
func (t *Table) Full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.full()
}

// full ignores the limits of shapes and columns: when they are reached, the guard ensures that
// spans need no new ones.
func (t *Table) full() bool {
	l := &t.options.Limits
	return t.rows >= t.options.MaxRows || t.bytes() >= t.options.MaxBytes ||
		len(t.tables.Resources) >= l.Resources || len(t.tables.Scopes) >= l.Scopes || len(t.services) >= l.Services
}

// Arrived records that the next spans arrive at the given time. Append does so with the receive
// time of a batch. Replay does not know the times, so its caller must provide them.
func (t *Table) Arrived(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arrived(at)
	t.noteArrival(at)
}

func (t *Table) arrived(at time.Time) {
	if at.IsZero() {
		return
	}
	if t.first.IsZero() || at.Before(t.first) {
		t.first = at
	}
	if at.After(t.last) {
		t.last = at
	}
}

// Arrivals returns the times of the first and last arrival, zero if unknown.
func (t *Table) Arrivals() (first, last time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first, t.last
}

// Release returns the memory of the rows to the pool. The table, its records and sources, and
// strings from them must not be used afterwards, because the next table overwrites them.
func (t *Table) Release() {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arena.release()
	t.tables, t.blocks, t.latest, t.rows, t.published = rows.Tables{}, nil, nil, 0, 0
}
