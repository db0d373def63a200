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
)

// cacheSize bounds what all open segments keep in memory together.
const cacheSize = 64 << 20

// locate returns the folder of the store that a user means: the folder itself, or the data_dir that holds one store.
func locate(fsys vfs.FS, name string) (string, error) {
	_, err := directory.OpenReadOnly(fsys, name)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return name, err
	}
	entries, err := fsys.ReadDir(name)
	if err != nil {
		return "", fmt.Errorf("looking for a span store: %w", err)
	}
	var found []string
	for _, e := range entries {
		sub := path.Join(name, e.Name)
		if _, err := directory.OpenReadOnly(fsys, sub); e.IsDir && err == nil {
			found = append(found, sub)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%s is no span store, nor is a folder in it: there is no file FORMAT", name)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s has several span stores; name one of them: %s", name, strings.Join(found, ", "))
}

// stored is an open segment.
type stored struct {
	*segment.Segment
	name directory.Segment
	info segment.Info
}

// unopened is a segment that cannot be opened, or not for now.
type unopened struct {
	name directory.Segment
	err  error
}

// snapshot is a store at one moment.
type snapshot struct {
	fs       vfs.FS
	dir      *directory.Dir
	path     string
	segments []*stored // by first epoch; those that others replace are left out
	broken   []unopened
	replaced []directory.Segment // whose spans are in another segment; the program deletes them
	logs     []*replayed         // by epoch; those whose spans are in a segment are left out
	covered  []logFiles          // these
	spares   logFiles            // files of former logs

	deletions []*tombstone.Rule
	badMarks  []tombstone.Damaged
}

// maxAttempts is how often a snapshot is taken anew because the store changed meanwhile.
const maxAttempts = 20

// errMoved says that the program changed the store between two steps.
var errMoved = errors.New("the store changes too fast: segments and logs were replaced while they were listed")

// take opens what a folder has at the moment, and keeps what is in logs in memory if keep is set. The caller closes the snapshot.
func take(fsys vfs.FS, dir *directory.Dir, path string, keep bool) (*snapshot, error) {
	for range maxAttempts {
		s := &snapshot{fs: fsys, dir: dir, path: path}
		err := s.open(keep)
		if err == nil {
			return s, nil
		}
		s.close()
		if !errors.Is(err, errMoved) {
			return nil, err
		}
	}
	return nil, errMoved
}

// look takes a snapshot of a store that may be in use.
func look(fsys vfs.FS, name string, keep bool) (*snapshot, error) {
	folder, err := locate(fsys, name)
	if err != nil {
		return nil, err
	}
	dir, err := directory.OpenReadOnly(fsys, folder)
	if err != nil {
		return nil, err
	}
	return take(fsys, dir, folder, keep)
}

func (s *snapshot) close() {
	for _, g := range s.segments {
		g.Close() // opened for reading: nothing to report
	}
	for _, l := range s.logs {
		l.release()
	}
}

// open lists logs before segments: spans move from the former to the latter.
func (s *snapshot) open(keep bool) error {
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
		return moved(err)
	}
	cache := segment.NewCache(cacheSize)
	for _, name := range names {
		g, err := segment.OpenCached(s.fs, s.dir.Path(name), cache)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return errMoved
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
			s.covered = append(s.covered, l)
			continue
		}
		r, err := s.replay(l, keep)
		if err != nil {
			return moved(err)
		}
		s.logs = append(s.logs, r)
	}
	return nil
}

func order(g *stored) []uint64 { return []uint64{g.name.First, g.name.Last, uint64(g.name.Level)} }

// moved says of a listing that failed because a folder went meanwhile that it is worth another attempt.
func moved(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errMoved, err)
	}
	return err
}

// holds reports whether the spans of a log are in the segment: it was made of it, or of its segment.
func (g *stored) holds(epoch uint64) bool {
	return g.name.IsSingleEpoch() && g.name.InRange(epoch) || slices.ContainsFunc(g.info.Replaces, func(text string) bool {
		o, ok := directory.ParseSegment(text)
		return ok && o.Level == 0 && o.InRange(epoch)
	})
}

// replaces reports whether a segment says that it has what another one had.
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

// sources returns segments, then logs that were kept, as what can be read, without what was deleted.
func (s *snapshot) sources() []source.Source {
	var all []source.Source
	for _, g := range s.segments {
		all = append(all, s.masked(g, g.info.FirstEpoch, g.info.LastTombstone))
	}
	for _, l := range s.logs {
		if l.table != nil {
			all = append(all, s.masked(l.table.Source(), l.epoch, 0))
		}
	}
	return all
}

// masked hides deleted spans of a source that begins with a log epoch and for which deletions up to a number were heeded.
func (s *snapshot) masked(src source.Source, firstEpoch, heeded uint64) source.Source {
	var rules []*tombstone.Rule
	for _, r := range s.deletions {
		if r.Applies(firstEpoch, heeded) && r.Overlaps(src) {
			rules = append(rules, r)
		}
	}
	if len(rules) == 0 {
		return src
	}
	return tombstone.NewFilter(src, rules, nil)
}

// deletionDir is the folder of the marks of deletions.
const deletionDir = "deletions"

// loadDeletions reads the marks. It comes before the list of segments: a mark goes when no segment needs it any more.
func (s *snapshot) loadDeletions() error {
	marks, damaged, err := tombstone.Dir{FS: s.fs, Path: path.Join(s.path, deletionDir)}.LoadReadOnly()
	if err != nil {
		return moved(err)
	}
	s.badMarks = damaged
	for _, m := range marks {
		s.deletions = append(s.deletions, tombstone.NewRule(m))
	}
	return nil
}
