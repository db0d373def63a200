package memtable

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Table is a memtable. All methods but Replay and Release may be called at the same time; writers wait for each other. A reader waits for a
// writer about a millisecond at most, when it takes a snapshot, and never while it reads one.
type Table struct {
	options Options
	hash    hasher
	writing sync.Mutex // held by the one writer; taken before mu
	intern  interner   // of the writer

	mu        sync.Mutex // guards what follows, but for traces; a writer gives it away between spans
	arena     arena
	tables    rows.Tables
	columns   []column    // beside tables.Columns
	shapes    []shapeInfo // beside tables.Shapes
	slots     []slot      // of all shapes, one after the other
	serviceOf []uint32    // beside tables.Resources
	services  []service
	blocks    []*block
	rows      int // in blocks
	published int // of these, how many are visible
	latest    *snapshot

	byColumn, byShape, byScope, byResource, byService index

	carry       []byte // definitions of a batch that failed, for the next record
	lost        int    // definitions that replay found missing
	grown       int64  // bytes in use beside the arena, the traces and the indexes above
	first, last time.Time
	item        []byte // scratch
	scratch     []field

	traces traces
	linked atomic.Pointer[[]*block] // at least the blocks of all rows that traces leads to
	open   sync.Pool                // *openBlock
	tally  tally
}

// shapeInfo is a shape of the tables with what interning needs, close together since it is read for each span. Only a shape that is known
// has more than zeros.
type shapeInfo struct {
	share     share
	name      string
	slots     uint32 // where they begin in Table.slots
	columns   uint32 // how many slots there are
	service   uint32
	scope     uint32
	kind      int32
	status    int32
	nameInRow bool
	known     bool // false: it, or something that it needs, was lost
}

// Record is what one batch became.
type Record struct {
	// Parts are the bytes for the log, in order. They alias the table and are valid until its Release.
	Parts [][]byte
	// Spans is the number of rows in the record.
	Spans int
}

// Bytes returns the size of the record.
func (r *Record) Bytes() int {
	n := 0
	for _, p := range r.Parts {
		n += len(p)
	}
	return n
}

// New returns an empty table.
func New(o Options) *Table {
	t := &Table{options: o.orDefault(), hash: newHasher()}
	t.arena.pool = t.options.Pool
	t.intern.t = t
	t.open.New = func() any { return new(openBlock) }
	return t
}

// Append adds the spans of a batch from the one with a number on, as many as there is room for, and at least one. They are visible when it
// returns. After an error none of them is.
func (t *Table) Append(b *otlpdata.Batch, from int) (Record, error) {
	segments, err := b.Segments()
	if err != nil {
		return Record{}, fmt.Errorf("reading a batch of spans: %w", err)
	}
	t.writing.Lock()
	defer t.writing.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	begin := t.arena.mark()
	t.putCarry()
	t.intern.begin(b.Meta().Tenant, from)
	defer t.intern.end()
	for _, s := range segments {
		if err = otlpdata.Walk(s, &t.intern); err != nil {
			break
		}
	}
	if err == errEnough {
		err = nil
	}
	record := Record{Parts: t.arena.since(begin), Spans: t.rows - t.published}
	if err != nil {
		t.abandon(record.Parts)
		return Record{}, fmt.Errorf("interning a batch of spans: %w", err)
	}
	t.publish(t.intern.traces)
	t.arrived(b.Meta().Received)
	return record, nil
}

// publish makes the rows that were added visible. hashes are those of their traces.
func (t *Table) publish(hashes []uint64) {
	t.link(t.published, hashes)
	t.published, t.latest = t.rows, nil
}

// abandon takes the rows of a record back. Its definitions stay, since other tables refer to them by now; the log gets them with the next
// record.
func (t *Table) abandon(parts [][]byte) {
	t.takeBack()
	for _, b := range parts {
		for len(b) > 0 {
			tag, payload, rest, err := rows.NextItem(b)
			if err != nil {
				break
			}
			if tag != rows.TagRow {
				t.carry = append(rows.AppendItem(t.carry, tag, len(payload)), payload...)
			}
			b = rest
		}
	}
}

// putCarry begins a record with the definitions that no record has yet.
func (t *Table) putCarry() {
	for b := t.carry; len(b) > 0; {
		tag, payload, rest, err := rows.NextItem(b)
		if err != nil {
			break
		}
		t.arena.put(tag, payload)
		b = rest
	}
	t.carry = nil
}

// Rows returns the number of visible spans.
func (t *Table) Rows() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.published
}

// Bytes returns an estimate of the memory in use: rows, definitions and indexes.
func (t *Table) Bytes() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes()
}

func (t *Table) bytes() int64 {
	return t.arena.size + t.grown + t.traces.bytes() + t.byColumn.bytes() + t.byShape.bytes() + t.byScope.bytes() +
		t.byResource.bytes() + t.byService.bytes()
}

// Full reports whether the table has reached one of its limits. The owner writes it to a segment soon.
func (t *Table) Full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.full()
}

// full does not look at shapes and columns: when there are many, the guard sees to it that spans need no more of them.
func (t *Table) full() bool {
	l := &t.options.Limits
	return t.rows >= t.options.MaxRows || t.bytes() >= t.options.MaxBytes ||
		len(t.tables.Resources) >= l.Resources || len(t.tables.Scopes) >= l.Scopes || len(t.services) >= l.Services
}

// Arrived notes that spans came at a time. Append does so for a batch's time of receipt; who replays a log, in which no times are, knows
// them from elsewhere.
func (t *Table) Arrived(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arrived(at)
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

// Arrivals returns when the first and the last spans came; zero times if that is not known.
func (t *Table) Arrivals() (first, last time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first, t.last
}

// Release gives the memory of the rows back to the pool. The caller sees to it that nobody uses the table, its records, its sources and
// strings out of them any more: the next table writes over them.
func (t *Table) Release() {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arena.release()
	t.tables, t.blocks, t.latest, t.rows, t.published = rows.Tables{}, nil, nil, 0, 0
}
