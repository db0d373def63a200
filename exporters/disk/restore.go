package disk

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
)

// deletedFilesInterval is the interval of restoreDeletedFiles.
const deletedFilesInterval = 5 * tick

// watchFiles runs until Stop. It restores segment files that were deleted by something other than
// this process.
func (e *exporter) watchFiles() {
	ticker := time.NewTicker(deletedFilesInterval)
	defer ticker.Stop()
	retry := backoff{max: maxMergeBackoff}
	for {
		select {
		case <-e.stop:
			return
		case <-ticker.C:
			if !retry.due() || e.dir.InPlace() != nil { // the maintenance loop reports that
				continue
			}
			err := e.restoreDeletedFiles()
			retry.note(err)
			e.mu.Lock()
			e.deleted = err
			e.mu.Unlock()
		}
	}
}

// restoreDeletedFiles writes the segments again whose files are gone. Their content is still there,
// because the files are open.
func (e *exporter) restoreDeletedFiles() error {
	e.mu.Lock()
	segments := e.segments
	e.mu.Unlock()
	files, err := e.dir.Segments()
	if err != nil {
		return err
	}
	exists := make(map[string]bool, len(files))
	for _, s := range files {
		exists[s.String()] = true
	}
	var failed []error
	for _, h := range segments {
		if !exists[h.name.String()] && e.acquire(h) {
			failed = append(failed, e.restoreDeletedFile(h))
			e.releaseHandle(h)
		}
	}
	return errors.Join(failed...)
}

// acquire reports whether a segment is still part of the store. If so, this process does not delete
// its file until the caller releases the segment.
func (e *exporter) acquire(h *handle) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.segments, h) {
		return false
	}
	h.refs++
	return true
}

func (e *exporter) restoreDeletedFile(h *handle) error {
	err := e.dir.CreateDay(h.name)
	if err == nil {
		err = h.segment.Restore(e.dir.FS())
	}
	name := e.dir.Path(h.name)
	if err != nil {
		e.log.Error("segment file was deleted while it was in use, and cannot be written again; "+
			"its spans can be read until the process ends; will retry", zap.String("file", name), zap.Error(err))
		return fmt.Errorf("%s was deleted while it was in use; %d spans will be lost when the process ends, unless it can be written again: %w",
			name, h.info.Rows, err)
	}
	e.metrics.restored.Inc()
	e.log.Warn("segment file was deleted while it was in use; wrote it again; no spans are lost", zap.String("file", name),
		zap.Int64("bytes", h.info.Size))
	return nil
}
