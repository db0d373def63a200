package disk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storeadmin"
)

// common holds what all parts of the store use. It does not change after Start.
type common struct {
	config  Config
	path    string // of the folder, slash-separated
	env     pipeline.Env
	log     *zap.Logger
	lines   *pipeline.RepeatLog
	metrics *metrics
	dir     *directory.Dir
	logs    *wal.Dir
	ctx     context.Context // of background work; ends with Stop
}

// exporter is the store. It starts, stops and maintains its parts, see doc.go.
type exporter struct {
	*common
	*queries
	*samplingStore
	tracestore.Hub

	intake    *intake
	segments  *segments
	retention *retention
	deletions *deletions
	flusher   *flusher
	merger    *merger
	restorer  *restorer
	health    *health

	logStep int64          // see wal.Options.Step; 0: the default
	stopped sync.WaitGroup // the background goroutines
	cancel  func()         // ends ctx
	ticks   int            // runs of the maintenance; used by the maintenance loop
}

var (
	_ pipeline.Starter            = (*exporter)(nil)
	_ pipeline.Stopper            = (*exporter)(nil)
	_ pipeline.DurabilityReporter = (*exporter)(nil)
	_ pipeline.MemoryUser         = (*exporter)(nil)
	_ tracestore.Reader           = (*exporter)(nil)
	_ tracestore.Catalog          = (*exporter)(nil)
	_ tracestore.Edges            = (*exporter)(nil)
	_ tracestore.Follower         = (*exporter)(nil)
	_ tracestore.Aggregator       = (*exporter)(nil)
	_ tracestore.PathProfiler     = (*exporter)(nil)
	_ tracestore.Metrics          = (*exporter)(nil)
	_ tracestore.UsageReporter    = (*exporter)(nil)
	_ tracestore.Deleter          = (*exporter)(nil)
	_ pipeline.Administered       = (*exporter)(nil)
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
	ctx, cancel := context.WithCancel(context.Background())
	all := &common{ctx: ctx, config: c, path: filepath.ToSlash(dir), env: set.Env, log: set.Logger,
		lines: pipeline.NewRepeatLog(set), metrics: m}
	in := &intake{common: all, chunks: memtable.NewPool(chunkSize, int(c.Memtable.MaxBytes)/chunkSize+1), wake: make(chan struct{}, 1),
		capacity: make(chan struct{}), closed: true}
	segs := &segments{common: all, cache: segment.NewCache(int64(c.Cache) * 10 / 16)} // the rest is for queries
	ret := &retention{common: all, intake: in, segments: segs}
	del := &deletions{common: all, intake: in, segments: segs, retention: ret, slot: make(chan struct{}, 1)}
	res := &restorer{common: all, segments: segs, retention: ret}
	e := &exporter{
		common: all, cancel: cancel, intake: in, segments: segs, retention: ret, deletions: del, restorer: res,
		samplingStore: newSamplingStore(all.path, all.env.Now),
		flusher:       &flusher{common: all, intake: in, segments: segs, retention: ret},
		merger:        &merger{common: all, intake: in, segments: segs, deletions: del, retention: ret},
		health:        &health{common: all, report: set.Report, segments: segs, restorer: res},
	}
	e.queries = newQueries(del.view, scan.Options{
		Decoders: c.Decoders, Busy: in.receives, Memory: int64(c.Cache) / 8, OnDamage: segs.noteDamage, Losses: e.health.lossReason,
	})
	return e, nil
}

// Consume stores the spans of b and returns nil when all of them are searchable and as durable as
// the setting sync says. After an error, some of the spans may be stored. Queries show a span once
// even if it is resent.
func (e *exporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	err := e.intake.store(ctx, b)
	if err == nil {
		e.Publish(b)
	}
	return err
}

// Delete implements tracestore.Deleter.
func (e *exporter) Delete(ctx context.Context, tenant string, d tracestore.Deletion) (tracestore.Deleted, error) {
	return e.deletions.delete(ctx, tenant, d)
}

// AdminHandler serves deletions to operators.
func (e *exporter) AdminHandler() http.Handler { return storeadmin.Handler(e) }

// Durability returns whether acknowledged spans are synced.
func (e *exporter) Durability() pipeline.Durability {
	if wal.Mode(e.config.Sync) == wal.SyncAlways {
		return pipeline.DurabilityStored
	}
	return pipeline.DurabilityWritten
}

