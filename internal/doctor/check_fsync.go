package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// The measurement writes one block at most maxSyncs times, for at most syncTime.
const (
	syncBlock = 4096 // bytes
	maxSyncs  = 50
	syncTime  = 3 * time.Second
)

// Medians above which a finding is a warning or a problem.
const (
	syncWarning = 20 * time.Millisecond
	syncProblem = 200 * time.Millisecond
)

const usualSync = "usual are 0.05 to 2ms on an SSD of a server, 2 to 10ms on a network volume, 10 to 30ms on a hard disk"

// checkFsync measures how long a small write takes until it is durable, in each folder with spans.
func checkFsync(ctx context.Context, x *examination) []Finding {
	var found []Finding
	measured := map[string]bool{}
	for _, c := range x.used {
		d, ok := c.Value.(pipeline.DurableConfig)
		if !ok || !d.KeepsOnDisk() {
			continue
		}
		folder, setting := x.config.Service.DataDir, "service::data_dir"
		if v, ok := c.Value.(*disk.Config); ok && v.Directory != "" {
			folder, setting = v.Directory, key(c)+"::directory"
		}
		if !measured[folder] {
			measured[folder] = true
			found = append(found, x.checkSync(ctx, folder, setting))
		}
	}
	if len(found) == 0 {
		found = append(found, newFinding("", Skipped, "no component of the configuration keeps spans on disk"))
	}
	return found
}

// checkSync measures in a folder that a setting names.
func (x *examination) checkSync(ctx context.Context, configured, setting string) Finding {
	folder, err := existing(configured)
	if err != nil {
		return newFinding(configured, Problem, "%v", err).advise("create the folder, or set %s", setting)
	}
	times, err := measureSync(ctx, x.env.FS, filepath.Join(folder, fmt.Sprintf("doctor-%d.tmp", os.Getpid())))
	switch {
	case vfs.NoSpace(err):
		return newFinding(folder, Problem, "cannot write: no space left on the disk").
			advise("delete files, enlarge the disk, or set %s to a folder on another one", setting)
	case err != nil:
		return newFinding(folder, Problem, "cannot write: %v", err).
			advise("make the file system writable, allow this user to write to the folder, or set %s", setting)
	}
	return judgeSync(folder, setting, times)
}

// existing returns the folder, or the nearest one above it that exists: the program creates the
// rest.
func existing(folder string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	for {
		info, err := os.Stat(folder)
		switch {
		case err == nil && info.IsDir():
			return folder, nil
		case err == nil:
			return "", fmt.Errorf("%s is not a folder", folder)
		case !errors.Is(err, fs.ErrNotExist) || folder == filepath.Dir(folder):
			return "", err
		}
		folder = filepath.Dir(folder)
	}
}

// measureSync writes to a new file, which it removes, and returns the durations.
func measureSync(ctx context.Context, files vfs.FS, name string) (times []time.Duration, err error) {
	f, err := files.Create(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), files.Remove(name)) }()
	block := make([]byte, syncBlock)
	for began := time.Now(); len(times) < maxSyncs && time.Since(began) < syncTime && ctx.Err() == nil; {
		at := time.Now()
		if _, err := f.WriteAt(block, int64(len(times)*syncBlock)); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(at))
	}
	if len(times) == 0 {
		return nil, ctx.Err()
	}
	return times, nil
}

func judgeSync(folder, setting string, times []time.Duration) Finding {
	slices.Sort(times)
	median, longest := times[len(times)/2], times[len(times)-1]
	text := fmt.Sprintf("median %s, longest %s of %d writes; %s", roundTime(median), roundTime(longest), len(times), usualSync)
	switch {
	case inMemory(folder):
		return newFinding(folder, Warning, "file system in memory: spans are lost when the host restarts").
			advise("set %s to a folder on a disk", setting)
	case median > syncProblem:
		return newFinding(folder, Problem, "%s", text).
			advise("use a faster disk; each request waits for a sync, so that clients time out. exporters::disk::sync: interval waits for none, " +
				"but a power failure can lose spans")
	case median > syncWarning:
		return newFinding(folder, Warning, "%s", text).
			advise("use a faster disk, or expect this latency for each request; see sync_gap of the exporter disk")
	}
	return newFinding(folder, OK, "%s", text)
}
