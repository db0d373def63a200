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
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// checkDisk compares the free disk space with the space that stores, queues and dead letters may
// still take.
func checkDisk(ctx context.Context, x *examination) []Finding {
	var found []Finding
	service := x.config.Service
	for _, c := range x.used {
		folder := x.storeFolder(c)
		switch v := c.Value.(type) {
		case *disk.Config:
			found = append(found, x.storeSpace(ctx, c, v, folder))
			found = append(found, x.checkLock(key(c), folder)...)
		case interface{ DeliveryConfig() *pipeline.Delivery }:
			if d := v.DeliveryConfig(); d.KeepsOnDisk() {
				q, _ := d.Queue.Get()
				found = append(found, x.queueSpace(ctx, key(c)+"::sending_queue", folder, int64(q.MaxSize()), "max_bytes"))
				found = append(found, x.checkLock(key(c)+"::sending_queue", filepath.Join(folder, "queue"))...)
			}
		}
	}
	if service.DeadLetterDir != "" {
		found = append(found, x.queueSpace(ctx, "service::dead_letter_dir", service.DeadLetterDir,
			int64(service.DeadLetterSize), "dead_letter_size"))
	}
	if len(found) == 0 {
		found = append(found, newFinding("", Skipped, "no component of the configuration keeps spans on disk"))
	}
	return found
}

// storeFolder returns the folder in which a component keeps spans.
func (x *examination) storeFolder(c *app.Component) string {
	if v, ok := c.Value.(*disk.Config); ok && v.Directory != "" {
		return v.Directory
	}
	return filepath.Join(x.config.Service.DataDir, c.DirName())
}

// space is the disk space of a folder, in bytes.
type space struct{ used, free int64 }

// measureSpace returns the size of the files of a folder and the free space of its volume.
func (x *examination) measureSpace(ctx context.Context, folder string) (s space, err error) {
	walk := func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ctx.Err() // the folder is missing, or the store has just deleted a file
		}
		if info, err := d.Info(); err == nil {
			s.used += info.Size()
		}
		return ctx.Err()
	}
	if err := filepath.WalkDir(folder, walk); err != nil {
		return s, err
	}
	at, err := existing(folder)
	if err != nil {
		return s, err
	}
	s.free, err = x.env.FS.Free(at)
	return s, err
}

func (x *examination) storeSpace(ctx context.Context, c *app.Component, config *disk.Config, folder string) Finding {
	subject := key(c) + " (" + folder + ")"
	s, err := x.measureSpace(ctx, folder)
	if err != nil {
		return newFinding(subject, Problem, "cannot read the disk space: %v", err).advise("allow this user to read the folder")
	}
	retention, free := int64(config.Retention.Size), s.free-int64(config.MinFree)
	switch {
	case free < 0:
		full := newFinding(subject, Problem, "%s free, below min_free (%s): the disk counts as full", size(s.free), size(int64(config.MinFree)))
		if s.used+free <= 0 { // deleting all spans would not be enough
			return full.advise("delete other files, enlarge the disk, or lower %s::min_free", key(c))
		}
		return full.advise("delete other files, enlarge the disk, or set %s::retention::size to at most %s; the store takes %s now",
			key(c), size(s.used+free), size(s.used))
	case retention == 0:
		return newFinding(subject, Warning, "%s free, store takes %s, and retention::size does not limit it", size(s.free), size(s.used)).
			advise("set %s::retention::size to at most %s", key(c), size(s.used+free))
	case retention > s.used+free:
		return newFinding(subject, Warning, "%s free, store takes %s of %s: the disk is full before the oldest spans are deleted",
			size(s.free), size(s.used), size(retention)).
			advise("enlarge the disk, or set %s::retention::size to at most %s", key(c), size(s.used+free))
	}
	return newFinding(subject, OK, "%s free, store takes %s of %s", size(s.free), size(s.used), size(retention))
}

// checkLock returns a problem if a process that does not run this configuration uses a folder: two
// processes cannot share it.
func (x *examination) checkLock(subject, folder string) []Finding {
	name := filepath.Join(folder, "LOCK")
	if _, err := os.Stat(name); err != nil || x.process.running || x.process.hangs != "" {
		return nil // FS.Lock would create the file
	}
	lock, err := x.env.FS.Lock(name)
	if err == nil {
		lock.Close() //nolint:errcheck // was not used
	}
	if !errors.Is(err, vfs.ErrLocked) {
		return nil
	}
	user := owner{}
	if at, err := filepath.Abs(name); err == nil {
		user = ownerOfFiles(map[string]bool{at: true})
	}
	subject += " (" + folder + ")"
	return []Finding{newFinding(subject, Problem, "used by %s, with another configuration: a second process cannot start", user).
		advise("stop that process, give this command its configuration, or set service::data_dir to another folder")}
}

// queueSpace checks that the volume has space for files of a total size.
func (x *examination) queueSpace(ctx context.Context, subject, folder string, limit int64, limitKey string) Finding {
	subject += " (" + folder + ")"
	s, err := x.measureSpace(ctx, folder)
	switch {
	case err != nil:
		return newFinding(subject, Problem, "cannot read the disk space: %v", err).advise("allow this user to read the folder")
	case limit > s.used+s.free:
		return newFinding(subject, Warning, "%s free, files take %s of at most %s", size(s.free), size(s.used), size(limit)).
			advise("enlarge the disk, or lower %s", limitKey)
	}
	return newFinding(subject, OK, "%s free, files take %s of at most %s", size(s.free), size(s.used), size(limit))
}

// The measurement writes a block up to maxSyncs times, for at most syncTime.
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

// existing returns the folder, or the nearest parent that exists: the program creates the rest.
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

// measureSync writes to a temporary file, and returns the durations.
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
			advise("use a faster disk, or expect this latency for each request; see sync_gap of the disk exporter")
	}
	return newFinding(folder, OK, "%s", text)
}