// chunkSize is the size of the pieces of memory in which memtables keep rows.
const chunkSize = 1 << 20

// Memory that the store needs in addition to memtables: scratch memory of a flush (besides the size
// of the memtable), of one decoded block, and of a merge, per input and per trace.
const (
	flushMemory   = 8 << 20
	decoderMemory = 8 << 20
	inputMemory   = 4 << 20
	traceMemory   = 60
)

// tallyFactor is the memory for counting the rows of a memtable, per byte of the memtable, once
// metrics are queried.
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

// mergeTraces returns the maximum number of traces in one merge. It is lower if memtables, and
// therefore inputs, are small.
func (c *Config) mergeTraces() int {
	return int(min(maxMergeTraces, maxMergeTraces*int64(c.Memtable.MaxBytes)/maxDefaultMemtable))
}

// Start opens the folder and recovers all spans that were acknowledged before. It fails if another
// process uses the folder or a newer version wrote it. Damaged files are moved to the quarantine
// and reported; the store starts without them.
func (e *exporter) Start(context.Context) error {
	began := time.Now()
	if err := e.openFolder(); err != nil {
		return err
	}
	e.announce(time.Since(began))
	e.intake.open()
	e.stopped.Go(e.maintain)
	e.stopped.Go(e.deletions.run)
	e.stopped.Go(e.restorer.run)
	if e.config.Merge.Enabled {
		e.stopped.Go(e.merger.run)
	}
	e.stopped.Go((&warmer{merger: e.merger, graphs: e.Builder}).run)
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
		err = e.deletions.load()
	}
	if err == nil {
		err = e.samplingStore.restore(e.common)
	}
	if err == nil {
		err = recovery{e.flusher}.recover()
	}
	if err != nil {
		e.closeAll()
		return errors.Join(fmt.Errorf("opening the span store in %s: %w", e.path, err), dir.Close())
	}
	e.deletions.reserveNumbers()
	e.retention.checkClock()
	e.retention.expire()
	e.retention.keepReserve()
	e.health.damage = e.health.damageError()
	e.retention.checkSpace() // the process must not be ready before
	e.reportHealth()
	return nil
}

// logSlack is the size of a log beyond the rows of its memtable: frames and padding of sectors.
const logSlack = 16 << 20

// announce logs where spans are stored, for how long, how many there are, and how durable
// acknowledged spans are.
func (e *exporter) announce(took time.Duration) {
	spans, size := 0, int64(0)
	for _, h := range e.segments.list {
		spans, size = spans+h.info.Rows, size+h.info.Size
	}
	recovered := 0
	for _, l := range e.intake.frozen {
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
		zap.Stringer("retention_size", e.config.Retention.Size), zap.Int("segments", len(e.segments.list)), zap.Int("spans", spans),
		zap.Int64("bytes", size), zap.Int("recovered_from_log", recovered), zap.Duration("took", took), zap.String("sync", e.config.Sync),
		zap.String("acknowledgement", promise))
}

// Stop flushes the memtable, restores deleted segment files and closes the folder. Spans that
// cannot be flushed before ctx ends stay in the log. A flush that is running when ctx ends
// continues in the background while the process lives.
func (e *exporter) Stop(ctx context.Context) error {
	e.intake.close()
	e.samplingStore.close()
	e.lines.Close()
	e.cancel()
	done := make(chan error, 1)
	go func() {
		e.stopped.Wait()
		err := errors.Join(e.flusher.flushAll(ctx), e.restorer.restoreDeletedFiles(ctx))
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
	e.intake.mu.Lock()
	e.segments.mu.Lock()
	frozen, segments := e.intake.frozen, e.segments.list
	e.intake.frozen, e.segments.list = nil, nil
	e.segments.mu.Unlock()
	e.intake.mu.Unlock()
	for _, l := range frozen {
		if err := l.close(); err != nil {
			e.log.Warn("cannot close write-ahead log of unflushed spans", zap.Error(err))
		}
		e.intake.release(l)
	}
	for _, h := range segments {
		e.segments.release(h)
	}
}

// noteFormat reports that the file FORMAT was damaged.
func (e *exporter) noteFormat() {
	if d := e.dir.FormatDamage(); d != nil {
		e.metrics.restored.Inc()
		e.log.Error("file with the version of the span store is damaged; moved to quarantine and rewritten; no spans are lost",
			zap.String("file", d.File), zap.Error(d.Err))
	}
}
