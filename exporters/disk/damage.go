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
	paths map[string]struct{}
}

// damaged counts, logs and remembers a part of a segment that could not be read.
func (e *exporter) damaged(d *source.DamageError) {
	e.metrics.damage.Inc()
	e.log.Error("cannot read part of a segment; queries are answered without it", zap.String("file", d.File),
		zap.String("part", d.Part), zap.Int("spans", d.Rows), zap.Error(d.Err))
	f := &e.damagedFiles
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.paths == nil {
		f.paths = make(map[string]struct{})
	}
	f.paths[d.File] = struct{}{}
}

// damageError returns an error while the store has damaged segments, or unreadable files in the
// quarantine.
func (e *exporter) damageError() error {
	return errors.Join(e.damagedSegments(), e.quarantinedFiles())
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
	maps.DeleteFunc(f.paths, func(name string, _ struct{}) bool {
		_, ok := current[name]
		return !ok // expired, or merged without the damaged part
	})
	if len(f.paths) == 0 {
		return nil
	}
	return fmt.Errorf(`%d segments have parts that cannot be read: %s; run "tracing store verify"`, len(f.paths),
		shorten(slices.Sorted(maps.Keys(f.paths))))
}

func (e *exporter) quarantinedFiles() error {
	entries, err := e.dir.Quarantined()
	if err != nil {
		return err
	}
	var list []string
	for _, f := range entries {
		if !f.IsDir {
			list = append(list, f.Name)
		}
	}
	if len(list) == 0 {
		return nil
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
