package directory_test

import (
	"errors"
	"math/rand/v2"
	"path"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// add writes the file of a segment with 10 spans and adds it to the list.
func add(t *testing.T, fs vfs.FS, d *directory.Dir, epoch uint64) directory.Segment {
	t.Helper()
	s := directory.NewSegment(at(1), 0, epoch, epoch)
	addSegment(t, fs, d, s)
	d.Enlist(s, 10)
	return s
}

// missing returns the epochs of missing segments.
func missing(t *testing.T, fs vfs.FS) (epochs []uint64) {
	t.Helper()
	d, err := directory.OpenReadOnly(fs, root)
	if err != nil {
		t.Fatal(err)
	}
	list, err := d.Missing()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if m.Spans != 10 {
			t.Errorf("%d spans, want 10", m.Spans)
		}
		epochs = append(epochs, m.First)
	}
	return epochs
}

// TestMissing: a segment whose file is gone is missing until the owner sets the list, or the
// quarantine has a note. A segment that the owner removed or moved to the quarantine is not.
func TestMissing(t *testing.T) {
	fs := vfstest.NewMem()
	d := open(t, fs)
	for epoch := range uint64(5) {
		add(t, fs, d, epoch)
	}
	segments, err := d.Segments()
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Quarantine(d.Path(segments[1]))
	if err := errors.Join(err, d.Remove(segments[0])); err != nil {
		t.Fatal(err)
	}
	if got := missing(t, fs); len(got) > 0 {
		t.Errorf("missing %v, want none", got)
	}
	err = errors.Join(fs.Remove(d.Path(segments[2])), fs.Remove(d.Path(segments[3])), d.Close())
	if err != nil {
		t.Fatal(err)
	}
	d = open(t, fs)
	defer d.Close()
	add(t, fs, d, 7)
	if got := missing(t, fs); !slices.Equal(got, []uint64{2, 3}) {
		t.Errorf("missing %v, want 2 and 3", got)
	}
	if err := d.MarkMissing(segments[2], "text"); err != nil {
		t.Fatal(err)
	}
	if got := missing(t, fs); !slices.Equal(got, []uint64{3}) {
		t.Errorf("missing %v, want 3", got)
	}
	if epoch, ok := d.Lost(path.Base(segments[2].String()) + ".damage.txt"); epoch != 2 || !ok {
		t.Errorf("the note is about %d, %v", epoch, ok)
	}
	d.SetList(map[string]int{segments[4].String(): 10})
	if got := missing(t, fs); len(got) > 0 {
		t.Errorf("missing %v, want none", got)
	}
}

// TestDamagedList flips every bit of the list, and cuts it: Missing returns an error. The next
// change writes it again.
func TestDamagedList(t *testing.T) {
	fs := vfstest.NewMem()
	d := open(t, fs)
	add(t, fs, d, 1)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	name := d.ListFile()
	content, err := vfs.ReadFile(fs, name, 1000)
	if err != nil {
		t.Fatal(err)
	}
	const want = "tracing segments, version 1\n20261121/0-0000000000000001-0000000000000001.seg 10\ncrc32c d3b3d7b6\n"
	if string(content) != want {
		t.Fatalf("%q, want %q", content, want)
	}
	check := func(content []byte) {
		t.Helper()
		if err := vfs.WriteFileAtomic(fs, name, content); err != nil {
			t.Fatal(err)
		}
		d := open(t, fs)
		defer d.Close()
		if _, err := d.Missing(); err == nil {
			t.Errorf("no error for %q", content)
		}
		d.SetList(nil)
		if _, err := d.Missing(); err != nil {
			t.Error(err)
		}
	}
	for bit := range len(content) * 8 {
		content[bit/8] ^= 1 << (bit % 8)
		check(content)
		content[bit/8] ^= 1 << (bit % 8)
	}
	for n := range content {
		check(content[:n])
	}
}

// TestListDuringFaults: whenever an operation on a disk fails, and whenever its power fails, no
// segment is missing.
func TestListDuringFaults(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		mem, after := vfstest.NewMem(), (*vfstest.Mem)(nil)
		crash := &vfstest.Rule{Op: vfstest.OpChanges, Skip: rng.IntN(80), Times: 1, Hook: func() { after = mem.Crash(rng) }}
		broken := &vfstest.Rule{Op: vfstest.OpChanges, Path: []string{"segments.list*", "disk", ""}[rng.IntN(3)], Skip: rng.IntN(20),
			Times: 1 + rng.IntN(5), Err: []error{vfstest.ErrIO, vfstest.ErrNoSpace}[rng.IntN(2)]}
		files := vfstest.Inject(mem, crash, broken)
		if d, err := directory.Open(files, root); err == nil {
			change(files, d, rng)
		}
		if after == nil {
			after = mem.Crash(rng)
		}
		d, err := directory.Open(after, root)
		if err != nil {
			t.Fatal(err)
		}
		if got := missing(t, after); len(got) > 0 {
			t.Fatalf("seed %d: missing %v", seed, got)
		}
		d.Close()
	}
}

// change adds segments, and removes some of them or moves them to the quarantine.
func change(fs vfs.FS, d *directory.Dir, rng *rand.Rand) {
	var segments []directory.Segment
	for epoch := range uint64(8) {
		s := directory.NewSegment(at(1), 0, epoch, epoch)
		err := d.WithDay(s, func() error { return vfs.WriteFileAtomic(fs, d.Path(s), make([]byte, 100)) })
		if err != nil {
			continue
		}
		d.Enlist(s, 10)
		if segments = append(segments, s); len(segments) < 2 {
			continue
		}
		if rng.IntN(3) == 0 {
			_, err = d.Quarantine(d.Path(segments[0]))
		} else {
			err = d.Remove(segments[0])
		}
		if err == nil {
			segments = segments[1:]
		}
		d.SaveList() //nolint:errcheck // the disk may be broken
	}
}
