package disk

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/search"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// exporter is the store.
type exporter struct {
	config  Config
	path    string // of the folder, with slashes
	env     pipeline.Env
	log     *zap.Logger
	report  func(error)
	metrics *metrics
	*search.Engine
	*samplingStore
	tracestore.Hub

	dir     *directory.Dir
	logs    *wal.Dir
	logStep int64 // see wal.Options.Step; 0: the default
	chunks  *memtable.Pool
	cache   *segment.Cache
	wake    chan struct{} // tells the keeper that a memtable was frozen; holds one token
	stop    chan struct{} // closed by Stop
	stopped sync.WaitGroup

	// Of the keeper, the one goroutine that flushes, expires and looks after the disk; and of Start and Stop while it does not run.
	reserved bool     // the reserve exists
	trouble  string   // what was reported last
	retry    backoff  // of flushes
	jump     jumpStop // of expiry

	deletions deletions

	intake    sync.Mutex // held while spans are interned and logs are made; taken before mu
	lastEpoch uint64     // guarded by intake

	mu       sync.Mutex // guards all below; never held for long
	active   *live      // takes spans; nil: the next request makes one
	frozen   []*live    // to be flushed, oldest first
	leftover []oldLog   // that could not be removed; changed by the keeper only
	segments []*handle  // by first epoch; a list is never changed, but replaced
	doomed   []*handle  // given up, but the files are still there: queries read them, or they could not be deleted
	merging  *merge     // nil: none is under way
	claimed  int64      // bytes for the segment that merging makes, or waits to make
	fixed    int64      // bytes of logs and reserve when they were last measured
	room     chan struct{}
	full     error // why nothing is taken at the moment
	stuck    error // why frozen memtables could not be flushed last time
	closed   bool
}

var (
	_ pipeline.Starter            = (*exporter)(nil)
	_ pipeline.Stopper            = (*exporter)(nil)
	_ pipeline.Keeper             = (*exporter)(nil)
	_ pipeline.MemoryUser         = (*exporter)(nil)
	_ tracestore.Reader           = (*exporter)(nil)
	_ tracestore.Catalog          = (*exporter)(nil)
	_ tracestore.AttributeCatalog = (*exporter)(nil)
	_ tracestore.Dependencies     = (*exporter)(nil)
	_ tracestore.Peers            = (*exporter)(nil)
	_ tracestore.Follower         = (*exporter)(nil)
	_ tracestore.Outliner         = (*exporter)(nil)
	_ tracestore.Metrics          = (*exporter)(nil)
)

func newExporter(set pipeline.Settings, c Config) (*exporter, error) {
	m, err := newMetrics(set.Metrics)
	if err != nil {
		return nil, err
	}
	dir := c.Directory
	if dir == "" {
		dir = set.Dir
	}
	e := &exporter{
		config: c, path: filepath.ToSlash(dir), env: set.Env, log: set.Logger, report: set.Report, metrics: m,
		chunks: memtable.NewPool(chunkSize, int(c.Memtable.MaxBytes)/chunkSize+1),
		cache:  segment.NewCache(int64(c.Cache) * 11 / 16), // the rest is the engine's
		wake:   make(chan struct{}, 1), stop: make(chan struct{}), room: make(chan struct{}), closed: true,
		deletions: deletions{turn: make(chan struct{}, 1)},
	}
	e.samplingStore = newSamplingStore(e.env.FS, e.path, e.env.Now)
	e.Engine = search.New(e.view, search.Options{Decoders: c.Decoders, Memory: int64(c.Cache) / 8, OnDamage: e.damaged})
	return e, nil
}

// Keeps tells whether an acknowledged span is synced.
func (e *exporter) Keeps() pipeline.Keep {
	if wal.Mode(e.config.Sync) == wal.SyncAlways {
		return pipeline.KeepStored
	}
	return pipeline.KeepWritten
}

// chunkSize is the size of the pieces of memory that memtables take rows in.
const chunkSize = 1 << 20

// What the store needs besides memtables: scratch memory of a flush, of one decoded block, and of a merge, which has some for each trace, too.
const (
	flushMemory   = 48 << 20
	decoderMemory = 8 << 20
	mergeMemory   = 64 << 20
	traceMemory   = 60
)

// tallyMemory is what a memtable takes for counting its rows, once somebody asks for metrics.
const tallyMemory = 12 << 20

