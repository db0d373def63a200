package disk

import (
	"fmt"
	"math"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// checkSpace refuses spans while the disk is full, and takes them again when it no longer is.
func (e *exporter) checkSpace() {
	free, err := e.dir.Free()
	if err != nil {
		e.log.Warn("measuring the free space of the disk", zap.Error(err))
		return // the disk itself will tell
	}
	need := int64(e.config.MinFree)
	if e.config.DiskFull == dropWhenFull {
		e.dropFor(need + e.wanted() - free)
		if free, err = e.dir.Free(); err != nil {
			return
		}
	}
	if free < need {
		err = fmt.Errorf("the disk of the span store is full: %s free, less than min_free (%s); free space, shorten the retention, or set disk_full: drop_oldest",
			pipeline.ByteSize(free), pipeline.ByteSize(need))
	}
	e.mu.Lock()
	e.full = err
	e.mu.Unlock()
	if err == nil && !e.reserved && free-int64(e.config.Reserve) >= need {
		e.keepReserve()
	}
}

// wanted returns the bytes beside min_free that merging waits for.
func (e *exporter) wanted() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.claimed == 0 || e.merging != nil {
		return 0 // a merge that has begun takes what it found
	}
	return e.claimed + int64(e.config.Reserve)
}

// dropFor drops as many of the oldest segments as make up for so many missing bytes. Those that queries still hold count: they are as
// good as gone.
func (e *exporter) dropFor(missing int64) {
	e.mu.Lock()
	missing -= e.condemned()
	e.mu.Unlock()
	if missing <= 0 {
		return
	}
	for _, h := range e.loose() {
		if missing -= e.drop(h, expiredByFull); missing <= 0 {
			return
		}
	}
}

// keepReserve makes the reserve, where one is wanted and the disk has the space.
func (e *exporter) keepReserve() {
	if e.config.Reserve == 0 {
		return
	}
	if err := e.dir.Reserve(int64(e.config.Reserve)); err != nil {
		e.log.Warn("making the reserve for a full disk", zap.Error(err))
		e.giveUpReserve()
		return
	}
	e.reserved = true
	e.measure()
}

// makeSpace gives up what the store holds for a full disk, so that a segment can be written, which then frees its log.
func (e *exporter) makeSpace(cause error) {
	e.log.Warn("the disk is full: giving up the reserve to write a segment", zap.Error(cause))
	if err := e.logs.DropSpares(); err != nil {
		e.log.Warn("giving up spare logs", zap.Error(err))
	}
	e.giveUpReserve()
}

func (e *exporter) giveUpReserve() {
	if err := e.dir.GiveUpReserve(); err != nil {
		e.log.Warn("giving up the reserve", zap.Error(err))
		return
	}
	e.reserved = false
}

// space is how much a new segment may take at a moment.
type space struct {
	folder, disk int64 // bytes until retention.size is reached, and until min_free and the reserve are all that is left
	drops        bool  // expiry makes space on the disk, too
	condemned    int64 // bytes that come back when queries have ended
}

// spaceFor returns the space for what is not needed at once; free is what the disk has. The caller holds mu.
func (e *exporter) spaceFor(free int64) space {
	s := space{folder: math.MaxInt64, disk: free - int64(e.config.MinFree) - int64(e.config.Reserve), drops: e.config.DiskFull == dropWhenFull,
		condemned: e.condemned()}
	if limit := int64(e.config.Retention.Size); limit > 0 {
		s.folder = limit - e.fixed - sizeOf(e.segments)
	}
	return s
}

// has reports whether there is space for a segment.
func (s space) has(bytes int64) bool { return bytes <= s.folder && bytes <= s.disk }

// fits reports whether there is, when so many bytes of other segments have expired.
func (s space) fits(bytes, older int64) bool {
	disk := bytes
	if s.drops {
		disk -= older + s.condemned
	}
	return bytes-older <= s.folder && disk <= s.disk
}
