package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// The list of logs is a file that names the logs in the directory, so that recovery notices a log
// that is gone or too short. A log is in the list from its creation until it is removed:
//
//	tracing logs, version 1
//	<epoch in hexadecimal> <records> <weight> <file>     for each log; file is new or reused
//	crc32c <checksum of everything before>
//
// It is written after a log is created and before a log is removed. If that fails, for example on a
// full disk, the owner continues, because the list is needed only after damage. A log in the list
// must exist, so a list that cannot be written before a log is removed is removed as well; the log
// stays if that fails too.
const (
	listFile   = "logs.list"
	listHead   = "tracing logs, version 1\n"
	listLine   = "%016x %d %d %s\n"
	maxListing = 64 << 20 // bytes
)

// listed is an entry of the list. Records and weight are as of the last checkpoint.
type listed struct {
	records uint64 // highest sequence number that was synced
	weight  int64
	reused  bool // a file of the log may hold stale records: it was a spare
}

// file is the word for reused.
func (l listed) file() string {
	if l.reused {
		return "reused"
	}
	return "new"
}

// ErrListDamaged is wrapped by the error of [Dir.Missing] if the content of the list differs from
// what was written.
var ErrListDamaged = errors.New("list of logs is damaged")

func encodeList(logs map[uint64]listed) []byte {
	b := []byte(listHead)
	for _, epoch := range slices.Sorted(maps.Keys(logs)) {
		l := logs[epoch]
		b = fmt.Appendf(b, listLine, epoch, l.records, l.weight, l.file())
	}
	return b
}

// decodeList reads a list whose checksum is right.
func decodeList(b []byte) (map[uint64]listed, error) {
	lines, ok := strings.CutPrefix(string(b), listHead)
	if !ok {
		return nil, ErrListDamaged
	}
	logs := make(map[uint64]listed)
	for line := range strings.Lines(lines) {
		var epoch uint64
		var l listed
		var file string
		_, err := fmt.Sscanf(line, listLine, &epoch, &l.records, &l.weight, &file)
		if l.reused = file != (listed{}).file(); err != nil || file != l.file() {
			return nil, ErrListDamaged
		}
		logs[epoch] = l
	}
	return logs, nil
}

// readList returns the logs in the list, nil if there is no list.
func (d *Dir) readList() (map[uint64]listed, error) {
	b, err := vfs.ReadChecked(d.fs, d.file(listFile), maxListing)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, vfs.ErrChecksum) {
		return nil, fmt.Errorf("%w: %w", ErrListDamaged, err)
	}
	if err != nil {
		return nil, err
	}
	return decodeList(b)
}

// saveList writes the list, or removes it if no log is left. The caller holds mu.
func (d *Dir) saveList() error {
	var err error
	if len(d.logs) > 0 {
		err = vfs.WriteChecked(d.fs, d.file(listFile), encodeList(d.logs))
	} else {
		err = vfs.RemoveDurably(d.fs, d.file(listFile))
	}
	d.stale = err != nil
	return err
}

// enlist adds a new log to the list, or a reused file of a log. The caller holds mu. If the list
// cannot be written, the new log stays out of it, but the list must not say that all files are new.
func (d *Dir) enlist(epoch uint64, reused bool) {
	l, known := d.logs[epoch]
	if known && (l.reused || !reused) {
		return
	}
	l.reused = reused
	d.logs[epoch] = l
	if d.saveList() != nil && known {
		// The list stays stale and is rewritten later. An error matters only after damage.
		vfs.RemoveDurably(d.fs, d.file(listFile))
	}
}

// unlist takes a log out of the list before it is removed. After an error the list on disk may
// still have it, so the log must stay. The caller holds mu.
func (d *Dir) unlist(epoch uint64) error {
	if _, ok := d.logs[epoch]; ok || d.stale {
		delete(d.logs, epoch)
		if d.saveList() != nil {
			return vfs.RemoveDurably(d.fs, d.file(listFile)) // the list stays stale: it is rewritten later
		}
	}
	return nil
}

// Checkpoint records durably how many records of the given logs are synced, and the weight of the
// log as counted by its owner. Recovery then knows how much is lost if the disk loses the file. It
// writes nothing if nothing has changed.
func (d *Dir) Checkpoint(weights map[*Log]int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed := d.stale
	for l, weight := range weights {
		before, ok := d.logs[l.epoch]
		now := listed{records: l.synced(), weight: weight, reused: before.reused}
		if ok && now.records > before.records {
			d.logs[l.epoch], changed = now, true
		}
	}
	if !changed {
		return nil
	}
	if err := d.saveList(); err != nil {
		return fmt.Errorf("writing the list of logs: %w", err)
	}
	return nil
}

// synced returns the sequence number of the last record known to be synced.
func (l *Log) synced() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable
}

// Missing is a log that should be in the directory but is not.
type Missing struct {
	Epoch uint64
	// Records and Weight are lower bounds of what the log held; see Checkpoint.
	Records uint64
	Weight  int64
}

// Missing lists the logs whose files are gone although the log was not removed, lowest epoch first.
// It may be called while another process uses the directory. The owner of the directory calls it
// before it creates or removes a log, because that rewrites the list without the missing ones. An
// error means that missing logs are unknown. It matches ErrListDamaged if the content of the list
// is damaged.
func (d *Dir) Missing() ([]Missing, error) {
	// A log is in the list only while its files exist. If it is in the list before and after the
	// files are listed, it was in the list at that time, because epochs are not reused.
	before, err := d.readList()
	if err != nil || len(before) == 0 {
		return nil, err
	}
	epochs, err := d.Epochs()
	if err != nil {
		return nil, err
	}
	after, err := d.readList()
	if err != nil {
		return nil, err
	}
	var missing []Missing
	for _, epoch := range slices.Sorted(maps.Keys(before)) {
		if l, ok := after[epoch]; ok && !slices.Contains(epochs, epoch) {
			missing = append(missing, Missing{Epoch: epoch, Records: l.records, Weight: l.weight})
		}
	}
	return missing, nil
}

// ListFile returns the path of the list of logs in a directory.
func ListFile(dir string) string { return path.Join(dir, listFile) }
