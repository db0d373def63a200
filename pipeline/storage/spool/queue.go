package spool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// ErrClosed means that the queue was closed. It is wrapped.
var ErrClosed = errors.New("queue is closed")

// Options are the options of a queue. Now is required. The owner of the queue limits its size.
type Options struct {
	LogSize    int64            // size at which the next log is started, and the unit of reading; 0: 16 MiB
	Quarantine string           // directory for damaged logs; "": `damaged` below the queue's directory
	Now        func() time.Time // the clock
	// Lost is called when the disk has lost items, or has returned them after all.
	Lost func(Loss)
	// Unsynced is called by Open for a log that ends with records that cannot be read. They were
	// not acknowledged, unless the disk has damaged them since the last checkpoint.
	Unsynced func(epoch, records uint64)
	// ListLost is called by Open if the list of logs cannot be read, so that logs that are gone are
	// not known. The list is rewritten.
	ListLost func(error)
	// The three may be nil. They must not call the queue.
}

// Loss describes the items of a log that the disk has lost, or has returned after an earlier Loss.
// A readable file is moved to Options.Quarantine when the rest of it is done.
type Loss struct {
	Epoch uint64 // of the log; in hexadecimal, the first part of the file name
	// Items is the number of items that may be lost, at least 1 if it is not known. Losses found by
	// Open are counted in records: that includes items that were done long ago, done records, and a
	// last record that may not have been acknowledged (Report.Doubtful).
	Items     uint64
	Recovered uint64 // items that earlier losses of the log counted but that are not lost after all
	Gone      State  // amount that State no longer counts; negative: counts from now on; zero for losses found by Open
	Report    wal.Report
	Err       error // why the log could not be read at all, or nil
}

// sizePerRecord bounds the number of records in a log: one for each sizePerRecord bytes of LogSize.
// An item in memory takes a few hundred bytes besides its payload.
const sizePerRecord = 512

// doneBatch is the number of done records that may wait for the next Put before they are committed
// on their own.
const doneBatch = 256

// Item is an item of the queue. Either Value or Payload is set: Value if the item never left
// memory.
type Item struct {
	Value   any
	Payload []byte
	Since   time.Time // when it was put
	Weight  int64

	size       int64
	epoch, seq uint64
}

// Size returns the length of the payload, in bytes.
func (i *Item) Size() int64 { return i.size }

func (i *Item) state() State { return State{Items: 1, Bytes: i.size, Weight: i.Weight} }

// Queue is an open queue. Its methods may be called concurrently.
type Queue struct {
	logs *wal.Dir
	opt  Options

	taking sync.Mutex // held while looking for the next item, so that a log is read once

	mu        sync.Mutex
	parts     []*part // oldest first
	current   *part   // the log being written, the last of parts; nil: none
	lastEpoch uint64
	state     State
	undone    int           // done records that are not committed yet
	changed   chan struct{} // closed and replaced on every change that Take may wait for
	closed    bool
	err       error // of the last attempt to create, read or remove a log; nil after a success
}

// State is how much a queue holds: items that are not done, including those in flight, the size of
// their payloads and their weight.
type State struct{ Items, Bytes, Weight int64 }

func (s *State) addState(o State) {
	s.Items, s.Bytes, s.Weight = s.Items+o.Items, s.Bytes+o.Bytes, s.Weight+o.Weight
}

func (s *State) sub(o State) { s.addState(State{-o.Items, -o.Bytes, -o.Weight}) }

// Put adds an item and returns when it is durable. Its payload is the concatenation of parts; Take
// returns value while the item is in memory. Errors wrap ErrClosed or wal.ErrTooLarge, or describe
// a failure of the disk (see vfs.NoSpace). After an error the item is not in the queue, but after a
// failure of the disk it may reappear at the next start.
func (q *Queue) Put(value any, weight int64, parts ...[]byte) error {
	item := Item{Value: value, Since: q.opt.Now(), Weight: weight}
	for _, p := range parts {
		item.size += int64(len(p))
	}
	a, err := q.append(&item, parts)
	if err == nil {
		err = a.commit()
		q.settle(a.part, item, err)
	}
	q.sweep()
	if err != nil {
		return fmt.Errorf("adding to the queue: %w", err)
	}
	return nil
}

// append appends the record to the log. The caller settles the result.
func (q *Queue) append(item *Item, parts [][]byte) (appended, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return appended{}, ErrClosed
	}
	head := itemHead(item.Since, item.Weight)
	a, err := q.write(slices.Concat([][]byte{head}, parts)...)
	if err != nil {
		return a, err
	}
	item.epoch, item.seq = a.part.epoch, uint64(a.ticket)
	a.part.pending++
	q.undone = 0 // committed together with this record
	q.state.addState(item.state())
	return a, nil
}

