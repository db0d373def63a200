package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// deletedFilesInterval is the interval of restoreDeletedFiles.
const deletedFilesInterval = 5 * tick

// watchFiles runs until Stop. It restores segment files that were deleted by something other than
// this process.
func (e *exporter) watchFiles() {
	ticker := time.NewTicker(deletedFilesInterval)
	defer ticker.Stop()
	ctx := untilStop{context.Background(), e.stop}
	retry := backoff{max: maxMergeBackoff}
	for {
		select {
		case <-e.stop:
			return
		case <-ticker.C:
			if !retry.due() {
				continue
			}
			err := e.restoreDeletedFiles(ctx)
			if ctx.Err() != nil {
				return // Stop restores the rest
			}
			if err != nil {
				e.log.Error("cannot restore deleted segment files; their spans can be read until the process ends; will retry", zap.Error(err))
			}
			retry.note(err)
			e.mu.Lock()
			e.deleted = err
			e.mu.Unlock()
		}
	}
}

// restoreDeletedFiles rewrites the segments whose files are gone. Their content is still there,
// because the files are open. It begins with the smallest, because each needs its space a second
// time, and ends when ctx does or the disk has too little space.
func (e *exporter) restoreDeletedFiles(ctx context.Context) error {
	if e.dir.InPlace() != nil {
		return nil // the maintenance loop reports it
	}
	deleted, err := e.deletedFiles()
	if err != nil {
		return err
	}
	var restored, failed []*handle
	for i, h := range deleted {
		if !e.acquire(h) {
			continue
		}
		failure := e.restoreDeletedFile(ctx, h)
		e.releaseHandle(h)
		if failure == nil {
			restored = append(restored, h)
			continue
		}
		if failed = append(failed, h); err == nil {
			err = failure
		}
		if errors.Is(failure, errNoSpace) || vfs.NoSpace(failure) || ctx.Err() != nil {
			failed = append(failed, deleted[i+1:]...)
			break
		}
	}
	if len(restored) > 0 {
		e.log.Warn("segment files were deleted while they were in use; wrote them again; no spans are lost",
			zap.String("files", e.shortPaths(restored)), zap.Int("number", len(restored)), zap.Int64("bytes", sizeOf(restored)))
	}
	if err != nil {
		return fmt.Errorf("%d segment files were deleted while they were in use: %s; %d spans will be lost when the process ends, "+
			"unless the files can be written again: %w", len(failed), e.shortPaths(failed), totalOf(failed).rows, err)
	}
	return nil
}

// deletedFiles returns the segments whose files are gone, by size.
func (e *exporter) deletedFiles() ([]*handle, error) {
	e.mu.Lock()
	segments := e.segments
	e.mu.Unlock()
	files, err := e.dir.Segments()
	if err != nil {
		return nil, err
	}
	exists := make(map[string]bool, len(files))
	for _, s := range files {
		exists[s.String()] = true
	}
	deleted := slices.DeleteFunc(slices.Clone(segments), func(h *handle) bool { return exists[h.name.String()] })
	slices.SortStableFunc(deleted, func(a, b *handle) int { return cmp.Compare(a.info.Size, b.info.Size) })
	return deleted, nil
}

func (e *exporter) shortPaths(segments []*handle) string {
	var paths []string
	for _, h := range segments {
		paths = append(paths, e.dir.Path(h.name))
	}
	return shorten(paths)
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

// restoreDeletedFile rewrites the file of a segment and replaces the segment with the new file, so
// that the disk space of the deleted file is freed. The caller has acquired the segment.
func (e *exporter) restoreDeletedFile(ctx context.Context, h *handle) error {
	if err := e.claimForRestore(h); err != nil {
		return err
	}
	err := e.dir.WithDay(h.name, func() error { return h.segment.Restore(ctx, e.dir.FS()) })
	if err == nil {
		e.metrics.restored.Inc()
		e.reopen(h)
	}
	e.mu.Lock()
	e.restoring = 0
	e.mu.Unlock()
	return err
}

// errNoSpace is the error of claimForRestore.
var errNoSpace = errors.New("too little free disk space")

// claimForRestore reserves the space for rewriting a segment, beside the space that the running
// merge needs.
func (e *exporter) claimForRestore(h *handle) error {
	free, err := e.dir.Free()
	if err != nil {
		return fmt.Errorf("measuring free disk space: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	left := e.spaceFor(free).disk
	if e.merging != nil {
		left -= e.claimed
	}
	if missing := h.info.Size - left; missing > 0 {
		return fmt.Errorf("%w: restoring %s needs %s more, so that min_free and the reserve stay free; free space", errNoSpace,
			h.name, pipeline.ByteSize(missing))
	}
	e.restoring = h.info.Size
	return nil
}

// reopen replaces a segment with its restored file. A merge that reads the segment is aborted. If
// the merge is about to replace the segment, the segment stays.
func (e *exporter) reopen(h *handle) {
	unused, err := e.open(h.name)
	if err != nil {
		e.log.Error("cannot open restored segment file; the deleted file stays open and needs disk space until the process ends",
			zap.String("file", e.dir.Path(h.name)), zap.Error(err))
		return
	}
	e.mu.Lock()
	at, m := slices.Index(e.segments, h), e.merging
	merged := m != nil && slices.Contains(m.inputs, h)
	if at >= 0 && !(merged && m.committing) {
		unused.seen, unused.unmergeable = h.seen, h.unmergeable
		e.segments = slices.Clone(e.segments)
		e.segments[at], unused = unused, h
		if merged {
			m.inputExpired = true
		}
	}
	e.mu.Unlock()
	e.releaseHandle(unused)
}
