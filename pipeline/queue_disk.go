package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/spool"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// diskQueue is the queue on disk: what is put is synced before put returns, and is there after the process has died.
type diskQueue struct {
	room
	dir   string
	env   Env
	log   *zap.Logger
	evict func(queued)       // told of batches dropped for newer ones
	lost  func(spans int64)  // told of spans that were in the queue and are gone; below zero: that have turned up again
	gone  prometheus.Counter // batches that damage has cost

	spool  atomic.Pointer[spool.Queue] // nil before open: metrics are read already
	failed atomic.Bool                 // the disk, as was reported last
	report func(error)
	lock   io.Closer
	taking context.Context
	end    context.CancelFunc
}

func newDiskQueue(c QueueConfig, set Settings, evict func(queued), lost func(spans int64), gone prometheus.Counter) *diskQueue {
	q := &diskQueue{room: room{config: c}, dir: path.Join(set.Dir, "queue"), env: set.Env, log: set.Logger, report: set.Report,
		evict: evict, lost: lost, gone: gone}
	q.taking, q.end = context.WithCancel(context.Background())
	return q
}

// open recovers what an earlier process has left.
func (q *diskQueue) open() error {
	if err := q.env.FS.MkdirAll(q.dir); err != nil {
		return fmt.Errorf("sending_queue: %w", err)
	}
	lock, err := q.env.FS.Lock(path.Join(q.dir, "LOCK"))
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return fmt.Errorf("sending_queue: %s is in use: %w", q.dir, err)
	case err != nil:
		return fmt.Errorf("sending_queue: %w", err)
	}
	started := q.env.Now()
	files, err := spool.Open(q.env.FS, path.Join(q.dir, "log"), spool.Options{Now: q.env.Now,
		Quarantine: path.Join(q.dir, "damaged"), Lost: q.noteLoss})
	if err != nil {
		return errors.Join(fmt.Errorf("sending_queue: %w", err), lock.Close())
	}
	q.lock = lock
	s := files.State()
	q.force(q.loadOfState(s))
	q.spool.Store(files)
	q.reportDisk()
	q.log.Info("sending queue is open", zap.String("directory", q.dir), zap.Int64("batches", s.Items), zap.Int64("spans", s.Weight),
		zap.Int64("bytes", s.Bytes), zap.Duration("took", q.env.Now().Sub(started)))
	return nil
}

// loadOfState is the load of several batches.
func (q *diskQueue) loadOfState(s spool.State) load {
	l := q.config.loadOf(s.Bytes, s.Weight)
	if q.config.Sizer == sizerRequests {
		l.size = s.Items
	}
	return l
}

// reportDisk tells of a disk that has failed or works again.
func (q *diskQueue) reportDisk() {
	err := q.spool.Load().Err()
	if failed := err != nil; q.failed.Swap(failed) == failed {
		return
	}
	if err != nil {
		err = fmt.Errorf("sending_queue: %w", err)
	}
	q.report(err)
}

func (q *diskQueue) noteLoss(l spool.Loss) {
	if l.Gone != (spool.State{}) {
		q.leave(q.loadOfState(l.Gone))
		q.lost(l.Gone.Weight)
	}
	if l.Gone.Items < 0 {
		q.log.Warn("batches of the sending queue that could not be read can be read again", zap.Int64("batches", -l.Gone.Items))
		return
	}
	cause := l.Err
	if cause == nil {
		cause = fmt.Errorf("%d records are missing at %d places of the file", l.Report.Lost, len(l.Report.Damage))
	}
	q.gone.Add(float64(l.Items))
	q.log.Error("the disk has lost batches of the sending queue; what is left of their files is set aside in "+path.Join(q.dir, "damaged"),
		zap.String("log", fmt.Sprintf("%016x", l.Epoch)), zap.Uint64("batches", l.Items), zap.Error(cause))
}

func (q *diskQueue) put(ctx context.Context, b *otlpdata.Batch) error {
	parts, err := encodeBatch(b)
	if err != nil {
		return Permanent(err)
	}
	bytes := 0
	for _, p := range parts {
		bytes += len(p)
	}
	if bytes > spool.MaxPayload {
		return &otlpdata.LimitError{Limit: "bytes of a batch in a sending_queue on disk", Max: spool.MaxPayload, TooLarge: true}
	}
	l := q.config.loadOf(int64(bytes), int64(b.Len()))
	if err := q.enter(ctx, l, q.dropOldest); err != nil {
		return err
	}
	err = q.spool.Load().Put(b, l.spans, parts...)
	q.reportDisk()
	if err != nil {
		q.leave(l)
	}
	if errors.Is(err, spool.ErrClosed) {
		return ErrStopping
	}
	return err
}

func (q *diskQueue) dropOldest() bool {
	item, ok := q.spool.Load().TryTake()
	if !ok {
		return false
	}
	if i, ok := q.queued(item); ok {
		q.evict(i)
		q.done(i)
	}
	return true
}

// queued makes a batch of an item. One that cannot be read is done with, and counted as lost.
func (q *diskQueue) queued(item spool.Item) (queued, bool) {
	i := queued{load: q.config.loadOf(item.Size(), item.Weight), since: item.Since, spool: &item}
	b, inMemory := item.Value.(*otlpdata.Batch)
	if !inMemory {
		var err error
		if b, err = decodeBatch(item.Payload); err == nil && int64(b.Len()) != item.Weight {
			err = fmt.Errorf("%w: it holds %d spans", errPayload, b.Len())
		}
		if err != nil {
			q.log.Error("a batch of the sending queue cannot be read and is dropped", zap.Int64("spans", item.Weight), zap.Error(err))
			q.lost(item.Weight)
			q.done(i)
			return queued{}, false
		}
	}
	i.batch = b
	return i, true
}

func (q *diskQueue) take() (queued, bool) {
	for {
		item, err := q.spool.Load().Take(q.taking)
		if err != nil {
			return queued{}, false
		}
		q.reportDisk()
		if i, ok := q.queued(item); ok {
			return i, true
		}
	}
}

func (q *diskQueue) done(i queued) {
	q.spool.Load().Done(i.spool.(*spool.Item))
	q.leave(i.load)
}

func (q *diskQueue) close() {
	q.room.close()
	q.end()
}

func (q *diskQueue) drain() []queued { return nil }

// shut closes the files. Who is still sending a batch then cannot say that it is done: it is sent again after the next start.
func (q *diskQueue) shut() error { return errors.Join(q.spool.Load().Close(), q.lock.Close()) }

func (q *diskQueue) state() queueState {
	files := q.spool.Load()
	if files == nil {
		return queueState{}
	}
	waiting, oldest := files.Waiting()
	return queueState{load: q.room.load(), requests: int(waiting), oldest: oldest}
}
