package disk

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// exporter is the store.
type exporter struct {
	config  Config
	path    string // of the folder, slash-separated
	env     pipeline.Env
	log     *zap.Logger
	report  func(error)
	metrics *metrics
	*queries
	*samplingStore
	tracestore.Hub

	dir     *directory.Dir
	logs    *wal.Dir
	logStep int64 // see wal.Options.Step; 0: the default
	chunks  *memtable.Pool
	cache   *segment.Cache
	wake    chan struct{} // tells the maintenance loop that a memtable was frozen; holds one token
	stop    chan struct{} // closed by Stop
	stopped sync.WaitGroup

	// Used by the maintenance loop, and by Start and Stop while it does not run.
	lines    *pipeline.RepeatLog
	reported string     // what was reported last, as text
	free     int64      // free space of the disk in bytes at the last check
	ticks    int        // number of runs of the maintenance
	troubled bool       // it is not only about damage
	damage   error      // damaged files, as found by the last check
	retry    backoff    // for flushes
	clock    clockGuard // suspends expiry by time

	deletions deletions

	damagedFiles damagedFiles
	losses       atomic.Pointer[string] // see lossReason; nil: not known yet
	reserved     atomic.Bool            // the reserve exists

	arrived atomic.Int64 // when spans were last stored, in nanoseconds since the Unix epoch

	intake    sync.Mutex // held while spans are interned and logs are made; taken before mu
	lastEpoch uint64     // guarded by intake

	mu        sync.Mutex    // guards all fields below; never held across I/O
	active    *live         // takes spans; nil: the next request creates one
	frozen    []*live       // to be flushed, oldest first
	leftover  []oldLog      // logs still to be removed; changed by the maintenance loop only
	segments  []*handle     // by first epoch; the slice is replaced, never changed in place
	doomed    []*handle     // no longer part of the store, but queries read them or their files could not be deleted
	merging   *merge        // nil: no merge is running
	claimed   int64         // bytes reserved for the output of the running or the next merge
	restoring int64         // size of the segment whose deleted file is being rewritten
	fixed     int64         // bytes of logs and reserve at the last measurement
	capacity  chan struct{} // closed and replaced when a memtable was flushed
	moved     error         // why spans are refused now: the path is no longer that of the folder
	full      error         // why spans are refused now: the disk is full
	noLog     error         // why the last write-ahead log could not be created
	refused   int64         // requests refused because of moved, full or noLog since the store was degraded
	stuck     error         // why the last flush failed
	deleted   error         // why deleted segment files could not be restored
	closed    bool
}

var (
	_ pipeline.Starter            = (*exporter)(nil)
	_ pipeline.Stopper            = (*exporter)(nil)
	_ pipeline.DurabilityReporter = (*exporter)(nil)
	_ pipeline.MemoryUser         = (*exporter)(nil)
	_ tracestore.Reader           = (*exporter)(nil)
	_ tracestore.Versioner        = (*exporter)(nil)
	_ tracestore.Catalog          = (*exporter)(nil)
	_ tracestore.AttributeCatalog = (*exporter)(nil)
	_ tracestore.Edges            = (*exporter)(nil)
	_ tracestore.Follower         = (*exporter)(nil)
	_ tracestore.SpanReader       = (*exporter)(nil)
	_ tracestore.Aggregator       = (*exporter)(nil)
	_ tracestore.PathProfiler     = (*exporter)(nil)
	_ tracestore.Metrics          = (*exporter)(nil)
	_ tracestore.UsageReporter    = (*exporter)(nil)
)

func newExporter(set pipeline.Settings, c Config) (*exporter, error) {
	m, err := newMetrics(set.Metrics, &c)
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
		cache:  segment.NewCache(int64(c.Cache) * 11 / 16), // the rest is for queries
		wake:   make(chan struct{}, 1), stop: make(chan struct{}), capacity: make(chan struct{}), closed: true,
		deletions: deletions{slot: make(chan struct{}, 1)},
	}
	e.lines = pipeline.NewRepeatLog(set)
	e.samplingStore = newSamplingStore(e.path, e.env.Now)
	e.queries = newQueries(e.view, scan.Options{
		Decoders: c.Decoders, Busy: e.receives, Memory: int64(c.Cache) / 8, OnDamage: e.damaged, Losses: e.lossReason,
	})
	return e, nil
}

// receives reports whether spans arrived within quietTime.
func (e *exporter) receives() bool {
	return e.env.Now().Sub(time.Unix(0, e.arrived.Load())) < quietTime
}

// Durability returns whether acknowledged spans are synced.
func (e *exporter) Durability() pipeline.Durability {
	if wal.Mode(e.config.Sync) == wal.SyncAlways {
		return pipeline.DurabilityStored
	}
	return pipeline.DurabilityWritten
}

// chunkSize is the size of the pieces of memory in which memtables keep rows.
const chunkSize = 1 << 20

// Memory that the store needs beside memtables: scratch memory of a flush, beside the size of the
// memtable, of one decoded block, and of a merge for each input and for each trace.
const (
	flushMemory   = 8 << 20
	decoderMemory = 8 << 20
	inputMemory   = 4 << 20
	traceMemory   = 60
)