// MaxMemory returns the memory of two memtables, a flush, a merge, what is kept of segments, and decoders.
func (e *exporter) MaxMemory() int64 {
	n := 2*(int64(e.config.Memtable.MaxBytes)+tallyMemory) + flushMemory + int64(e.config.Cache) + int64(e.config.Decoders)*decoderMemory
	if e.config.Merge.Enabled {
		n += mergeMemory + traceMemory*int64(min(maxMergeTraces, e.config.Merge.MaxSpans))
	}
	return n
}

// Start opens the folder and brings back what was acknowledged before. It fails when another process uses the folder, or a newer program
// wrote it. Damaged files are set aside and reported; they do not keep the store from starting.
func (e *exporter) Start(context.Context) error {
	began := time.Now()
	dir, err := directory.Open(e.env.FS, e.path)
	if err != nil {
		return err
	}
	e.dir = dir
	e.logs, err = wal.OpenDir(e.env.FS, dir.Log(), wal.Options{
		Mode: wal.Mode(e.config.Sync), Interval: time.Duration(e.config.SyncInterval), MinGap: time.Duration(e.config.SyncGap),
		Size: int64(e.config.Memtable.MaxBytes) + logSlack, Step: e.logStep, Spares: 1,
	})
	if err == nil {
		err = e.loadDeletions()
	}
	if err == nil {
		err = e.loadSampling()
	}
	if err == nil {
		err = e.recover()
	}
	if err != nil {
		e.closeAll()
		return errors.Join(fmt.Errorf("opening the span store in %s: %w", e.path, err), dir.Close())
	}
	e.noteHeeded()
	e.checkClock()
	e.expire()
	e.keepReserve()
	e.announce(time.Since(began))
	e.mu.Lock()
	e.closed = false
	e.mu.Unlock()
	e.stopped.Go(e.keep)
	e.stopped.Go(e.tidyDeletions)
	if e.config.Merge.Enabled {
		e.stopped.Go(e.mergeAlways)
	}
	e.stopped.Go(e.warmAlways)
	return nil
}

// logSlack is what a log has beside the rows of its memtable: frames and the rests of sectors.
const logSlack = 16 << 20

// announce says where spans are, how long, how many, and what an acknowledgement means.
func (e *exporter) announce(took time.Duration) {
	spans, size := 0, int64(0)
	for _, h := range e.segments {
		spans, size = spans+h.info.Rows, size+h.info.Size
	}
	recovered := 0
	for _, l := range e.frozen {
		recovered += l.table.Rows()
	}
	promise := "an acknowledged span is on the disk, synced, also after a power cut"
	switch wal.Mode(e.config.Sync) {
	case wal.SyncInterval:
		promise = fmt.Sprintf("an acknowledged span survives the process; a power cut may take the last %s", e.config.SyncInterval)
	case wal.SyncOS:
		promise = "an acknowledged span survives the process; a power cut may take what the operating system has not written yet"
	}
	e.log.Info("span store is open", zap.String("directory", e.path), zap.Stringer("retention_time", e.config.Retention.Time),
		zap.Stringer("retention_size", e.config.Retention.Size), zap.Int("segments", len(e.segments)), zap.Int("spans", spans),
		zap.Int64("bytes", size), zap.Int("recovered_from_log", recovered), zap.Duration("took", took), zap.String("sync", e.config.Sync),
		zap.String("acknowledgement", promise))
}

// Stop writes what is in memory to a segment and closes the folder. What cannot be written, or not before ctx ends, stays in the log. A
// segment that is being written when ctx ends is completed behind Stop's back, if the process lives that long.
func (e *exporter) Stop(ctx context.Context) error {
	e.intake.Lock()
	e.mu.Lock()
	e.closed = true
	e.freeze()
	e.letWait()
	e.mu.Unlock()
	e.intake.Unlock()
	e.samplingStore.close()
	close(e.stop)
	done := make(chan error, 1)
	go func() {
		e.stopped.Wait()
		err := e.flushAll(ctx)
		e.closeAll()
		done <- errors.Join(err, e.logs.DropSpares(), e.dir.Close())
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the span store is still writing a segment; its spans are in the log: %w", ctx.Err())
	}
}

// closeAll closes logs that were not flushed, and gives up the store's own hold on everything.
func (e *exporter) closeAll() {
	e.mu.Lock()
	frozen, segments := e.frozen, e.segments
	e.frozen, e.segments = nil, nil
	e.mu.Unlock()
	for _, l := range frozen {
		if err := l.close(); err != nil {
			e.log.Warn("closing the log of spans that were not flushed", zap.Error(err))
		}
		e.releaseLive(l)
	}
	for _, h := range segments {
		e.releaseHandle(h)
	}
}
