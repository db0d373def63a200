package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// maxFrozen is the number of memtables that may wait for a flush before intake waits too.
const maxFrozen = 1

// Consume stores the spans of b and returns nil when all of them are searchable and as durable as
// the setting sync says. After an error some of them may be stored; if they are sent again, queries
// show them once.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := b.Chunks(); err != nil { // encodes objects here, without the lock
		return err
	}
	var deadline <-chan time.Time
	for taken := 0; ; {
		l, record, wait, err := e.append(b, taken)
		if err != nil {
			return err
		}
		if l != nil {
			if err := e.commit(ctx, l, record.ticket); err != nil {
				return err
			}
			e.arrived.Store(e.env.Now().UnixNano())
			if taken += record.spans; taken >= b.Len() || record.spans == 0 {
				e.Publish(b)
				return nil
			}
			deadline = nil
			continue // the rest goes to the next record or memtable
		}
		if deadline == nil {
			t := time.NewTimer(time.Duration(e.config.MaxWait))
			defer t.Stop()
			deadline = t.C
			e.metrics.waits.Inc()
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
func (e *exporter) append(b *otlpdata.Batch, from int) (l *live, r record, wait <-chan struct{}, err error) {
	e.intake.Lock()
	defer e.intake.Unlock()
	if l, wait, err = e.ready(); l == nil {
		return nil, r, wait, err
	}
	l.table.Arrived(e.env.Now())
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

// ready returns a memtable that takes spans, creating it if necessary, or a channel to wait for.
// The caller holds intake.
func (e *exporter) ready() (l *live, wait <-chan struct{}, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, nil, pipeline.ErrStopping
	}
	if err := cmp.Or(e.moved, e.full); err != nil {
		e.refused++
		return nil, nil, err
	}
	if l := e.active; l != nil {
		l.failed = l.failed || errors.Is(l.log.Ready(), wal.ErrFailed)
		if !l.failed && !l.table.Full() {
			return l, nil, nil
		}
	}
	limit := maxFrozen // counts the one that is frozen next
	if e.active != nil {
		limit--
	}
	if len(e.frozen) > limit {
		return nil, e.capacity, e.stuck
	}
	e.freeze()
	e.mu.Unlock()
	l, err = e.begin()
	e.mu.Lock()
	if err != nil {
		e.noLog = fmt.Errorf("span store: cannot create a write-ahead log: %w", err)
		e.refused++
		return nil, nil, e.noLog
	}
	e.noLog, e.active = nil, l
	return l, nil, nil
}

// retryLog tries again to create a write-ahead log. Without it, a store that clients avoid because
// it is not ready would never be ready again.
func (e *exporter) retryLog() {
	e.intake.Lock()
	defer e.intake.Unlock()
	e.mu.Lock()
	failed := e.noLog != nil
	e.mu.Unlock()
	if failed {
		_, _, _ = e.ready() // the error is in noLog
	}
}

// trouble returns why the store is degraded, or nil. If it refuses all spans, the error is marked
// with pipeline.NotReady.
func (e *exporter) trouble() (refused int64, err error) {
	e.intake.Lock() // for active.failed
	defer e.intake.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	err = cmp.Or(e.moved, errors.Join(e.stuck, e.full, e.noLog))
	if err == nil {
		e.refused = 0
		return 0, nil
	}
	noTable := e.active == nil || e.active.failed || e.active.table.Full()
	if e.moved != nil || e.full != nil || e.noLog != nil || e.stuck != nil && noTable && len(e.frozen) >= maxFrozen {
		err = pipeline.NotReady(err)
	}
	return e.refused, err
}

// append interns the spans and queues the log record. The caller holds the store's intake, so that
// records are logged in the order in which their definitions were made. Until the record is queued,
// the log lacks definitions that the memtable has and later records need. If anything fails in
// between, a panic included, the memtable therefore takes no more spans.
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
func (e *exporter) commit(ctx context.Context, l *live, t wal.Ticket) error {
	err := l.log.Commit(ctx, t)
	if err == nil || !errors.Is(err, wal.ErrFailed) {
		return err
	}
	if !l.reported.Swap(true) {
		e.metrics.logFailures.Inc()
		e.log.Error("write-ahead log failed; refusing spans until a new log can be created", zap.Error(err))
	}
	return fmt.Errorf("span store: cannot write to the write-ahead log: %w", err)
}

// signalCapacity wakes all callers that wait for capacity. The caller holds mu.
func (e *exporter) signalCapacity() {
	close(e.capacity)
	e.capacity = make(chan struct{})
}
