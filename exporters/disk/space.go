package disk

import (
	"fmt"
	"math"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// checkSpace refuses spans while the disk is full, and takes them again when it is not.
func (e *exporter) checkSpace() {
	free, err := e.dir.Free()
	if err != nil {
		e.lines.Warn("cannot measure free disk space", zap.Error(err))
		return // writes will fail if the disk is full
	}
	need := int64(e.config.MinFree)
	if e.config.DiskFull == dropWhenFull {
		e.dropFor(need + e.awaitedByMerge() - free)
		if free, err = e.dir.Free(); err != nil {
			return
		}
	}
	if free < need {
		err = fmt.Errorf("span store: disk is full: less than min_free (%s) is free; "+
			"free space, shorten the retention, or set disk_full: drop_oldest", pipeline.ByteSize(need))
	}
	e.free = free
	e.metrics.free.Set(float64(free))
	e.mu.Lock()
	e.full = err
	e.mu.Unlock()
	if err == nil && !e.reserved.Load() && free-int64(e.config.Reserve) >= need {
		e.keepReserve()
	}
}

// awaitedByMerge returns the free space beyond min_free that the next merge waits for, in bytes.
func (e *exporter) awaitedByMerge() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.claimed == 0 || e.merging != nil {
		return 0 // a running merge has its space
	}
	return e.claimed + int64(e.config.Reserve)
}

// dropFor drops the oldest segments until they free the missing bytes. Dropped segments that
// queries still read count as freed.
func (e *exporter) dropFor(missing int64) {
	e.mu.Lock()
	missing -= e.doomedBytes()
	e.mu.Unlock()
	if missing <= 0 {
		return
	}
	for _, h := range e.expirable() {
		if missing -= e.drop(h, expiredByFull); missing <= 0 {
			return
		}
	}
}

// keepReserve creates the reserve if it is configured and the disk has space.
func (e *exporter) keepReserve() {
	if e.config.Reserve == 0 {
		return
	}
	if err := e.dir.Reserve(int64(e.config.Reserve)); err != nil {
		e.lines.Warn("cannot create disk reserve", zap.Error(err))
		e.giveUpReserve()
		return
	}
	e.reserved.Store(true)
	e.measure()
}

// makeSpace deletes spare files and the reserve for a purpose that matters more: to flush a
// memtable, which then frees its log, or to record a deletion or damage.
func (e *exporter) makeSpace(purpose string, cause error) {
	e.lines.Warn("disk is full; deleting the disk reserve", zap.String("to", purpose), zap.Error(cause))
	if err := e.logs.DropSpares(); err != nil {
		e.lines.Warn("cannot delete preallocated write-ahead log files", zap.Error(err))
	}
	e.giveUpReserve()
}

func (e *exporter) giveUpReserve() {
	if err := e.dir.ReleaseReserve(); err != nil {
		e.lines.Warn("cannot delete disk reserve", zap.Error(err))
		return
	}
	e.reserved.Store(false)
}

// space is the space for a new segment at one moment.
type space struct {
	folder int64 // bytes until retention::size is reached
	disk   int64 // bytes until only min_free and the reserve are left
	drops  bool  // expiry frees disk space (disk_full: drop_oldest)
	doomed int64 // bytes that are freed when queries have ended
}

// spaceFor returns the space for a merge; free is the free space of the disk. The caller holds mu.
func (e *exporter) spaceFor(free int64) space {
	s := space{folder: math.MaxInt64, disk: free - int64(e.config.MinFree) - int64(e.config.Reserve) - e.restoring,
		drops: e.config.DiskFull == dropWhenFull, doomed: e.doomedBytes()}
	if limit := int64(e.config.Retention.Size); limit > 0 {
		s.folder = limit - e.fixed - sizeOf(e.segments)
	}
	return s
}

// has reports whether a segment fits now.
func (s space) has(bytes int64) bool { return bytes <= s.folder && bytes <= s.disk }

// fits reports whether a segment fits after older segments of the given total size have expired.
func (s space) fits(bytes, older int64) bool {
	disk := bytes
	if s.drops {
		disk -= older + s.doomed
	}
	return bytes-older <= s.folder && disk <= s.disk
}
