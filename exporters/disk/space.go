package disk

import (
	"errors"
	"fmt"
	"math"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// checkSpace makes the store refuse spans while the disk is full.
func (r *retention) checkSpace() {
	free, err := r.dir.Free()
	if err != nil {
		r.lines.Warn("cannot measure free disk space", zap.Error(err))
		return // writes will fail if the disk is full
	}
	need := int64(r.config.MinFree)
	if r.config.DiskFull == dropWhenFull {
		r.dropFor(need + r.awaitedByMerge() - free)
		if free, err = r.dir.Free(); err != nil {
			return
		}
	}
	if free < need {
		err = fmt.Errorf("span store: disk is full: less than min_free (%s) is free; "+
			"free space, shorten the retention, or set disk_full: drop_oldest", pipeline.ByteSize(need))
	}
	r.free = free
	r.metrics.free.Set(float64(free))
	r.intake.note(&r.intake.full, err)
	if err == nil && !r.reserved.Load() && free-int64(r.config.Reserve) >= need {
		r.keepReserve()
	}
}

// awaitedByMerge returns the free space beyond min_free that the next merge waits for, in bytes.
func (r *retention) awaitedByMerge() int64 {
	r.segments.mu.Lock() // the choice of a merge, which renews its claim, is one step
	defer r.segments.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.awaited {
		return 0 // a running merge has its space
	}
	return r.claimed + int64(r.config.Reserve)
}

// dropFor drops the oldest segments until they free the missing bytes. Dropped segments that
// queries still read count as freed.
func (r *retention) dropFor(missing int64) {
	r.segments.mu.Lock()
	missing -= r.segments.doomedBytes()
	r.segments.mu.Unlock()
	if missing <= 0 {
		return
	}
	for _, h := range r.segments.expirable() {
		if missing -= r.segments.drop(h, expiredByFull); missing <= 0 {
			return
		}
	}
}

// keepReserve creates the reserve if it is configured and the disk has space.
func (r *retention) keepReserve() {
	if r.config.Reserve == 0 {
		return
	}
	if err := r.dir.Reserve(int64(r.config.Reserve)); err != nil {
		r.lines.Warn("cannot create disk reserve", zap.Error(err))
		r.giveUpReserve()
		return
	}
	r.reserved.Store(true)
	r.measure()
}

// makeSpace deletes spare files and the reserve for a more important purpose: to flush a memtable,
// which then frees its log, or to record a deletion or damage.
func (r *retention) makeSpace(purpose string, cause error) {
	r.lines.Warn("disk is full; deleting the disk reserve", zap.String("to", purpose), zap.Error(cause))
	if err := r.logs.DropSpares(); err != nil {
		r.lines.Warn("cannot delete preallocated write-ahead log files", zap.Error(err))
	}
	r.giveUpReserve()
}

func (r *retention) giveUpReserve() {
	if err := r.dir.ReleaseReserve(); err != nil {
		r.lines.Warn("cannot delete disk reserve", zap.Error(err))
		return
	}
	r.reserved.Store(false)
}

// space is the space for a new segment at one moment.
type space struct {
	folder int64 // bytes until retention::size is reached
	disk   int64 // bytes until only min_free and the reserve are left
	drops  bool  // expiry frees disk space (disk_full: drop_oldest)
	doomed int64 // bytes that are freed when queries have ended
}

// claim reserves space for the output of a merge, see claimed and awaited; 0 releases it.
func (r *retention) claim(bytes int64, awaited bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claimed, r.awaited = bytes, awaited
}

// spaceFor returns the space for a merge; free is the free space of the disk. The caller holds
// segments.mu.
func (r *retention) spaceFor(free int64) space {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := space{folder: math.MaxInt64, disk: free - int64(r.config.MinFree) - int64(r.config.Reserve) - r.restoring,
		drops: r.config.DiskFull == dropWhenFull, doomed: r.segments.doomedBytes()}
	if limit := int64(r.config.Retention.Size); limit > 0 {
		s.folder = limit - r.fixed - sizeOf(r.segments.list)
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

// errNoSpace is the error of claimForRestore.
var errNoSpace = errors.New("too little free disk space")

// claimForRestore reserves the space for rewriting a segment, in addition to the space that the
// running merge needs.
func (r *retention) claimForRestore(h *handle) error {
	free, err := r.dir.Free()
	if err != nil {
		return fmt.Errorf("measuring free disk space: %w", err)
	}
	r.segments.mu.Lock() // no merge makes a claim meanwhile
	defer r.segments.mu.Unlock()
	left := r.spaceFor(free).disk
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.awaited {
		left -= r.claimed
	}
	if missing := h.info.Size - left; missing > 0 {
		return fmt.Errorf("%w: restoring %s needs %s more, so that min_free and the reserve stay free; free space", errNoSpace,
			h.name, pipeline.ByteSize(missing))
	}
	r.restoring = h.info.Size
	return nil
}

// endRestore ends the reservation of claimForRestore.
func (r *retention) endRestore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.restoring = 0
}
