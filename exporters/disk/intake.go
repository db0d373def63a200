package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// maxFrozen is the maximum number of memtables that wait for a flush. Intake waits before it
// freezes another one.
const maxFrozen = 1

// intake makes arriving spans durable and searchable. It owns the memtables and their logs.
type intake struct {
	*common
	chunks *memtable.Pool
	wake   chan struct{} // tells the maintenance loop that a memtable was frozen; holds one token

	arrived atomic.Int64 // when spans were last stored, in nanoseconds since the Unix epoch

	writing   sync.Mutex // held while spans are interned and logs are made; see the order of locks in doc.go
	lastEpoch uint64     // guarded by writing

	mu       sync.Mutex    // guards all fields below
	active   *live         // accepts spans; nil: the next request creates one
	frozen   []*live       // to be flushed, oldest first
	capacity chan struct{} // closed and replaced when a memtable was flushed
	moved    error         // why spans are refused now: the path no longer refers to the folder
	full     error         // why spans are refused now: the disk is full
	noLog    error         // why the last write-ahead log could not be created
	stuck    error         // why the last flush failed
	refused  int64         // requests refused because of moved, full or noLog since the store was degraded
	closed   bool
}

// store stores the spans of b, see exporter.Consume.
func (in *intake) store(ctx context.Context, b *otlpdata.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := b.Chunks(); err != nil { // encodes objects here, without the lock
		return err
	}
	var deadline <-chan time.Time
	for taken := 0; ; {
		l, record, wait, err := in.append(b, taken)
		if err != nil {
			return err
		}
		if l != nil {
			if err := in.commit(ctx, l, record.ticket); err != nil {
				return err
			}
			in.arrived.Store(in.env.Now().UnixNano())
			if taken += record.spans; taken >= b.Len() || record.spans == 0 {
				return nil
			}
			deadline = nil
			continue // the rest goes to the next record or memtable
		}
		if deadline == nil {
			t := time.NewTimer(time.Duration(in.config.MaxWait))
			defer t.Stop()
			deadline = t.C
			in.metrics.waits.Inc()
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return pipeline.Overloaded(errBusy, 0)
		}
	}
}

// errIntern marks errors in the spans themselves. A Batch is validated, so none are expected.
var errIntern = errors.New("spans cannot be decoded")

var errBusy = errors.New("span store overloaded: spans arrive faster than segments can be written")

// record is the result of one append.
type record struct {
	ticket wal.Ticket
	spans  int
}

// append adds spans, starting at number from, to the active memtable and its log. Without capacity
// it returns a channel to wait for. Queries do not wait for it: they only need mu, and the memtable
// admits them between spans.
func (in *intake) append(b *otlpdata.Batch, from int) (l *live, r record, wait <-chan struct{}, err error) {
	in.writing.Lock()
	defer in.writing.Unlock()
	if l, wait, err = in.ready(); l == nil {
		return nil, r, wait, err
	}
	l.table.Arrived(in.env.Now())
	r, err = l.append(b, from)
	switch {
	case errors.Is(err, wal.ErrFull):
		return nil, r, nil, pipeline.Overloaded(fmt.Errorf("span store: disk is too slow: %w", err), 0)
	case errors.Is(err, wal.ErrTooLarge):
		return nil, r, nil, pipeline.Permanent(fmt.Errorf("storing a span: %w", err))
	case errors.Is(err, errIntern):
		return nil, r, nil, pipeline.Permanent(fmt.Errorf("storing the request: %w", err))
	case err != nil:
		return nil, r, nil, fmt.Errorf("writing spans to the write-ahead log: %w", err)
	}
	return l, r, nil, nil
}

