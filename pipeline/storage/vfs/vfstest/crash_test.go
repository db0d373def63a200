package vfstest_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

const sector = 512

func TestSyncedDataSurvivesEveryCrash(t *testing.T) {
	m := newMem(t)
	data := strings.Repeat("s", 3*sector+7)
	createSynced(t, m, "/d/a", data)
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string { return read(t, m, "/d/a") }), data)
}

func TestUnsyncedDataMaySurvive(t *testing.T) {
	m := newMem(t)
	f := createSynced(t, m, "/d/a", "old")
	write(t, f, "new", 0)
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string { return read(t, m, "/d/a") }), "old", "new")
}

func TestSyncedFileInUnsyncedDirectoryMayBeGone(t *testing.T) {
	m := newMem(t)
	must(t, create(t, m, "/d/a", "A").Sync())
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string { return strings.Join(names(t, m, "/d"), " ") }), "", "a")
}

func TestNameWithoutSyncedData(t *testing.T) {
	m := newMem(t)
	create(t, m, "/d/a", "A")
	must(t, m.SyncDir("/d"))
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string { return read(t, m, "/d/a") }), "", "A", "\x00")
}

func TestWritesTearBySector(t *testing.T) {
	m := newMem(t)
	f := createSynced(t, m, "/d/a", strings.Repeat("o", 3*sector))
	write(t, f, strings.Repeat("n", 3*sector), 0)
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string { return sectors(read(t, m, "/d/a")) }),
		"ooo", "oon", "ono", "onn", "noo", "non", "nno", "nnn")
}

func TestSectorKeepsOneOfItsVersions(t *testing.T) {
	m := newMem(t)
	f := createSynced(t, m, "/d/a", "....")
	for i := range 3 {
		write(t, f, fmt.Sprint(i), int64(i))
	}
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string { return read(t, m, "/d/a") }), "....", "0...", "01..", "012.")
}

func TestTornGrowthLeavesHoles(t *testing.T) {
	m := newMem(t)
	f := createSynced(t, m, "/d/a", strings.Repeat("o", sector))
	write(t, f, strings.Repeat("n", 2*sector), sector)
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string { return sectors(read(t, m, "/d/a")) }), "o", "onn", "o0n", "on0", "o00")
}

func TestTruncationMayBeForgotten(t *testing.T) {
	m := newMem(t)
	f := createSynced(t, m, "/d/a", strings.Repeat("o", 2*sector))
	must(t, f.Truncate(sector))
	write(t, f, strings.Repeat("n", sector), 2*sector)
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string { return sectors(read(t, m, "/d/a")) }), "oo", "o", "o0n", "o00")
}

// sectors shows a file of full sectors that hold one byte each, a letter per sector.
func sectors(data string) string {
	var b strings.Builder
	for i := 0; i < len(data); i += sector {
		s := data[i : i+sector]
		switch {
		case strings.Count(s, s[:1]) != sector:
			b.WriteByte('!')
		case s[0] == 0:
			b.WriteByte('0')
		default:
			b.WriteByte(s[0])
		}
	}
	return b.String()
}

func TestDirectoryKeepsAPrefixOfItsChanges(t *testing.T) {
	m := newMem(t)
	createSynced(t, m, "/d/a", "A")
	createSynced(t, m, "/d/b", "B")
	must(t, m.Rename("/d/a", "/d/b"))
	must(t, create(t, m, "/d/c", "").Close())
	must(t, m.Remove("/d/b"))
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string {
		list := names(t, m, "/d")
		if slices.Contains(list, "b") {
			list = append(list, read(t, m, "/d/b"))
		}
		return strings.Join(list, " ")
	}), "a b B", "b A", "b c A", "c")
	must(t, m.Crash(rng(0)).SyncDir("/d"))
}

func TestSyncDirMakesNamesDurable(t *testing.T) {
	m := newMem(t)
	createSynced(t, m, "/d/a", "A")
	createSynced(t, m, "/d/b", "B")
	must(t, m.Rename("/d/a", "/d/c"))
	must(t, m.Remove("/d/b"))
	must(t, m.SyncDir("/d"))
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string { return strings.Join(names(t, m, "/d"), " ") }), "c")
}

func TestMoveBetweenDirectoriesNeverLosesTheFile(t *testing.T) {
	m := newMem(t)
	must(t, m.MkdirAll("/e"))
	createSynced(t, m, "/d/a", "A")
	must(t, m.Rename("/d/a", "/e/a"))
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string {
		return fmt.Sprint(names(t, m, "/d"), names(t, m, "/e"))
	}), "[a] []", "[a] [a]", "[] [a]")
}

