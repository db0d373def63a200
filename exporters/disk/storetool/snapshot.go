package storetool

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/tombstone"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// cacheSize limits the memory for cached parts of all open segments, in bytes.
const cacheSize = 64 << 20

// locate returns the folder of the store: name itself, or the only store in the data_dir name.
func locate(fsys vfs.FS, name string) (string, error) {
	_, err := directory.OpenReadOnly(fsys, name)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return name, err
	}
	entries, err := fsys.ReadDir(name)
	if err != nil {
		return "", fmt.Errorf("finding the span store: %w", err)
	}
	var found []string
	var unusable error
	for _, e := range entries {
		sub := path.Join(name, e.Name)
		switch _, err := directory.OpenReadOnly(fsys, sub); {
		case !e.IsDir:
		case err == nil:
			found = append(found, sub)
		case !errors.Is(err, fs.ErrNotExist):
			unusable = err
		}
	}
	switch len(found) {
	case 0:
		if unusable != nil { // for example a store of a newer version
			return "", unusable
		}
		return "", fmt.Errorf("%s is not a span store: file FORMAT not found in it or its subfolders; name the folder of a store", name)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s has several span stores; name one: %s", name, strings.Join(found, ", "))
}

// stored is an open segment.
type stored struct {
	*segment.Segment
	name directory.Segment
	info segment.Info
}

// unopened is a segment that cannot be opened, perhaps only temporarily.
type unopened struct {
	name directory.Segment
	err  error
}

// snapshot holds the open segments and replayed logs of a store at one moment.
type snapshot struct {
	fs       vfs.FS
	dir      *directory.Dir
	path     string
	segments []*stored // by first epoch, without replaced ones
	broken   []unopened
	replaced []directory.Segment // their spans are in another segment; the server deletes them
	logs     []*replayed         // by epoch, without those whose spans are in a segment
	missing  []wal.Missing       // logs whose files are gone
	gone     []directory.Missing // segments whose files are gone
	spares   logFiles            // files kept for reuse

	listDamage        error // why missing logs are not known, or nil
	segmentListDamage error // why missing segments are not known, or nil

	deletions        []*tombstone.Rule
	damagedDeletions []tombstone.Damaged
}

// maxAttempts is the number of attempts to take a snapshot while the store changes.
const maxAttempts = 20

// errChanged means that the server changed the store while the snapshot was taken.
var errChanged = errors.New("span store is changing too fast: segments and logs were replaced while listing them; retry")

// takeSnapshot opens the segments and replays the logs of a folder. The rows of logs stay in memory
// if keepRows is set. The caller closes the snapshot.
func takeSnapshot(fsys vfs.FS, dir *directory.Dir, path string, keepRows bool) (*snapshot, error) {
	for range maxAttempts {
		s := &snapshot{fs: fsys, dir: dir, path: path}
		err := s.open(keepRows)
		if err == nil {
			return s, nil
		}
		s.close()
		if !errors.Is(err, errChanged) {
			return nil, err
		}
	}
	return nil, errChanged
}

// openSnapshot takes a snapshot of a store that may be in use.
func openSnapshot(fsys vfs.FS, name string, keepRows bool) (*snapshot, error) {
	folder, err := locate(fsys, name)
	if err != nil {
		return nil, err
	}
	dir, err := directory.OpenReadOnly(fsys, folder)
	if err != nil {
		return nil, err
	}
	return takeSnapshot(fsys, dir, folder, keepRows)
}

func (s *snapshot) close() {
	for _, g := range s.segments {
		g.Close() // opened for reading: nothing to report
	}
	for _, l := range s.logs {
		l.release()
	}
}

// open lists logs before segments because spans move from logs to segments.
func (s *snapshot) open(keepRows bool) error {
	logs, spares, err := s.listLogs()
	if err != nil {
		return err
	}
	s.spares = spares
	if err := s.loadDeletions(); err != nil {
		return err
	}
	names, err := s.dir.Segments()
	if err != nil {
		return retryable(err)
	}
	cache := segment.NewCache(cacheSize)
	for _, name := range names {
		g, err := segment.OpenCached(s.fs, s.dir.Path(name), cache)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return errChanged
		case err != nil:
			s.broken = append(s.broken, unopened{name, err})
		default:
			s.segments = append(s.segments, &stored{Segment: g, name: name, info: g.Info()})
		}
	}
	s.dropReplaced()
	slices.SortFunc(s.segments, func(a, b *stored) int { return slices.Compare(order(a), order(b)) })
	for _, l := range logs {
		if slices.ContainsFunc(s.segments, func(g *stored) bool { return g.holds(l.epoch) }) {
			continue
		}
		r, err := s.replay(l, keepRows)
		if err != nil {
			return retryable(err)
		}
		s.logs = append(s.logs, r)
	}
	if err := s.findMissing(); err != nil {
		return err
	}
	return s.findMissingSegments()
}

