package disk

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// damagedFiles are the segments with parts that could not be read. They stay in the store, and
// queries skip these parts.
type damagedFiles struct {
	mu    sync.Mutex
	parts map[string]map[string]struct{} // by path: the parts that were logged
}

// maxLoggedParts is the maximum number of damaged parts of one segment that are logged as errors.
const maxLoggedParts = 100

// isNew remembers a damaged part and reports whether it was unknown before.
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

// noteDamage counts and remembers a part of a segment that could not be read. It logs each part
// once, regardless of how many queries need it.
func (s *segments) noteDamage(d *source.DamageError) {
	s.metrics.damage.Inc()
	if s.damaged.isNew(d) {
		s.log.Error("cannot read part of a segment; results of queries lack it", zap.String("file", d.File),
			zap.String("part", d.Part), zap.Int("spans", d.Rows), zap.Error(d.Err))
	}
}

// damageError returns an error while some segments are damaged.
func (s *segments) damageError() error {
	current := make(map[string]struct{})
	for _, h := range s.all() {
		current[s.dir.Path(h.name)] = struct{}{}
	}
	f := &s.damaged
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

// namedFiles is the maximum number of files that an error names.
const namedFiles = 3

// shorten joins names, at most namedFiles of them.
func shorten(list []string) string {
	text := strings.Join(list[:min(namedFiles, len(list))], ", ")
	if more := len(list) - namedFiles; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