// tallyFactor is the memory of a memtable for counting its rows, for each byte, once metrics are
// queried.
const tallyFactor = 0.3

// MaxMemory returns the memory of two memtables, a flush, a merge, the cache and the decoders.
func (e *exporter) MaxMemory() int64 {
	c := &e.config
	n := int64((3+2*tallyFactor)*float64(c.Memtable.MaxBytes)) + flushMemory + int64(c.Cache) + int64(c.Decoders)*decoderMemory
	if c.Merge.Enabled {
		n += int64(c.Merge.MaxSegments)*inputMemory + traceMemory*int64(min(c.mergeTraces(), c.Merge.MaxSpans))
	}
	return n
}

// mergeTraces returns the maximum number of traces in one merge. It is smaller if the inputs are
// small because memtables are.
func (c *Config) mergeTraces() int {
	return int(min(maxMergeTraces, maxMergeTraces*int64(c.Memtable.MaxBytes)/maxDefaultMemtable))
}

// Start opens the folder and recovers what was acknowledged before. It fails when another process
// uses the folder or a newer version wrote it. Damaged files are moved to the quarantine and
// reported; the store starts without them.
func (e *exporter) Start(context.Context) error {
	began := time.Now()
	if err := e.openFolder(); err != nil {
		return err
	}
	e.announce(time.Since(began))
	e.mu.Lock()
	e.closed = false
	e.mu.Unlock()
	e.stopped.Go(e.maintain)
	e.stopped.Go(e.maintainDeletions)
	e.stopped.Go(e.watchFiles)
	if e.config.Merge.Enabled {
		e.stopped.Go(e.mergeLoop)
	}
	e.stopped.Go(e.warmLoop)
	return nil
}

// openFolder opens the folder and recovers its state.
func (e *exporter) openFolder() error {
	dir, err := directory.Open(e.env.FS, e.path)
	if err != nil {
		return err
	}
	e.dir = dir
	e.noteFormat()
	e.logs, err = wal.OpenDir(dir.FS(), dir.Log(), wal.Options{
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
	e.reserveDeletionNumbers()
	e.checkClock()
	e.expire()
	e.keepReserve()
	e.damage = e.damageError()
	e.checkSpace() // the process must not be ready before
	e.reportHealth(e.trouble())
	return nil
}

// logSlack is the size of a log beyond the rows of its memtable: frames and padding of sectors.
const logSlack = 16 << 20

// announce logs where spans are stored, for how long, how many there are, and what an
// acknowledgement means.
func (e *exporter) announce(took time.Duration) {
	spans, size := 0, int64(0)
	for _, h := range e.segments {
		spans, size = spans+h.info.Rows, size+h.info.Size
	}
	recovered := 0
	for _, l := range e.frozen {
		recovered += l.table.Rows()
	}
	promise := "acknowledged spans are synced to disk and survive a power failure"
	switch wal.Mode(e.config.Sync) {
	case wal.SyncInterval:
		promise = fmt.Sprintf("acknowledged spans survive a crash of the process; a power failure may lose the last %s", e.config.SyncInterval)
	case wal.SyncOS:
		promise = "acknowledged spans survive a crash of the process; a power failure may lose what the operating system has not written yet"
	}
	e.log.Info("opened span store", zap.String("directory", e.path), zap.Stringer("retention_time", e.config.Retention.Time),
		zap.Stringer("retention_size", e.config.Retention.Size), zap.Int("segments", len(e.segments)), zap.Int("spans", spans),
		zap.Int64("bytes", size), zap.Int("recovered_from_log", recovered), zap.Duration("took", took), zap.String("sync", e.config.Sync),
		zap.String("acknowledgement", promise))
}

// Stop flushes the memtable, restores deleted segment files and closes the folder. Spans that
// cannot be flushed before ctx ends stay in the log. A flush that is running when ctx ends goes on
// in the background while the process lives.
func (e *exporter) Stop(ctx context.Context) error {
	e.intake.Lock()
	e.mu.Lock()
	e.closed = true
	e.freeze()
	e.signalCapacity()
	e.mu.Unlock()
	e.intake.Unlock()
	e.samplingStore.close()
	e.lines.Close()
	close(e.stop)
	done := make(chan error, 1)
	go func() {
		e.stopped.Wait()
		err := errors.Join(e.flushAll(ctx), e.restoreDeletedFiles(ctx))
		e.closeAll()
		done <- errors.Join(err, e.logs.DropSpares(), e.dir.Close())
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("span store: flush did not finish in time; its spans remain in the write-ahead log: %w", ctx.Err())
	}
}

// closeAll closes logs that were not flushed and releases the store's references to segments.
func (e *exporter) closeAll() {
	e.mu.Lock()
	frozen, segments := e.frozen, e.segments
	e.frozen, e.segments = nil, nil
	e.mu.Unlock()
	for _, l := range frozen {
		if err := l.close(); err != nil {
			e.log.Warn("cannot close write-ahead log of unflushed spans", zap.Error(err))
		}
		e.releaseLive(l)
	}
	for _, h := range segments {
		e.releaseHandle(h)
	}
}