// findMissingSegments lists segments that are gone although no other segment has their spans.
func (s *snapshot) findMissingSegments() error {
	missing, err := s.dir.Missing()
	if err != nil && !errors.Is(err, directory.ErrListDamaged) {
		return err
	}
	s.segmentListDamage = err
	has := func(epoch uint64) bool {
		return slices.ContainsFunc(s.segments, func(g *stored) bool { return g.holds(epoch) })
	}
	for _, m := range missing {
		inLog := m.IsSingleEpoch() && slices.ContainsFunc(s.logs, func(l *replayed) bool { return l.epoch == m.First })
		if !inLog && (!has(m.First) || !has(m.Last)) {
			s.gone = append(s.gone, m)
		}
	}
	return nil
}

// findMissing lists logs that are gone although no segment has their spans.
func (s *snapshot) findMissing() error {
	if _, err := s.fs.ReadDir(s.dir.Log()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dir, err := s.openLogs()
	if err != nil {
		return err
	}
	missing, err := dir.Missing()
	if err != nil && !errors.Is(err, wal.ErrListDamaged) {
		return retryable(err)
	}
	s.listDamage = err
	for _, m := range missing {
		if !slices.ContainsFunc(s.segments, func(g *stored) bool { return g.holds(m.Epoch) }) {
			s.missing = append(s.missing, m)
		}
	}
	return nil
}

func order(g *stored) []uint64 { return []uint64{g.name.First, g.name.Last, uint64(g.name.Level)} }

// retryable wraps err with errChanged if a file or folder disappeared, so that the snapshot is
// retried.
func retryable(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errChanged, err)
	}
	return err
}

// holds reports whether the segment has the spans of a log: it was flushed from the log, or
// compacted from a segment that was.
func (g *stored) holds(epoch uint64) bool {
	return g.name.IsSingleEpoch() && g.name.InRange(epoch) || slices.ContainsFunc(g.info.Replaces, func(text string) bool {
		o, ok := directory.ParseSegment(text)
		return ok && o.Level == 0 && o.InRange(epoch)
	})
}

// replaces reports whether a segment records that it replaces another one.
func (g *stored) replaces(o directory.Segment) bool {
	return slices.Contains(g.info.Replaces, o.String())
}

func (s *snapshot) dropReplaced() {
	all := s.segments
	s.segments = nil
	for _, g := range all {
		if slices.ContainsFunc(all, func(o *stored) bool { return o.replaces(g.name) }) {
			s.replaced = append(s.replaced, g.name)
			g.Close() // opened for reading: nothing to report
			continue
		}
		s.segments = append(s.segments, g)
	}
}

// sources returns the segments, then the logs whose rows were kept, without deleted spans.
func (s *snapshot) sources() []source.Source {
	var all []source.Source
	for _, g := range s.segments {
		all = append(all, s.filtered(g, g.info.FirstEpoch, g.info.LastTombstone))
	}
	for _, l := range s.logs {
		if l.table != nil {
			all = append(all, s.filtered(l.table.Source(), l.epoch, 0))
		}
	}
	return all
}

// filtered hides the deleted spans of a source. firstEpoch is its first log epoch. applied is the
// number of the last deletion that was applied before the source was written.
func (s *snapshot) filtered(src source.Source, firstEpoch, applied uint64) source.Source {
	var rules []*tombstone.Rule
	for _, r := range s.deletions {
		if r.Applies(firstEpoch, applied) && r.Overlaps(src) {
			rules = append(rules, r)
		}
	}
	if len(rules) == 0 {
		return src
	}
	return tombstone.NewFilter(src, rules, nil)
}

// deletionDir is the folder of the tombstones. The quarantine has a folder of the same name for
// tombstones that only quarantined segments need.
const deletionDir = "deletions"

// loadDeletions reads the tombstones. Call it before listing segments, because the server removes a
// tombstone when no segment needs it.
func (s *snapshot) loadDeletions() error {
	for _, folder := range []string{s.path, s.dir.QuarantineDir()} {
		tombstones, damaged, err := tombstone.Dir{FS: s.fs, Path: path.Join(folder, deletionDir)}.LoadReadOnly()
		if err != nil {
			return retryable(err)
		}
		s.damagedDeletions = append(s.damagedDeletions, damaged...)
		for _, m := range tombstones {
			s.deletions = append(s.deletions, tombstone.NewRule(m))
		}
	}
	return nil
}

// lostDeletions returns the number of deletions that cannot be read.
func (s *snapshot) lostDeletions() (n int) {
	for _, d := range s.damagedDeletions {
		if !d.Restored {
			n++
		}
	}
	return n
}
