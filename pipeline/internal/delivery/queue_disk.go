package delivery

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/queueopt"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/spool"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// diskQueue is a sending queue on disk. put returns when the batch is synced; batches that were not
// sent when the process ended are sent after the next start.
type diskQueue struct {
	capacity    *capacity
	dir         string
	signal      otlpdata.Signal
	env         pipeline.Env
	log         *zap.Logger
	report      func(error)        // reports the disk as failed, or with nil as recovered
	evicted     func(queued)       // called for batches that are dropped in favor of newer ones
	countLost   func(spans int64)  // called for lost spans; negative: recovered spans
	lostBatches prometheus.Counter // batches lost to damaged files
	lost        atomic.Uint64      // lost batches since the start, without recovered ones; see recordLoss

	spool atomic.Pointer[spool.Queue] // nil before open, when metrics may already be read
	lock  vfs.Lock
	ctx   context.Context // ends when the queue is closed, so that take returns
	end   context.CancelFunc

	reporting sync.Mutex
	reported  string // the last report, "" if nothing was wrong; guarded by reporting
	watching  sync.WaitGroup
}

func newDiskQueue(c pipeline.QueueConfig, set pipeline.Settings, evicted func(queued), countLost func(spans int64),
	lost prometheus.Counter, reportFull func(error)) *diskQueue {
	q := &diskQueue{capacity: newCapacity(c, reportFull), dir: path.Join(set.Dir, "queue"), signal: set.Signal, env: set.Env, log: set.Logger,
		report: set.Report, evicted: evicted, countLost: countLost, lostBatches: lost}
	q.ctx, q.end = context.WithCancel(context.Background())
	return q
}

// open recovers the batches of an earlier process.
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
	files, err := spool.Open(vfs.Locked(q.env.FS, q.dir, lock), path.Join(q.dir, "log"), spool.Options{
		LogSize: queueFileSize(), Now: q.env.Now, Quarantine: q.damagedFiles(),
		Lost: q.recordLoss, Unsynced: q.logUnsynced, ListLost: q.logListLost,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("sending_queue: %w", err), lock.Close())
	}
	q.lock = lock
	s := files.State()
	q.capacity.force(q.loadOfState(s))
	q.spool.Store(files)
	q.reportDisk()
	q.watching.Go(q.watch)
	q.log.Info("opened sending queue", zap.String("directory", q.dir), zap.Int64("batches", s.Items), zap.Int64(q.signal.Key(), s.Weight),
		zap.Int64("bytes", s.Bytes), zap.Duration("took", q.env.Now().Sub(started)))
	return nil
}

// loadOfState returns the load of several batches.
func (q *diskQueue) loadOfState(s spool.State) load {
	l := q.capacity.loadOf(s.Bytes, s.Weight)
	if q.capacity.config.Sizer == queueopt.SizerRequests {
		l.size = s.Items
	}
	return l
}

// reportDisk reports a disk or folder that has failed or recovered.
func (q *diskQueue) reportDisk() {
	q.reporting.Lock()
	defer q.reporting.Unlock()
	err := q.diskError()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != q.reported {
		q.reported = text
		q.report(err)
	}
}

// diskError returns why the queue cannot be read or written, or what it has lost.
func (q *diskQueue) diskError() error {
	if errors.Is(q.lock.InPlace(), vfs.ErrMoved) {
		return pipeline.NotReady(fmt.Errorf("sending_queue: batches are refused: %s was moved, deleted or replaced while this process uses it; "+
			"move the folder back, or restart the process to open the current folder", q.dir))
	}
	if err := q.spool.Load().Err(); err != nil && !errors.Is(err, vfs.ErrMoved) { // if it was moved, it is back
		return fmt.Errorf("sending_queue: %w", err)
	}
	if n := q.lost.Load(); n > 0 {
		return fmt.Errorf("sending_queue: up to %d batches of damaged or deleted files are lost since the start, more if the log says "+
			"that their number is unknown; damaged files are in %s", n, q.damagedFiles())
	}
	return nil
}

// damagedFiles returns the folder of damaged files.
func (q *diskQueue) damagedFiles() string { return path.Join(q.dir, "damaged") }

// watchInterval is the interval at which the folder of a queue is checked.
const watchInterval = time.Second

