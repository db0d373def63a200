package disk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/internal/wal"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// maxFrozen is how many memtables may wait to be flushed before intake waits too.
const maxFrozen = 1

// Consume stores the spans of b and returns nil when all of them are as safe as sync says, and searchable. After an error some of them may
// have been stored all the same; sent again they are shown once.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := b.Segments(); err != nil { // objects are encoded here, without the lock
		return err
	}
	var patience <-chan time.Time
	for {
		l, ticket, wait, err := e.append(b)
		if err != nil {
			return err
		}
		if l != nil {
			return e.commit(ctx, l, ticket)
		}
		if patience == nil {
			t := time.NewTimer(time.Duration(e.config.MaxWait))
			defer t.Stop()
			patience = t.C
			e.metrics.waits.Inc()
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		case <-patience:
			return pipeline.Overloaded(errBusy, 0)
		}
	}
}

var errBusy = errors.New("spans come faster than the span store can write segments")

// append puts the spans into the active memtable and its log. Where there is no room it returns what to wait for instead.
func (e *exporter) append(b *otlpdata.Batch) (l *live, t wal.Ticket, wait <-chan struct{}, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, 0, nil, pipeline.ErrStopping
	}
	if e.full != nil {
		return nil, 0, nil, e.full
	}
	if e.active != nil && (e.active.failed || e.active.table.Full()) {
		if len(e.frozen) >= maxFrozen {
			return nil, 0, e.room, e.stuck
		}
		e.freeze()
	}
	if e.active == nil {
		if err := e.begin(); err != nil {
			return nil, 0, nil, fmt.Errorf("the span store cannot make a new log: %w", err)
		}
	}
	l = e.active
	l.table.Arrived(e.env.Now())
	t, err = l.append(b)
	if err != nil {
		if errors.Is(err, wal.ErrFull) {
			return nil, 0, nil, pipeline.Overloaded(fmt.Errorf("the disk of the span store is too slow: %w", err), 0)
		}
		l.failed = true
		return nil, 0, nil, fmt.Errorf("writing spans: %w", err)
	}
	return l, t, nil, nil
}

// append interns the spans and queues the record. The caller holds the store's lock, so that records are in the log in the order in which
// their definitions were made. After an error other than wal.ErrFull the log lacks definitions that the memtable has.
func (l *live) append(b *otlpdata.Batch) (wal.Ticket, error) {
	if err := l.log.Ready(min(b.Size(), wal.MaxPayload)); err != nil {
		return 0, err
	}
	record, err := l.table.Append(b)
	if err != nil {
		return 0, err
	}
	return l.log.Append(record.Parts...)
}

// commit waits until the record is in the log for good.
func (e *exporter) commit(ctx context.Context, l *live, t wal.Ticket) error {
	err := l.log.Commit(ctx, t)
	if err == nil || !errors.Is(err, wal.ErrFailed) {
		return err
	}
	e.mu.Lock()
	first := !l.failed
	l.failed = true
	e.mu.Unlock()
	if first {
		e.metrics.logFailures.Inc()
		e.log.Error("the log of the span store failed; spans are refused until a new one can be made", zap.Error(err))
	}
	return fmt.Errorf("the span store cannot write its log: %w", err)
}

// letWait wakes all who wait for room. The caller holds mu.
func (e *exporter) letWait() {
	close(e.room)
	e.room = make(chan struct{})
}