// settle makes an item available, or drops it after an error.
func (q *Queue) settle(p *part, item Item, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p.pending--
	switch {
	case err != nil:
		q.state.sub(item.state())
		p.skip(item.seq) // it may be in the file
		q.abandon(p)
	case p.onDisk:
		p.unread.addState(item.state())
	default:
		p.items = append(p.items, item)
	}
	q.wake()
}

// appended is a record in a log that is durable once committed.
type appended struct {
	part   *part
	log    *wal.Log // the log of the part, which drops it when the log ends
	ticket wal.Ticket
}

// commit returns nil when the record is durable, or if there is none.
func (a appended) commit() error {
	if a.log == nil {
		return nil
	}
	return a.log.Commit(context.Background(), a.ticket)
}

// write appends a record to the log that is being written.
func (q *Queue) write(parts ...[]byte) (appended, error) {
	p, err := q.writable()
	if err != nil {
		return appended{}, err
	}
	ticket, err := p.log.Append(parts...)
	if err != nil {
		q.abandon(p)
		return appended{}, err
	}
	return appended{p, p.log, ticket}, nil
}

// writable returns the log to write to: the current one, or a new one when it is full.
func (q *Queue) writable() (*part, error) {
	if q.current != nil {
		if s := q.current.log.Stats(); s.Size < q.opt.LogSize && s.Records < max(uint64(q.opt.LogSize)/sizePerRecord, 1) {
			return q.current, nil
		}
		q.end()
	}
	epoch := max(uint64(q.opt.Now().UnixNano()), q.lastEpoch+1)
	log, err := q.logs.Create(epoch)
	if q.err = err; err != nil {
		return nil, err
	}
	q.lastEpoch, q.current = epoch, &part{epoch: epoch, log: log}
	q.parts = append(q.parts, q.current)
	return q.current, nil
}

// end closes the current log. Its items leave memory unless they are taken next. What was committed
// is in the file, even if the log has failed since.
func (q *Queue) end() {
	p, log := q.current, q.current.log
	q.current, p.log = nil, nil
	q.err = log.Close()
	p.failed = q.err != nil
	if !p.failed {
		q.logs.Checkpoint(map[*wal.Log]int64{log: 0}) // only used after damage: an error has no consequences
	}
	if first := slices.IndexFunc(q.parts, (*part).waiting); first >= 0 && q.parts[first] != p && !p.begun {
		p.unload()
	}
}

// abandon ends a log that has failed. The next Put starts another one.
func (q *Queue) abandon(p *part) {
	if q.current == p && errors.Is(p.log.Ready(), wal.ErrFailed) {
		q.end()
	}
}

func (q *Queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// Done marks an item as processed: it is not redelivered, unless the process dies before the mark
// is on disk. Call it once for every item taken.
func (q *Queue) Done(item *Item) {
	a := q.done(item)
	q.sweep()
	if err := a.commit(); err != nil { // repeated in the next log when this one is removed
		q.mu.Lock()
		defer q.mu.Unlock()
		q.abandon(a.part)
	}
}

// done returns a record to commit if it should not wait for a Put.
func (q *Queue) done(item *Item) (now appended) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.find(item.epoch)
	if p == nil {
		return now
	}
	p.taken--
	q.state.sub(item.state())
	if q.closed || q.finished(p) {
		return now
	}
	a, err := q.note(doneItem{item.epoch, item.seq})
	if err != nil {
		return now // if the process dies now, the item is taken once more
	}
	if q.undone++; q.undone < doneBatch {
		return now
	}
	q.undone = 0
	return a
}

// note appends a done record.
func (q *Queue) note(d doneItem) (appended, error) {
	a, err := q.write(doneRecord(d))
	if err == nil {
		a.part.notes = append(a.part.notes, d)
	}
	return a, err
}

// Checkpoint records on disk how many records the current log holds, so that the next Open knows
// what is lost if the disk damages them. It writes nothing if nothing has changed. The owner calls
// it from time to time. An error has no consequences unless there is damage later.
func (q *Queue) Checkpoint() error {
	q.mu.Lock()
	logs := map[*wal.Log]int64{}
	if q.current != nil {
		logs[q.current.log] = 0
	}
	q.mu.Unlock()
	return q.logs.Checkpoint(logs)
}

// State returns how much the queue holds.
func (q *Queue) State() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state
}

// Err returns why the last access to the disk failed, or why a log that is still to be read could
// not be read; nil if neither.
func (q *Queue) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.IndexFunc(q.parts, func(p *part) bool { return p.cause != nil }); i >= 0 && q.err == nil {
		return q.parts[i].cause
	}
	return q.err
}

// Close closes the queue: Take returns ErrClosed, and items that are not done are redelivered after
// the next Open. Further calls do nothing.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	q.wake()
	if q.current == nil {
		return nil
	}
	if q.end(); q.err != nil {
		return fmt.Errorf("closing the queue: %w", q.err)
	}
	return nil
}