// checkpointInterval is the interval at which a queue records how many batches its last file holds.
const checkpointInterval = 5 * time.Second

// watch checks the folder until the queue is closed: a queue that gets no batches because it is not
// ready must notice that its folder was moved back. It also makes the checkpoints.
func (q *diskQueue) watch() {
	ticker, checkpoints := time.NewTicker(watchInterval), time.NewTicker(checkpointInterval)
	defer ticker.Stop()
	defer checkpoints.Stop()
	for {
		select {
		case <-ticker.C:
			q.reportDisk()
		case <-checkpoints.C:
			if err := q.spool.Load().Checkpoint(); err != nil {
				q.log.Debug("cannot record the size of the sending queue's files; will retry", zap.Error(err))
			}
		case <-q.ctx.Done():
			return
		}
	}
}

func (q *diskQueue) put(ctx context.Context, b *otlpdata.Batch) error {
	parts, err := encodeBatch(b)
	if err != nil {
		return pipeline.Permanent(err)
	}
	bytes := 0
	for _, p := range parts {
		bytes += len(p)
	}
	if bytes > spool.MaxPayload {
		return &otlpdata.LimitError{Limit: "bytes of a batch in a sending_queue on disk", Max: spool.MaxPayload, TooLarge: true}
	}
	l := q.capacity.loadOf(int64(bytes), int64(b.Len()))
	if err := q.capacity.acquire(ctx, l, q.dropOldest); err != nil {
		return err
	}
	err = q.spool.Load().Put(b, l.spans, parts...)
	q.reportDisk()
	if err != nil {
		q.capacity.release(l)
	}
	if errors.Is(err, spool.ErrClosed) {
		return pipeline.ErrStopping
	}
	return err
}

// dropOldest drops the oldest waiting batch and reports whether there was one.
func (q *diskQueue) dropOldest() bool {
	item, ok := q.spool.Load().TryTake()
	if !ok {
		return false
	}
	if i, ok := q.queued(item); ok {
		q.evicted(i)
		q.done(i)
	}
	return true
}

// queued returns the batch of an item. A batch that cannot be decoded is removed and counted as
// lost.
func (q *diskQueue) queued(item spool.Item) (queued, bool) {
	i := queued{load: q.capacity.loadOf(item.Size(), item.Weight), since: item.Since, spool: &item}
	b, inMemory := item.Value.(*otlpdata.Batch)
	if !inMemory {
		var err error
		if b, err = decodeBatch(item.Payload); err == nil && int64(b.Len()) != item.Weight {
			err = fmt.Errorf("%w: has %d %s", errPayload, b.Len(), b.Meta().Signal.Items())
		}
		if err != nil {
			q.log.Error("dropped a batch of the sending queue that cannot be decoded", zap.Int64(q.signal.Key(), item.Weight), zap.Error(err))
			q.countLost(item.Weight)
			q.done(i)
			return queued{}, false
		}
	}
	i.batch = b
	return i, true
}

func (q *diskQueue) take() (queued, bool) {
	for {
		item, err := q.spool.Load().Take(q.ctx)
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
	q.capacity.release(i.load)
}

func (q *diskQueue) close() {
	q.capacity.close()
	q.end()
}

func (q *diskQueue) drain() []queued { return nil }

func (q *diskQueue) tight() <-chan struct{} { return q.capacity.tight }

// shut closes the files. A batch that is still being sent can no longer be marked as done and is
// resent after the next start.
func (q *diskQueue) shut() error {
	q.end()
	q.watching.Wait()
	if left := q.spool.Load().State(); left.Items > 0 && errors.Is(q.lock.InPlace(), vfs.ErrMoved) {
		q.log.Error("folder of the sending queue was moved or deleted; the next start does not find its batches", zap.String("directory", q.dir),
			zap.Int64("batches", left.Items), zap.Int64(q.signal.Key(), left.Weight))
	}
	return errors.Join(q.spool.Load().Close(), q.lock.Close())
}

func (q *diskQueue) state() queueState {
	files := q.spool.Load()
	if files == nil {
		return queueState{}
	}
	waiting, oldest := files.Waiting()
	return queueState{load: q.capacity.inUse(), requests: int(waiting), oldest: oldest}
}
