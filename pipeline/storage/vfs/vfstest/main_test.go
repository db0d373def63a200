package vfstest_test

import (
	"math/rand/v2"
	"path"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seeds is how many crashes of one instant a test looks at.
const seeds = 200

func rng(seed int) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 1)) }

// newMem returns a file system with the directory /d.
func newMem(t *testing.T) *vfstest.Mem {
	t.Helper()
	m := vfstest.NewMem()
	must(t, m.MkdirAll("/d"))
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, fsys vfs.FS, name, data string) vfs.File {
	t.Helper()
	f, err := fsys.Create(name)
	must(t, err)
	write(t, f, data, 0)
	return f
}

func write(t *testing.T, f vfs.File, data string, off int64) {
	t.Helper()
	if n, err := f.WriteAt([]byte(data), off); n != len(data) || err != nil {
		t.Fatalf("WriteAt(%d bytes, %d) = %d, %v", len(data), off, n, err)
	}
}

// createSynced makes a file that nothing but a Remove can take away.
func createSynced(t *testing.T, fsys vfs.FS, name, data string) vfs.File {
	t.Helper()
	f := create(t, fsys, name, data)
	must(t, f.Sync())
	must(t, fsys.SyncDir(path.Dir(name)))
	return f
}

func read(t *testing.T, fsys vfs.FS, name string) string {
	t.Helper()
	data, err := vfs.ReadFile(fsys, name, 1<<20)
	must(t, err)
	return string(data)
}

func names(t *testing.T, fsys vfs.FS, dir string) []string {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	must(t, err)
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name)
	}
	return list
}

// outcomes counts what look finds after many crashes of the same instant.
func outcomes(m *vfstest.Mem, look func(m *vfstest.Mem) string) map[string]int {
	seen := map[string]int{}
	for seed := range seeds {
		seen[look(m.Crash(rng(seed)))]++
	}
	return seen
}

// wantOutcomes checks that exactly these outcomes happened.
func wantOutcomes(t *testing.T, seen map[string]int, want ...string) {
	t.Helper()
	for _, w := range want {
		if seen[w] == 0 {
			t.Errorf("never seen: %q", w)
		}
	}
	for s := range seen {
		if !slices.Contains(want, s) {
			t.Errorf("must not happen: %q", s)
		}
	}
}
