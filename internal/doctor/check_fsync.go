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

	"github.com/tracing-backend/tracing/pipeline/app"
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

// checkFsync measures how long a small write to the data folder takes until it is durable.
func checkFsync(ctx context.Context, x *examination) []Finding {
	if !x.keepsOnDisk() {
		return []Finding{newFinding("", Skipped, "no component of the configuration keeps spans on disk")}
	}
	folder, err := existing(x.config.Service.DataDir)
	if err != nil {
		return []Finding{newFinding(x.config.Service.DataDir, Problem, "%v", err).advise("create the folder, or set service::data_dir")}
	}
	times, err := measureSync(ctx, x.env.FS, filepath.Join(folder, fmt.Sprintf("doctor-%d.tmp", os.Getpid())))
	switch {
	case vfs.NoSpace(err):
		return []Finding{newFinding(folder, Problem, "cannot write: no space left on the disk").
			advise("delete files, enlarge the disk, or set service::data_dir to a folder on another one")}
	case err != nil:
		return []Finding{newFinding(folder, Problem, "cannot write: %v", err).
			advise("make the file system writable, allow this user to write to the folder, or set service::data_dir")}
	}
	return []Finding{judgeSync(folder, times)}
}

// keepsOnDisk reports whether a component has a store or a queue in files.
func (x *examination) keepsOnDisk() bool {
	return slices.ContainsFunc(x.used, func(c *app.Component) bool {
		k, ok := c.Value.(interface{ KeepsOnDisk() bool })
		return ok && k.KeepsOnDisk()
	})
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

func judgeSync(folder string, times []time.Duration) Finding {
	slices.Sort(times)
	median, longest := times[len(times)/2], times[len(times)-1]
	text := fmt.Sprintf("median %s, longest %s of %d writes; %s", roundTime(median), roundTime(longest), len(times), usualSync)
	switch {
	case inMemory(folder):
		return newFinding(folder, Warning, "file system in memory: spans are lost when the host restarts").
			advise("set service::data_dir to a folder on a disk")
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
