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
var ErrClosed = errors.New("the queue is closed")

// Options are those of a queue. Now is needed. How much the queue holds is bounded by its owner.
type Options struct {
	LogSize    int64            // size at which the next log is begun, which is also what is read at once; 0: 16 MiB
	Quarantine string           // directory for damaged logs; "": `damaged` in the queue's own
	Now        func() time.Time // the clock
	// Lost is told of items that the disk has lost, or given back after all; nil: nobody is. It must not call the queue.
	Lost func(Loss)
}

// Loss says what the disk did to a log. Where its file could be read it stands in Options.Quarantine as soon as the rest of it is done.
type Loss struct {
	Epoch  uint64 // of the log, in hex the first part of the file's name
	Items  uint64 // that are gone, as far as can be told
	Gone   State  // what State does not count any more; below zero: counts from now on; zero for what was found at Open
	Report wal.Report
	Err    error // why the log could not be read at all; nil if it could
}

// sizePerRecord bounds the number of records in a log: one for so many bytes of LogSize. An item in memory takes a few hundred bytes beside
// its payload.
const sizePerRecord = 512

// doneBatch is how many done records may wait for the next put before they are written by themselves.
const doneBatch = 256

// Item is what was put. Of Value and Payload one is set: the former as long as the item has not left memory.
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

	taking sync.Mutex // held by who looks for the next item, so that a log is read once

	mu        sync.Mutex
	parts     []*part // oldest first
	current   *part   // the one being written, the last of parts; nil: none
	lastEpoch uint64
	state     State
	undone    int           // done records that nobody has committed yet
	changed   chan struct{} // closed and replaced when something has happened that Take may wait for
	closed    bool
	err       error // of the last attempt to make, read or remove a log; nil after a success
}

// State tells how much a queue holds: items that are not done, those in flight included, their payloads and their weight.
type State struct{ Items, Bytes, Weight int64 }

func (s *State) add(o State) {
	s.Items, s.Bytes, s.Weight = s.Items+o.Items, s.Bytes+o.Bytes, s.Weight+o.Weight
}

func (s *State) sub(o State) { s.add(State{-o.Items, -o.Bytes, -o.Weight}) }

// Put adds an item and returns when it is durable. Its payload is the concatenation of parts; value is what Take returns as long as the item
// is in memory. Errors wrap ErrClosed or wal.ErrTooLarge, or say that the disk failed (see vfs.NoSpace). Then the item is not in the queue,
// but one whose disk failed may turn up after the next start.
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
		return fmt.Errorf("putting into the queue: %w", err)
	}
	return nil
}

// append hands the record to the log. The caller settles what became of it.
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
	q.undone = 0 // they are committed with this one
	q.state.add(item.state())
	return a, nil
}

// settle takes an item in, or forgets it.
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
		p.unread.add(item.state())
	default:
		p.items = append(p.items, item)
	}
	q.wake()
}

// appended is a record in a log, which is durable once it is committed.
type appended struct {
	part   *part
	log    *wal.Log // of the part, which gives it up when the log is ended
	ticket wal.Ticket
}

// commit returns nil when the record is durable, or is none.
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

// writable returns the log to write to, a new one when the current one is long enough.
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

// end ends the current log. What it holds leaves memory, unless it is what is taken next; what was committed is in the file, also when that
// has failed since.
func (q *Queue) end() {
	p, log := q.current, q.current.log
	q.current, p.log = nil, nil
	q.err = log.Close()
	p.failed = q.err != nil
	if first := slices.IndexFunc(q.parts, (*part).waiting); first >= 0 && q.parts[first] != p && !p.begun {
		p.forget()
	}
}

// abandon stops writing to a log that takes nothing any more. The next put begins another one.
func (q *Queue) abandon(p *part) {
	if q.current == p && errors.Is(p.log.Ready(), wal.ErrFailed) {
		q.end()
	}
}

func (q *Queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// Done says that an item has been dealt with: it is never taken again, unless the process dies before that is on disk. It is called once
// for every item taken.
func (q *Queue) Done(item *Item) {
	a := q.done(item)
	q.sweep()
	if err := a.commit(); err != nil { // the next log says it again when this one is removed
		q.mu.Lock()
		defer q.mu.Unlock()
		q.abandon(a.part)
	}
}

// done returns what is to be committed if it should not wait for a put.
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
		return now // should the process die now, the item is taken once more
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

// State returns how much the queue holds.
func (q *Queue) State() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state
}

// Err returns why the disk could not be used the last time it was tried, or why a log that is still to be read could not be, nil if all is
// well.
func (q *Queue) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.IndexFunc(q.parts, func(p *part) bool { return p.cause != nil }); i >= 0 && q.err == nil {
		return q.parts[i].cause
	}
	return q.err
}

// Close ends the queue: who waits in Take is told, and what is not done is taken again after the next Open. Closing again does nothing.
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
