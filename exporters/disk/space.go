package disk

import (
	"fmt"

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
		e.dropFor(need - free)
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

// dropFor drops as many of the oldest segments as make up for so many missing bytes. Those that queries still hold count: they are as
// good as gone.
func (e *exporter) dropFor(missing int64) {
	e.mu.Lock()
	missing -= e.condemned
	e.mu.Unlock()
	for missing > 0 {
		h := e.oldest()
		if h == nil {
			return
		}
		missing -= h.info.Size
		e.drop(h, expiredByFull)
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