// What a lost change takes with it can be what another directory's change depends on.
func TestMovesThatDependOnEachOther(t *testing.T) {
	m := newMem(t)
	must(t, m.MkdirAll("/e"))
	must(t, m.MkdirAll("/f"))
	createSynced(t, m, "/d/a", "A")
	createSynced(t, m, "/e/x", "X")
	must(t, m.Rename("/e/x", "/f/x"))
	must(t, m.Rename("/d/a", "/e/a"))
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string {
		return fmt.Sprint(names(t, m, "/d"), names(t, m, "/e"), names(t, m, "/f"))
	}), "[a] [x] []", "[a] [x] [x]", "[a] [] [x]", "[a] [a] [x]", "[] [a] [x]")
}

func TestMkdirAllIsDurable(t *testing.T) {
	m := newMem(t)
	must(t, m.MkdirAll("/d/e/f"))
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string {
		return fmt.Sprint(names(t, m, "/"), names(t, m, "/d"), names(t, m, "/d/e"))
	}), "[d] [e] [f]")
}

func TestKillKeepsWhatWasWritten(t *testing.T) {
	m := newMem(t)
	create(t, m, "/d/a", "A")
	m = m.Kill()
	wantContent(t, m, "/d/a", "A")
	// The machine still runs: what was unsynced before is unsynced now.
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string { return strings.Join(names(t, m, "/d"), " ") }), "", "a")
}

func TestTheOldSystemIsDead(t *testing.T) {
	for name, crash := range map[string]func(m *vfstest.Mem) *vfstest.Mem{
		"Kill":  (*vfstest.Mem).Kill,
		"Crash": func(m *vfstest.Mem) *vfstest.Mem { return m.Crash(rng(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			old := newMem(t)
			f := createSynced(t, old, "/d/a", "A")
			lock, err := old.Lock("/d/lock")
			must(t, err)
			must(t, old.SyncDir("/d"))
			m := crash(old)

			_, writeErr := f.WriteAt([]byte("X"), 0)
			_, readErr := f.ReadAt(make([]byte, 1), 0)
			_, createErr := old.Create("/d/b")
			_, lockErr := old.Lock("/d/other")
			for i, err := range []error{writeErr, readErr, createErr, lockErr, f.Sync(), f.Close(), lock.Close(), old.SyncDir("/d"),
				old.Rename("/d/a", "/d/b")} {
				wantErr(t, fmt.Sprintf("operation %d", i), err, vfstest.ErrCrashed)
			}
			wantContent(t, m, "/d/a", "A")
			if m.Handles() != 0 {
				t.Errorf("the new system starts with %d handles", m.Handles())
			}
			lock, err = m.Lock("/d/lock")
			must(t, err)
			must(t, lock.Close())
		})
	}
}

func TestCrashesOfOneInstantAreIndependent(t *testing.T) {
	m := newMem(t)
	createSynced(t, m, "/d/a", "A")
	one, other := m.Crash(rng(1)), m.Crash(rng(1))
	f, err := one.OpenWrite("/d/a")
	must(t, err)
	write(t, f, "BB", 0)
	must(t, f.Sync())
	wantContent(t, other, "/d/a", "A")
	wantContent(t, one.Crash(rng(2)), "/d/a", "BB")
}

func TestCrashIsReproducible(t *testing.T) {
	for seed := range 20 {
		var first string
		for range 2 {
			m := newMem(t)
			for i := range 9 {
				create(t, m, fmt.Sprint("/d/", i), strings.Repeat("x", 2000))
			}
			m = m.Crash(rng(seed))
			var got string
			for _, name := range names(t, m, "/d") {
				got += name + read(t, m, "/d/"+name)
			}
			if first == "" {
				first = got
			}
			if got != first {
				t.Fatalf("seed %d: two crashes differ", seed)
			}
		}
	}
}

// A random history of one file, against the plain rule: after a crash the size is one that the file
// had since the last Sync, and so is every sector, with zeroes where there was none.
func TestRandomHistories(t *testing.T) {
	for seed := range 300 {
		r := rng(seed)
		m := newMem(t)
		f := createSynced(t, m, "/d/a", "")
		since := [][]byte{nil} // contents since the last Sync
		for range 40 {
			for range r.IntN(8) {
				since = append(since, randomChange(t, r, f))
			}
			if r.IntN(3) == 0 {
				must(t, f.Sync())
				since = since[len(since)-1:]
			}
			if r.IntN(4) > 0 {
				continue
			}
			m = m.Crash(r)
			got := []byte(read(t, m, "/d/a"))
			if err := plausible(got, since); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			since = [][]byte{got}
			var err error
			f, err = m.OpenWrite("/d/a")
			must(t, err)
		}
	}
}

// randomChange writes or truncates and returns the content afterwards.
func randomChange(t *testing.T, r *rand.Rand, f vfs.File) []byte {
	t.Helper()
	if r.IntN(4) == 0 {
		must(t, f.Truncate(r.Int64N(5*sector)))
	} else {
		write(t, f, strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(2*sector)), r.Int64N(3*sector))
	}
	size, err := f.Size()
	must(t, err)
	data := make([]byte, size)
	if size > 0 {
		_, err = f.ReadAt(data, 0)
		must(t, err)
	}
	return data
}

