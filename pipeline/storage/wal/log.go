package wal

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Log is a log that is being written. All methods may be called concurrently; records are in the
// order of Append calls.
type Log struct {
	dir   *Dir
	epoch uint64
	opts  Options

	mu      sync.Mutex // guards the fields up to lead
	pending []byte     // complete records that no leader has taken yet
	last    uint64     // sequence number of the last record appended
	taken   uint64     // ... of the last record taken by a leader
	acked   uint64     // ... of the last committed record
	durable uint64     // ... of the last record known to be synced
	next    *group     // the records in pending
	current *group     // the records taken last
	failed  error      // final; wraps ErrFailed
	closed  bool
	stats   Stats

	// lead holds one token. The goroutine that has taken it is the leader: it alone may use the
	// file, and returns the token.
	lead chan struct{}
	disk disk

	stop       chan struct{} // closed by Close
	background sync.WaitGroup
	closing    sync.Once
	closeErr   error
}

// group is the records of one write. All its waiters get the same result.
type group struct {
	done chan struct{} // closed once err is set
	err  error
}

func newGroup() *group { return &group{done: make(chan struct{})} }

func (g *group) finish(err error) {
	g.err = err
	close(g.done)
}

// Ticket identifies an appended record: its sequence number.
type Ticket uint64

// Create starts a log. Its file and name are durable on return. The epoch must never have been used
// in this directory before, not even by a removed log, because spares hold old records; and senders
// of payloads should not be able to guess it. The error wraps fs.ErrExist if files of the epoch
// exist.
func (d *Dir) Create(epoch uint64) (*Log, error) {
	p, err := d.newPart(epoch, 0)
	if err != nil {
		return nil, err
	}
	l := &Log{
		dir:   d,
		epoch: epoch,
		opts:  d.opts,
		next:  newGroup(),
		lead:  make(chan struct{}, 1),
		disk:  disk{part: p},
		stop:  make(chan struct{}),
	}
	l.lead <- struct{}{}
	if l.opts.Mode == SyncInterval {
		l.background.Go(l.syncEveryInterval)
	}
	return l, nil
}

// Epoch returns the number that the log was created with.
func (l *Log) Epoch() uint64 { return l.epoch }

// Append copies a record into memory, to be written by the next Commit, without waiting. The
// payload is the concatenation of parts and may be empty. If the error wraps ErrFull, ErrTooLarge,
// ErrClosed or ErrFailed, nothing was appended.
func (l *Log) Append(parts ...[]byte) (Ticket, error) {
	return l.AppendAll(parts)
}

// AppendAll is like Append for several records, each given by the parts of its payload. After an
// error, none was appended. It returns the ticket of the last record.
func (l *Log) AppendAll(records ...[][]byte) (Ticket, error) {
	for _, parts := range records {
		if n := size(parts); n > MaxPayload {
			return 0, fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, n, MaxPayload)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refuses(); err != nil {
		return 0, err
	}
	for _, parts := range records {
		l.last++
		h := header{length: uint32(size(parts)), epoch: l.epoch, seq: l.last, durable: l.durable}
		l.pending = appendRecord(l.pending, h, parts)
		l.stats.Records++
	}
	return Ticket(l.last), nil
}

func size(parts [][]byte) (n int) {
	for _, p := range parts {
		n += len(p)
	}
	return n
}

// Ready returns the error that Append would return for a payload of up to MaxPayload bytes. For a
// caller that serializes its calls of Append, nil holds until its next Append, because only Append
// uses up capacity, unless the log fails or is closed in between.
func (l *Log) Ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refuses()
}

func (l *Log) refuses() error {
	switch {
	case l.failed != nil:
		return l.failed
	case l.closed:
		return ErrClosed
	case len(l.pending) >= l.opts.MaxPending:
		return ErrFull
	}
	return nil
}

// Commit returns nil when the record, and every record appended before it, is as durable as the
// mode says. There is no timer: the first waiter writes what all callers have appended so far, and
// later ones wait for the next write. If ctx ends first, Commit returns its error, but the record
// stays in the log and is written by a later Commit or Close. An error that wraps ErrFailed is
// final, but recovery may still find the record.
func (l *Log) Commit(ctx context.Context, t Ticket) error {
	g, err := l.groupOf(uint64(t))
	if g == nil {
		return err
	}
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		return ctx.Err()
	case <-l.lead:
	}
	err = l.leadUntilDone(ctx, g)
	l.lead <- struct{}{}
	return err
}

// groupOf returns the group of a record, or nil if the result of its Commit is known.
func (l *Log) groupOf(seq uint64) (*group, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case seq <= l.acked:
		return nil, nil
	case seq > l.last:
		return nil, fmt.Errorf("commit: log %016x has no record %d", l.epoch, seq)
	case l.failed != nil:
		return nil, l.failed
	case seq > l.taken:
		return l.next, nil
	}
	return l.current, nil
}

// leadUntilDone writes the group unless the previous leader has. The caller holds the token.
func (l *Log) leadUntilDone(ctx context.Context, g *group) error {
	select {
	case <-g.done:
		return g.err
	default:
	}
	if err := l.waitGap(ctx); err != nil {
		return err
	}
	l.flush(l.opts.Mode == SyncAlways)
	<-g.done
	return g.err
}

// waitGap waits until Options.MinGap has passed since the last sync.
func (l *Log) waitGap(ctx context.Context) error {
	wait := l.opts.MinGap - time.Since(l.disk.lastSync)
	if l.opts.MinGap == 0 || wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-l.stop:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Log) syncEveryInterval() {
	tick := time.NewTicker(l.opts.Interval)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		<-l.lead
		l.flush(true)
		l.lead <- struct{}{}
	}
}

// Close commits what was appended, syncs unless the mode is SyncOS, and closes the file. Commit
// still returns the results of earlier records. The error of a failed log is returned again.
// Further calls return the same result.
func (l *Log) Close() error {
	l.closing.Do(func() {
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
		close(l.stop)
		l.background.Wait()
		<-l.lead
		l.flush(l.opts.Mode != SyncOS)
		l.closeErr = l.disk.close(l.failure())
		l.lead <- struct{}{}
	})
	return l.closeErr
}

func (l *Log) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}
