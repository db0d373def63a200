package directory

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// The list of segments is a file that names the segments in the folder, so that the next start
// notices a segment whose file is gone:
//
//	tracing segments, version 1
//	<name within the folder of segments> <spans>     for each segment
//	crc32c <checksum of everything before>
//
// A segment is added after its file is durable, and taken out before its file is removed or moved.
// If the list cannot be written, for example on a full disk, the owner continues, because the list
// is needed only after damage. A segment in the list must exist, so a list that cannot be written
// before a segment is removed is removed as well.
const (
	listFile = "segments.list"
	listHead = "tracing segments, version 1\n"
	listLine = "%s %d\n"
	maxList  = 64 << 20 // bytes
)

// list is what the file should say.
type list struct {
	mu    sync.Mutex     // held while the file is written
	spans map[string]int // by the name of the segment
	stale bool           // the file may say something else
}

// ErrListDamaged is wrapped by the error of [Dir.Missing] if the content of the list differs from
// what was written.
var ErrListDamaged = errors.New("list of segments is damaged")

func encodeList(spans map[string]int) []byte {
	b := []byte(listHead)
	for _, name := range slices.Sorted(maps.Keys(spans)) {
		b = fmt.Appendf(b, listLine, name, spans[name])
	}
	return b
}

func decodeList(b []byte) (map[string]int, error) {
	lines, ok := strings.CutPrefix(string(b), listHead)
	spans := make(map[string]int)
	for line := range strings.Lines(lines) {
		var name string
		var n int
		if _, err := fmt.Sscanf(line, listLine, &name, &n); err != nil || !ok {
			return nil, ErrListDamaged
		}
		spans[name] = n
	}
	return spans, nil
}

// readList returns the number of spans of each segment in the file, nil if there is no file.
func (d *Dir) readList() (map[string]int, error) {
	b, err := vfs.ReadChecked(d.fs, d.in(listFile), maxList)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, vfs.ErrChecksum) {
		return nil, fmt.Errorf("%w: %w", ErrListDamaged, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; if that lasts, delete the file: missing segments are then not noticed once", err)
	}
	return decodeList(b)
}

// loadList reads the file when the folder is opened. Missing segments stay in the list until
// SetList. A damaged list is not an error: Missing reports it.
func (d *Dir) loadList() error {
	spans, err := d.readList()
	if err != nil && !errors.Is(err, ErrListDamaged) {
		return err
	}
	d.list.stale = err != nil
	if d.list.spans = spans; spans == nil {
		d.list.spans = make(map[string]int)
	}
	return nil
}

// saveList writes the file. The caller holds list.mu.
func (d *Dir) saveList() error {
	err := vfs.WriteChecked(d.fs, d.in(listFile), encodeList(d.list.spans))
	d.list.stale = err != nil
	return err
}

// SetList replaces the list by the given segments with their numbers of spans.
func (d *Dir) SetList(spans map[string]int) {
	d.list.mu.Lock()
	defer d.list.mu.Unlock()
	if changed := !maps.Equal(spans, d.list.spans); changed || d.list.stale {
		d.list.spans = spans
		d.saveList() // an error leaves the list stale
	}
}

// Enlist adds a segment with its number of spans to the list, and removes the segments that it
// replaces.
func (d *Dir) Enlist(s Segment, spans int, replaced ...Segment) {
	d.list.mu.Lock()
	defer d.list.mu.Unlock()
	for _, r := range replaced {
		delete(d.list.spans, r.String())
	}
	d.list.spans[s.String()] = spans
	d.saveList() // an error leaves the list stale
}

// unlist takes a segment out of the list before its file is removed or moved. After an error the
// list may still name it.
func (d *Dir) unlist(name string) error {
	d.list.mu.Lock()
	defer d.list.mu.Unlock()
	if _, ok := d.list.spans[name]; !ok && !d.list.stale {
		return nil
	}
	delete(d.list.spans, name)
	if d.saveList() == nil {
		return nil
	}
	if err := vfs.RemoveDurably(d.fs, d.in(listFile)); err != nil { // the list stays stale and is rewritten later
		return fmt.Errorf("taking %s out of the list of segments: %w", name, err)
	}
	return nil
}

// SaveList writes the list if it could not be written before.
func (d *Dir) SaveList() error {
	d.list.mu.Lock()
	defer d.list.mu.Unlock()
	if !d.list.stale {
		return nil
	}
	if err := d.saveList(); err != nil {
		return fmt.Errorf("writing the list of segments: %w", err)
	}
	return nil
}

// Missing is a segment in the list whose file is gone.
type Missing struct {
	Segment
	Spans int
}

// Missing lists the segments whose files are gone although this program did not remove them, and
// for which the quarantine has neither the file nor a note. It may be called while another process
// uses the folder. An error means that missing segments are unknown. It matches ErrListDamaged if
// the content of the list is damaged.
func (d *Dir) Missing() ([]Missing, error) {
	// A segment is in the list only while its file exists. If it is in the list before and after
	// the files are listed, its file should have been there.
	before, err := d.readList()
	if err != nil || len(before) == 0 {
		return nil, err
	}
	segments, err := d.Segments()
	if err != nil {
		return nil, err
	}
	quarantined, err := d.Quarantined()
	if err != nil {
		return nil, err
	}
	after, err := d.readList()
	if err != nil {
		return nil, err
	}
	for _, s := range segments {
		delete(after, s.String())
	}
	var missing []Missing
	for _, name := range slices.Sorted(maps.Keys(after)) {
		s, ok := ParseSegment(name)
		known := slices.ContainsFunc(quarantined, func(f vfs.Entry) bool { return strings.HasPrefix(f.Name, path.Base(name)) })
		if _, was := before[name]; ok && was && !known && after[name] > 0 {
			missing = append(missing, Missing{s, after[name]})
		}
	}
	return missing, nil
}

// ListFile returns the path of the list of segments.
func (d *Dir) ListFile() string { return d.in(listFile) }