func plausible(got []byte, since [][]byte) error {
	if !slices.ContainsFunc(since, func(v []byte) bool { return len(v) == len(got) }) {
		return fmt.Errorf("size %d was never there since the last Sync", len(got))
	}
	for at := 0; at < len(got); at += sector {
		have := got[at:min(at+sector, len(got))]
		known := slices.ContainsFunc(since, func(v []byte) bool {
			version := make([]byte, sector)
			copy(version, v[min(at, len(v)):])
			return bytes.Equal(have, version[:len(have)])
		})
		if !known {
			return fmt.Errorf("sector at %d was never there since the last Sync: %q", at, have)
		}
	}
	return nil
}

func TestQuota(t *testing.T) {
	m := newMem(t)
	m.SetQuota(10)
	f := create(t, m, "/d/a", "0123456")
	n, err := f.WriteAt([]byte("abcdef"), 5)
	if n != 5 || !vfs.NoSpace(err) {
		t.Errorf("write over the border: %d, %v, want 5 and a full disk", n, err)
	}
	wantContent(t, m, "/d/a", "01234abcde")
	write(t, f, "xyz", 7) // in place
	if n, err := f.WriteAt([]byte("!"), 20); n != 0 || !vfs.NoSpace(err) {
		t.Errorf("write behind the border: %d, %v", n, err)
	}
	must(t, f.Truncate(4))
	wantFree(t, m, 6)
	must(t, m.Remove("/d/a"))
	wantFree(t, m, 6) // still open
	must(t, f.Close())
	wantFree(t, m, 10)
	m.SetQuota(0)
	wantFree(t, m, 0)
	create(t, m, "/d/empty", "")
}

func wantFree(t *testing.T, m *vfstest.Mem, want int64) {
	t.Helper()
	if free, err := m.Free("/d"); free != want || err != nil {
		t.Errorf("Free = %d, %v, want %d", free, err, want)
	}
}

func TestQuotaAfterACrash(t *testing.T) {
	m := newMem(t)
	m.SetQuota(10)
	f := createSynced(t, m, "/d/a", "12345")
	must(t, m.Remove("/d/a"))
	wantFree(t, m.Kill(), 10) // no handle is open
	wantOutcomes(t, outcomes(m, func(m *vfstest.Mem) string {
		free, err := m.Free("/d")
		must(t, err)
		return fmt.Sprint(free, names(t, m, "/d"))
	}), "10 []", "5 [a]")
	wantErr(t, "close", f.Close(), vfstest.ErrCrashed)
}

func TestUnsyncedMemoryIsBounded(t *testing.T) {
	m := newMem(t)
	f := createSynced(t, m, "/d/a", "")
	block := bytes.Repeat([]byte{'x'}, 1<<20)
	for range 20 {
		_, err := f.WriteAt(block, 0)
		must(t, err)
	}
	// More than 16 MiB were written: the first blocks count as written back.
	for seed := range 20 {
		if got := read(t, m.Crash(rng(seed)), "/d/a"); got != string(block) {
			t.Fatalf("seed %d: the block was not written back", seed)
		}
	}
}

func TestHandles(t *testing.T) {
	m := newMem(t)
	f := create(t, m, "/d/a", "A")
	g, err := m.Open("/d/a")
	must(t, err)
	lock, err := m.Lock("/d/lock")
	must(t, err)
	got := []int{m.Handles()}
	for _, c := range []interface{ Close() error }{f, g, lock} {
		must(t, c.Close())
		got = append(got, m.Handles())
	}
	if want := []int{3, 2, 1, 0}; !reflect.DeepEqual(got, want) {
		t.Errorf("handles %v, want %v", got, want)
	}
}
