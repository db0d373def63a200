package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// deletedFilesInterval is the interval of restoreDeletedFiles.
const deletedFilesInterval = 5 * tick

// restorer rewrites segment files that something other than this process has deleted.
type restorer struct {
	*common
	segments  *segments
	retention *retention

	mu     sync.Mutex
	failed error // why files could not be restored
}

// failure returns why deleted segment files could not be restored, or nil.
func (r *restorer) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// run works until Stop.
func (r *restorer) run() {
	retry := backoff{max: maxMergeBackoff}
	r.every(deletedFilesInterval, func() {
		if !retry.due() {
			return
		}
		err := r.restoreDeletedFiles(r.ctx)
		if r.ctx.Err() != nil {
			return // Stop restores the rest
		}
		if err != nil {
			r.log.Error("cannot restore deleted segment files; their spans can be read until the process ends; will retry", zap.Error(err))
		}
		retry.note(err)
		r.mu.Lock()
		r.failed = err
		r.mu.Unlock()
	})
}

// restoreDeletedFiles rewrites the segments whose files are gone. Their content still exists
// because the files are open. It starts with the smallest file, because each needs its space a
// second time, and stops when ctx ends or the disk has too little space.
func (r *restorer) restoreDeletedFiles(ctx context.Context) error {
	if r.dir.InPlace() != nil {
		return nil // the maintenance loop reports it
	}
	deleted, err := r.deletedFiles()
	if err != nil {
		return err
	}
	var restored, failed []*handle
	for i, h := range deleted {
		if !r.segments.acquire(h) {
			continue
		}
		failure := r.restoreDeletedFile(ctx, h)
		r.segments.release(h)
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
		r.log.Warn("segment files were deleted while they were in use; rewrote them; no spans are lost",
			zap.String("files", r.shortPaths(restored)), zap.Int("number", len(restored)), zap.Int64("bytes", sizeOf(restored)))
	}
	if err != nil {
		return fmt.Errorf("%d segment files were deleted while they were in use: %s; %d spans will be lost when the process ends, "+
			"unless the files can be rewritten: %w", len(failed), r.shortPaths(failed), totalOf(failed).rows, err)
	}
	return nil
}

// deletedFiles returns the segments whose files are gone, by size.
func (r *restorer) deletedFiles() ([]*handle, error) {
	segments := r.segments.all()
	files, err := r.dir.Segments()
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

func (r *restorer) shortPaths(segments []*handle) string {
	var paths []string
	for _, h := range segments {
		paths = append(paths, r.dir.Path(h.name))
	}
	return shorten(paths)
}

// restoreDeletedFile rewrites the file of a segment and replaces the segment with the new file, so
// that the disk space of the deleted file is freed. The caller has acquired the segment.
func (r *restorer) restoreDeletedFile(ctx context.Context, h *handle) error {
	if err := r.retention.claimForRestore(h); err != nil {
		return err
	}
	defer r.retention.endRestore()
	err := r.dir.WithDay(h.name, func() error { return h.segment.Restore(ctx, r.dir.FS()) })
	if err == nil {
		r.metrics.restored.Inc()
		r.segments.reopen(h)
	}
	return err
}
