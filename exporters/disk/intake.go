package disk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
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
	for taken := 0; ; {
		l, record, wait, err := e.append(b, taken)
		if err != nil {
			return err
		}
		if l != nil {
			if err := e.commit(ctx, l, record.ticket); err != nil {
				return err
			}
			if taken += record.spans; taken >= b.Len() || record.spans == 0 {
				e.Publish(b)
				return nil
			}
			patience = nil
			continue // the rest is for the next memtable, or the next record
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

// errIntern marks errors of the spans themselves. A Batch is validated, so there should be none.
var errIntern = errors.New("the spans cannot be read")

var errBusy = errors.New("spans come faster than the span store can write segments")

// record is what was appended at once.
type record struct {
	ticket wal.Ticket
	spans  int
}

// append puts spans, from the one with a number on, into the active memtable and its log. Where there is no room it returns what to wait for
// instead. Queries do not wait for it: they need mu only, and the memtable lets them in between spans.
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
		return nil, r, nil, pipeline.Overloaded(fmt.Errorf("the disk of the span store is too slow: %w", err), 0)
	case errors.Is(err, wal.ErrTooLarge):
		return nil, r, nil, pipeline.Permanent(fmt.Errorf("storing a span: %w", err))
	case errors.Is(err, errIntern):
		return nil, r, nil, pipeline.Permanent(fmt.Errorf("storing the request: %w", err))
	case err != nil:
		return nil, r, nil, fmt.Errorf("writing spans: %w", err)
	}
	return l, r, nil, nil
}

// ready returns a memtable that takes spans, and makes it if need be; or what to wait for. The caller holds intake.
func (e *exporter) ready() (l *live, wait <-chan struct{}, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, nil, pipeline.ErrStopping
	}
	if e.full != nil {
		return nil, nil, e.full
	}
	if l := e.active; l != nil {
		l.failed = l.failed || errors.Is(l.log.Ready(), wal.ErrFailed)
		if !l.failed && !l.table.Full() {
			return l, nil, nil
		}
	}
	most := maxFrozen // with the one that is frozen next
	if e.active != nil {
		most--
	}
	if len(e.frozen) > most {
		return nil, e.room, e.stuck
	}
	e.freeze()
	e.mu.Unlock()
	l, err = e.begin()
	e.mu.Lock()
	if err != nil {
		return nil, nil, fmt.Errorf("the span store cannot make a new log: %w", err)
	}
	e.active = l
	return l, nil, nil
}

// append interns the spans and queues the record. The caller holds the store's intake, so that records are in the log in the order in which
// their definitions were made. Until the record is queued, the log lacks definitions that the memtable has, and later records need: whatever
// happens on the way, a panic included, then ends the memtable's time.
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
	t, err := l.log.Append(rows.Parts...)
	if err != nil {
		return record{}, err
	}
	l.failed = false
	return record{t, rows.Spans}, nil
}

// commit waits until the record is in the log for good.
func (e *exporter) commit(ctx context.Context, l *live, t wal.Ticket) error {
	err := l.log.Commit(ctx, t)
	if err == nil || !errors.Is(err, wal.ErrFailed) {
		return err
	}
	if !l.told.Swap(true) {
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
