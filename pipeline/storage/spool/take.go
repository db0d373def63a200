package spool

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// Take returns the oldest item that was not taken yet, waiting for one if necessary. Items of a log
// that cannot be read now come later. It returns ErrClosed, or the error of ctx even if there is an
// item.
func (q *Queue) Take(ctx context.Context) (Item, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Item{}, err
		}
		item, wait, err := q.tryTake()
		if err != nil || wait == nil {
			return item, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
}

// TryTake is like Take without waiting.
func (q *Queue) TryTake() (Item, bool) {
	item, wait, err := q.tryTake()
	return item, wait == nil && err == nil
}

// tryTake returns an item, or a channel to wait for before the next attempt.
func (q *Queue) tryTake() (item Item, wait <-chan struct{}, err error) {
	q.taking.Lock()
	defer q.taking.Unlock()
	for {
		item, file, wait, err := q.next()
		if file == nil {
			return item, wait, err
		}
		q.read(file)
		q.sweep() // it may turn out to be empty
	}
}

// next takes an item from memory, or returns the log whose file must be read first, or a channel to
// wait for.
func (q *Queue) next() (item Item, file *part, wait <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return item, nil, nil, ErrClosed
	}
	p := q.first()
	switch {
	case p == nil || p.onDisk && p.pending > 0: // the file is incomplete
		return item, nil, q.changed, nil
	case p.onDisk:
		return item, p, nil, nil
	}
	return p.takeItem(), nil, nil, nil
}

// first returns the log whose items are next. Items that are already in memory come before those of
// a file that must be read.
func (q *Queue) first() (first *part) {
	for _, p := range q.parts {
		switch {
		case !p.waiting() || p.suspended:
		case !p.onDisk && p != q.current:
			return p
		case first == nil:
			first = p
		}
	}
	return first
}

// read loads the items of a log into memory, or schedules another attempt. The caller holds taking.
func (q *Queue) read(p *part) {
	var items []Item
	var found State
	report, err := q.logs.Replay(p.epoch, func(seq uint64, payload []byte) error {
		r, err := readRecord(payload)
		if _, done := p.done[seq]; done || err != nil || r.kind != kindItem {
			return nil
		}
		item := Item{Payload: slices.Clone(r.payload), Since: r.since, Weight: r.weight,
			size: int64(len(r.payload)), epoch: p.epoch, seq: seq}
		items = append(items, item)
		found.addState(item.state())
		return nil
	})
	final := err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, wal.ErrVersion)
	if cause := unreadable(report); err == nil && cause != nil && p.reads < maxReads {
		final, err = false, cause
	}
	if !final {
		q.retryLater(p, err)
		return
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrGone
	}
	l := Loss{Epoch: p.epoch, Report: report, Err: err}
	if q.loaded(p, items, found, &l); l.Items > 0 || l.Recovered > 0 || l.Gone != (State{}) {
		q.opt.Lost(l)
	}
}

// unreadable returns why the disk did not return all of a log, or nil. The next attempt may
// succeed.
func unreadable(r wal.Report) error {
	for _, d := range r.Damage {
		if d.Err != nil {
			return d.Err
		}
	}
	return nil
}

// retryLater schedules the next attempt to read a log.
func (q *Queue) retryLater(p *part, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p.cause, p.suspended = err, true
	p.reads++
	time.AfterFunc(retryRead, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		p.suspended = false
		q.wake()
	})
}

// loaded stores the items that were read. l says how the file was read; loaded adds the items that
// the log should hold but that are missing.
func (q *Queue) loaded(p *part, items []Item, found State, l *Loss) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.Gone = p.unread
	l.Gone.sub(found)
	q.state.sub(l.Gone)
	sound := l.Err == nil && l.Report.Sound()
	switch {
	case p.unknown && !sound:
		l.Items = lostRecords(&l.Report)
	case sound:
		l.Recovered = p.lost
	case l.Gone.Items < 0:
		l.Recovered = min(p.lost, uint64(-l.Gone.Items))
	}
	l.Items = max(l.Items, uint64(max(l.Gone.Items, 0)))
	p.lost -= l.Recovered
	p.damaged = p.damaged || l.Items > 0 || l.Gone != (State{})
	p.items, p.onDisk, p.unread, p.done, p.cause, p.unknown = items, false, State{}, nil, nil, false
}

// Waiting returns the number of items that were not taken, and the time when the oldest was put, as
// far as known without reading files: for items on disk it is the start of their log. The time is
// zero when nothing waits.
func (q *Queue) Waiting() (items int64, oldest time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range q.parts {
		switch items += p.unread.Items + int64(len(p.items)); {
		case !oldest.IsZero() || !p.waiting():
		case p.onDisk:
			oldest = time.Unix(0, int64(p.epoch))
		default:
			oldest = p.items[0].Since
		}
	}
	return items, oldest
}