// ready returns a memtable that accepts spans, creating it if necessary, or a channel to wait for.
// The caller holds writing.
func (in *intake) ready() (l *live, wait <-chan struct{}, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return nil, nil, pipeline.ErrStopping
	}
	if err := cmp.Or(in.moved, in.full); err != nil {
		in.refused++
		return nil, nil, err
	}
	if l := in.active; l != nil {
		l.failed = l.failed || errors.Is(l.log.Ready(), wal.ErrFailed)
		if !l.failed && !l.table.Full() {
			return l, nil, nil
		}
	}
	limit := maxFrozen // counts the one that is frozen next
	if in.active != nil {
		limit--
	}
	if len(in.frozen) > limit {
		return nil, in.capacity, in.stuck
	}
	in.freeze()
	in.mu.Unlock()
	l, err = in.begin()
	in.mu.Lock()
	if err != nil {
		in.noLog = fmt.Errorf("span store: cannot create a write-ahead log: %w", err)
		in.refused++
		return nil, nil, in.noLog
	}
	in.noLog, in.active = nil, l
	return l, nil, nil
}

// noteEpoch makes sure that the epoch is not reused. The caller holds writing, or is Start.
func (in *intake) noteEpoch(epoch uint64) { in.lastEpoch = max(in.lastEpoch, epoch) }

// note sets one of the reasons moved, full and stuck; nil resets it.
func (in *intake) note(reason *error, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	*reason = err
}

// open accepts spans.
func (in *intake) open() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = false
}

// close refuses further spans and freezes the memtable.
func (in *intake) close() {
	in.writing.Lock()
	defer in.writing.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.freeze()
	in.signalCapacity()
}

// receives reports whether spans arrived within quietTime.
func (in *intake) receives() bool {
	return in.env.Now().Sub(time.Unix(0, in.arrived.Load())) < quietTime
}

// retryLog retries the creation of a write-ahead log. Without it, a store would stay not ready
// forever, because clients avoid a store that is not ready.
func (in *intake) retryLog() {
	in.writing.Lock()
	defer in.writing.Unlock()
	in.mu.Lock()
	failed := in.noLog != nil
	in.mu.Unlock()
	if failed {
		_, _, _ = in.ready() // the error is in noLog
	}
}

// trouble returns why the store is degraded, or nil. If it refuses all spans, the error is marked
// with pipeline.NotReady.
func (in *intake) trouble() (refused int64, err error) {
	in.writing.Lock() // for active.failed
	defer in.writing.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	err = cmp.Or(in.moved, errors.Join(in.stuck, in.full, in.noLog))
	if err == nil {
		in.refused = 0
		return 0, nil
	}
	noTable := in.active == nil || in.active.failed || in.active.table.Full()
	if in.moved != nil || in.full != nil || in.noLog != nil || in.stuck != nil && noTable && len(in.frozen) >= maxFrozen {
		err = pipeline.NotReady(err)
	}
	return in.refused, err
}

// append interns the spans and queues the log record. The caller holds writing, so that records are
// logged in the order in which their definitions were made. Until the record is queued, the log
// lacks definitions that the memtable has and later records need. If anything fails in between,
// including a panic, the memtable therefore accepts no more spans.
func (l *live) append(b *otlpdata.Batch, from int) (record, error) {
	if err := l.log.Ready(); err != nil {
		l.failed = !errors.Is(err, wal.ErrFull)
		return record{}, err
	}
	l.failed = true
	rows, err := l.table.Append(b, from)
	if err != nil {
		return record{}, fmt.Errorf("%w: %w", errIntern, err)
	}
	t, err := l.log.AppendAll(rows.Records...)
	if err != nil {
		return record{}, err
	}
	l.failed = false
	return record{t, rows.Spans}, nil
}

// commit waits until the record is durable.
func (in *intake) commit(ctx context.Context, l *live, t wal.Ticket) error {
	err := l.log.Commit(ctx, t)
	if err == nil || !errors.Is(err, wal.ErrFailed) {
		return err
	}
	if !l.reported.Swap(true) {
		in.metrics.logFailures.Inc()
		in.log.Error("write-ahead log failed; refusing spans until a new log can be created", zap.Error(err))
	}
	return fmt.Errorf("span store: cannot write to the write-ahead log: %w", err)
}

// signalCapacity wakes all callers that wait for capacity. The caller holds mu.
func (in *intake) signalCapacity() {
	close(in.capacity)
	in.capacity = make(chan struct{})
}
