package storetool

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// logFiles are the files of one log.
type logFiles struct {
	epoch uint64
	parts int
	bytes int64
}

// replayed is the result of replaying a log.
type replayed struct {
	logFiles
	memtable.Recovery
	rows  int
	err   error           // why the replay stopped before the end of the log
	table *memtable.Table // nil if the rows were not kept
}

// damaged reports whether acknowledged spans are missing.
func (r *replayed) damaged() bool { return r.err != nil || r.Damaged() && !r.Unacknowledged() }

func (r *replayed) release() {
	if r.table != nil {
		r.table.Release()
		r.table = nil
	}
}

// maxReplays is the maximum number of attempts to read a log that seems damaged.
const maxReplays = 3

// replay reads a log as recovery does, without changing it. Damage is not an error but part of the
// result. The rows stay in memory if keepRows is set. A log also seems damaged if the server
// meanwhile wrote records to a part of the file that was already read, and further records to the
// next part. So such a log is reread.
func (s *snapshot) replay(l logFiles, keepRows bool) (*replayed, error) {
	for attempt := 1; ; attempt++ {
		r, err := s.replayOnce(l)
		if err != nil {
			return nil, err
		}
		done := attempt == maxReplays || !r.damaged()
		if !done || !keepRows {
			r.release()
		}
		if done {
			return r, nil
		}
	}
}

func (s *snapshot) replayOnce(l logFiles) (*replayed, error) {
	dir, err := s.openLogs()
	if err != nil {
		return nil, err
	}
	r := replayLog(dir, l)
	if err := s.unchanged(l); err != nil {
		r.release()
		return nil, err
	}
	return r, nil
}

// replayLog reads a log of a folder of logs.
func replayLog(dir *wal.Dir, l logFiles) *replayed {
	r := &replayed{logFiles: l}
	r.table, r.Recovery, r.err = memtable.ReplayLog(dir, l.epoch, func() *memtable.Table {
		name := fmt.Sprintf("log %016x", l.epoch)
		return memtable.New(memtable.Options{Name: name, MaxRows: math.MaxInt, MaxBytes: math.MaxInt64})
	})
	r.rows = r.table.Rows()
	return r
}

func (s *snapshot) openLogs() (*wal.Dir, error) { return openLogs(s.fs, s.dir.Log()) }

// openLogs opens a folder of logs without changing it.
func openLogs(fsys vfs.FS, folder string) (*wal.Dir, error) {
	return wal.OpenDir(fsys, folder, wal.Options{Spares: math.MaxInt, Step: 1})
}

// unchanged fails with errChanged if a log is gone or its files were reused for another one. Data
// that was read from it is then unusable.
func (s *snapshot) unchanged(l logFiles) error {
	logs, _, err := s.listLogs()
	if err != nil {
		return err
	}
	for _, now := range logs {
		if now.epoch == l.epoch {
			return nil
		}
	}
	return errChanged
}

const logSuffix = ".log"

// listLogs returns the logs in the order of their epochs, and the number and size of spare files.
func (s *snapshot) listLogs() (logs []logFiles, spares logFiles, err error) {
	return listLogs(s.fs, s.dir.Log())
}

// listLogs lists the logs of a folder.
func listLogs(fsys vfs.FS, folder string) (logs []logFiles, spares logFiles, err error) {
	entries, err := fsys.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, spares, nil
	}
	if err != nil {
		return nil, spares, fmt.Errorf("listing write-ahead logs: %w", err)
	}
	for _, e := range entries {
		var epoch uint64
		var part int
		if !strings.HasSuffix(e.Name, logSuffix) {
			continue
		}
		if _, err := fmt.Sscanf(e.Name, "%016x-%04x"+logSuffix, &epoch, &part); err != nil {
			spares.parts++
			spares.bytes += e.Size
			continue
		}
		if n := len(logs); n == 0 || logs[n-1].epoch != epoch {
			logs = append(logs, logFiles{epoch: epoch})
		}
		l := &logs[len(logs)-1]
		l.parts++
		l.bytes += e.Size
	}
	return logs, spares, nil
}
