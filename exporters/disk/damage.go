package disk

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// damagedFiles are the segments of which a part could not be read. They stay in the store, which
// answers without that part.
type damagedFiles struct {
	mu    sync.Mutex
	parts map[string]map[string]struct{} // by path: the parts that were logged
}

// maxLoggedParts is the maximum number of damaged parts of one segment that are logged as errors.
const maxLoggedParts = 100

// isNew remembers a damaged part and reports whether it was not known before.
func (f *damagedFiles) isNew(d *source.DamageError) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parts == nil {
		f.parts = make(map[string]map[string]struct{})
	}
	known := f.parts[d.File]
	if known == nil {
		known = make(map[string]struct{})
		f.parts[d.File] = known
	}
	if _, ok := known[d.Part]; ok || len(known) >= maxLoggedParts {
		return false
	}
	known[d.Part] = struct{}{}
	return true
}

// damaged counts and remembers a part of a segment that could not be read. It logs each part once,
// however many queries need it.
func (e *exporter) damaged(d *source.DamageError) {
	e.metrics.damage.Inc()
	if e.damagedFiles.isNew(d) {
		e.log.Error("cannot read part of a segment; queries are answered without it", zap.String("file", d.File),
			zap.String("part", d.Part), zap.Int("spans", d.Rows), zap.Error(d.Err))
	}
}

// damageError returns an error while the store has damaged segments, segments whose files were
// deleted and could not be restored, or unreadable files in the quarantine.
func (e *exporter) damageError() error {
	e.mu.Lock()
	deleted := e.deleted
	e.mu.Unlock()
	return errors.Join(e.damagedSegments(), deleted, e.quarantinedFiles())
}

// namedFiles is the maximum number of files that an error names.
const namedFiles = 3

func (e *exporter) damagedSegments() error {
	e.mu.Lock()
	current := make(map[string]struct{}, len(e.segments))
	for _, h := range e.segments {
		current[e.dir.Path(h.name)] = struct{}{}
	}
	e.mu.Unlock()
	f := &e.damagedFiles
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.parts, func(name string, _ map[string]struct{}) bool {
		_, ok := current[name]
		return !ok // expired, or merged without the damaged part
	})
	if len(f.parts) == 0 {
		return nil
	}
	return fmt.Errorf(`%d segments have parts that cannot be read: %s; run "tracing store verify"`, len(f.parts),
		shorten(slices.Sorted(maps.Keys(f.parts))))
}

func (e *exporter) quarantinedFiles() error {
	list, err := e.noteLosses()
	if len(list) == 0 {
		return err
	}
	return fmt.Errorf(`%s holds %d files that could not be read: %s; run "tracing store inspect", and delete them when they are no longer needed`,
		e.dir.QuarantineDir(), len(list), shorten(list))
}

// shorten joins names, at most namedFiles of them.
func shorten(list []string) string {
	text := strings.Join(list[:min(namedFiles, len(list))], ", ")
	if more := len(list) - namedFiles; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// noteFormat reports that the file FORMAT was damaged.
func (e *exporter) noteFormat() {
	if d := e.dir.FormatDamage(); d != nil {
		e.metrics.restored.Inc()
		e.log.Error("file with the version of the span store is damaged; moved to quarantine and written again; no spans are lost",
			zap.String("file", d.File), zap.Error(d.Err))
	}
}
