package directory_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const root = "/data/disk"

func open(t *testing.T, fs vfs.FS) *directory.Dir {
	t.Helper()
	d, err := directory.Open(fs, root)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func write(t *testing.T, fs vfs.FS, name string, size int) {
	t.Helper()
	if err := vfs.WriteFileAtomic(fs, name, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
}

func at(hour int) time.Time { return time.Date(2026, 11, 21, hour, 0, 0, 0, time.UTC) }

// addSegment writes a file of 100 bytes with the name of a segment.
func addSegment(t *testing.T, fs vfs.FS, d *directory.Dir, s directory.Segment) {
	t.Helper()
	err := d.WithDay(s, func() error {
		if err := d.RemoveEmptyDays(); err != nil {
			return err
		}
		write(t, fs, d.Path(s), 100)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOneProcess(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"memory": vfstest.NewMem(), "machine": nil} {
		t.Run(name, func(t *testing.T) {
			path := root
			if fs == nil {
				fs, path = vfs.OS(), t.TempDir()
			}
			d, err := directory.Open(fs, path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := directory.Open(fs, path); err == nil || !strings.Contains(err.Error(), "in use by another process") {
				t.Errorf("second process: %v", err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			d, err = directory.Open(fs, path)
			if err != nil {
				t.Fatalf("after the first process ended: %v", err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestVersions(t *testing.T) {
	for content, want := range map[string]string{
		"tracing span store, version 1\n":                      "check that /data/disk is the right folder",
		"tracing span store, version 1\ncrc32c 761ce93f\n":     "",
		"tracing span store, version 2\ncrc32c 42fb41a6\nmore": "format 2, newer than format 1 of this program",
		"tracing span store, version 2\n":                      "check that /data/disk is the right folder",
		"tracing span store, version 0\n":                      "check that /data/disk is the right folder",
		"something else":                                       "check that /data/disk is the right folder",
		"":                                                     "check that /data/disk is the right folder",
		strings.Repeat("long", 1000):                           "file too large",
		"tracing span store, version 1\nx":                     "check that /data/disk is the right folder",
		"tracing span store, version 1\ncrc32c 761ce93f\nmore": "check that /data/disk is the right folder",
	} {
		fs := vfstest.NewMem()
		if err := fs.MkdirAll(root); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFileAtomic(fs, root+"/FORMAT", []byte(content)); err != nil {
			t.Fatal(err)
		}
		d, err := directory.Open(fs, root)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", content, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: error %v, want one with %q", content, err, want)
		case err != nil:
			if entries, _ := fs.ReadDir(root); len(entries) != 2 { // FORMAT and LOCK
				t.Errorf("%q: rejected folder was changed: %v", content, entries)
			}
		default:
			d.Close()
		}
	}
}

// TestVersionSurvivesACrash checks that a folder with data always has a version.
func TestVersionSurvivesACrash(t *testing.T) {
	for seed := range uint64(50) {
		fs := vfstest.NewMem()
		open(t, fs)
		after := fs.Crash(rand.New(rand.NewPCG(seed, 0)))
		b, err := vfs.ReadFile(after, root+"/FORMAT", 100)
		if err != nil || !strings.HasPrefix(string(b), "tracing span store, version 1\ncrc32c ") {
			t.Fatalf("seed %d: %q, %v", seed, b, err)
		}
		open(t, after).Close()
	}
}

func TestSegments(t *testing.T) {
	fs := vfstest.NewMem()
	d := open(t, fs)
	defer d.Close()
	a, b := directory.NewSegment(at(1), 0, 7, 7), directory.NewSegment(at(1).AddDate(0, 0, 1), 1, 8, 1<<60)
	addSegment(t, fs, d, a)
	addSegment(t, fs, d, b)
	for _, other := range []string{
		"20261121/readme",
		"20261121/0-7-7.seg",
		"20261121/0-0000000000000009-0000000000000008.seg",
		"notes/0-0000000000000007-0000000000000007.seg",
	} {
		if err := fs.MkdirAll(root + "/seg/notes"); err != nil {
			t.Fatal(err)
		}
		write(t, fs, root+"/seg/"+other, 1)
	}
	a.Size, b.Size = 100, 100
	got, err := d.Segments()
	if err != nil || !slices.Equal(got, []directory.Segment{a, b}) {
		t.Fatalf("segments %v, %v; want %v and %v", got, err, a, b)
	}
	if !a.InRange(7) || a.InRange(8) || !b.InRange(1<<60) || !b.InRange(9) || !a.IsSingleEpoch() || b.IsSingleEpoch() {
		t.Error("InRange or IsSingleEpoch is wrong")
	}
	if err := d.Remove(a); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(a); err != nil {
		t.Errorf("removing a removed segment: %v", err)
	}
	if got, _ := d.Segments(); !slices.Equal(got, []directory.Segment{b}) {
		t.Errorf("after Remove: %v", got)
	}
	if err := d.Remove(b); err != nil {
		t.Fatal(err)
	}
	if err := d.RemoveEmptyDays(); err != nil {
		t.Fatal(err)
	}
	days, _ := fs.ReadDir(root + "/seg")
	if len(days) != 2 || days[0].Name != "20261121" || days[1].Name != "notes" {
		t.Errorf("folders after RemoveEmptyDays: %v", days)
	}
}

// TestVanishingDay: a folder of a day that disappears while segments are listed, or empty folders
// are removed, is not an error.
func TestVanishingDay(t *testing.T) {
	mem := vfstest.NewMem()
	var d *directory.Dir
	first, second := directory.NewSegment(at(3), 0, 1, 1), directory.NewSegment(at(30), 0, 2, 2)
	vanish := &vfstest.Rule{Op: vfstest.OpReadDir, Path: second.Day, Hook: func() {
		mem.Remove(d.Path(second)) //nolint:errcheck // the hook runs several times
		mem.Remove(path.Dir(d.Path(second)))
	}}
	vanish.Switch(false)
	fs := vfstest.Inject(mem, vanish)
	d = open(t, fs)
	defer d.Close()
	for _, list := range []func() error{d.RemoveEmptyDays, func() error { _, err := d.Segments(); return err }} {
		addSegment(t, fs, d, first)
		addSegment(t, fs, d, second)
		vanish.Switch(true)
		if err := list(); err != nil {
			t.Error(err)
		}
		vanish.Switch(false)
		if got, err := d.Segments(); err != nil || len(got) != 1 || got[0].First != 1 {
			t.Errorf("segments %v, %v; want the first", got, err)
		}
	}
}

func TestUnfinishedFilesAreRemoved(t *testing.T) {
	fs := vfstest.NewMem()
	d := open(t, fs)
	s := directory.NewSegment(at(3), 0, 1, 1)
	addSegment(t, fs, d, s)
	for _, name := range []string{d.Path(s) + ".tmp", root + "/FORMAT.tmp", d.Log() + "/x.tmp"} {
		write(t, fs, name, 10)
	}
	d.Close()
	d = open(t, fs)
	defer d.Close()
	for _, dir := range []string{root, d.Log(), root + "/seg/20261121"} {
		entries, err := fs.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name, ".tmp") {
				t.Errorf("%s/%s still exists", dir, e.Name)
			}
		}
	}
	if got, _ := d.Segments(); len(got) != 1 {
		t.Errorf("finished segment was removed: %v", got)
	}
}

// TestStaging checks that staged segments are not listed and published ones survive a crash.
func TestStaging(t *testing.T) {
	for seed := range uint64(20) {
		mem := vfstest.NewMem()
		d := open(t, mem)
		staged := directory.NewSegment(at(3), 1, 1, 2)
		discarded := directory.NewSegment(at(3), 1, 3, 4)
		published := directory.NewSegment(at(3), 1, 5, 6)
		addSegment(t, mem, d, staged)
		if err := d.Remove(staged); err != nil {
			t.Fatal(err)
		}
		write(t, mem, d.StagingPath(staged), 10)
		write(t, mem, d.StagingPath(discarded), 10)
		write(t, mem, d.StagingPath(published), 20)
		if got, err := d.Segments(); err != nil || len(got) > 0 {
			t.Fatalf("staged segments are listed: %v, %v", got, err)
		}
		for range 2 {
			if err := d.Discard(discarded); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Publish(discarded); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("publishing a discarded segment: %v", err)
		}
		if err := d.Publish(published); err != nil {
			t.Fatal(err)
		}
		after := mem.Crash(rand.New(rand.NewPCG(seed, 0)))
		d = open(t, after)
		published.Size = 20
		if got, err := d.Segments(); err != nil || !slices.Equal(got, []directory.Segment{published}) {
			t.Errorf("seed %d: after a crash %v, %v", seed, got, err)
		}
		if entries, err := after.ReadDir(root + "/seg/20261121"); err != nil || len(entries) != 1 {
			t.Errorf("seed %d: files after a crash and a start: %v, %v", seed, entries, err)
		}
		d.Close()
	}
}

func TestQuarantine(t *testing.T) {
	fs := vfstest.NewMem()
	d := open(t, fs)
	defer d.Close()
	s := directory.NewSegment(at(3), 0, 1, 1)
	addSegment(t, fs, d, s)
	to, err := d.Quarantine(d.Path(s))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := vfs.ReadFile(fs, to, 1000); err != nil || len(b) != 100 {
		t.Errorf("file in quarantine: %d bytes, %v", len(b), err)
	}
	if got, _ := d.Segments(); len(got) != 0 {
		t.Errorf("quarantined segment is still listed: %v", got)
	}
}

func TestReserve(t *testing.T) {
	fs := vfstest.NewMem()
	d := open(t, fs)
	defer d.Close()
	size := func() int64 {
		f, err := fs.Open(root + "/reserve")
		if err != nil {
			return 0
		}
		defer f.Close()
		n, _ := f.Size()
		return n
	}
	for _, want := range []int64{3 << 20, 5<<20 + 1, 1 << 20, 0, 2 << 20} {
		if err := d.Reserve(want); err != nil || size() != want {
			t.Errorf("Reserve(%d): %v, %d bytes", want, err, size())
		}
	}
	if err := d.ReleaseReserve(); err != nil || size() != 0 {
		t.Errorf("ReleaseReserve: %v", err)
	}
	if err := d.ReleaseReserve(); err != nil {
		t.Errorf("releasing twice: %v", err)
	}
	fs.SetQuota(4 << 20)
	if err := d.Reserve(64 << 20); !vfs.NoSpace(err) {
		t.Errorf("reserve larger than the disk: %v", err)
	}
	if free, err := d.Free(); err != nil || free > 1<<20 {
		t.Errorf("free space after a reserve that is too large: %d, %v", free, err)
	}
	if err := d.ReleaseReserve(); err != nil {
		t.Error(err)
	}
	if free, err := d.Free(); err != nil || free < 3<<20 {
		t.Errorf("free space after release: %d, %v", free, err)
	}
}
