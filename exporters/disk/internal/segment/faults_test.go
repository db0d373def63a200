package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

func writeDir(tb testing.TB) *vfstest.Mem {
	tb.Helper()
	mem := vfstest.NewMem()
	if err := mem.MkdirAll("d"); err != nil {
		tb.Fatal(err)
	}
	return mem
}

// operations returns the number of modifying operations of a Write.
func operations(tb testing.TB, in Input) int {
	tb.Helper()
	fsys := vfstest.Inject(writeDir(tb))
	if _, err := Write(fsys, "d/s", in, Meta{}, Options{blockRows: 10}); err != nil {
		tb.Fatal(err)
	}
	return fsys.Count(vfstest.OpChanges | vfstest.OpClose)
}

// TestEveryFailedOperation checks that after any failed operation no file is left and the next
// attempt succeeds.
func TestEveryFailedOperation(t *testing.T) {
	s := randomSample(t, 11, 12)
	for n := range operations(t, s.in) {
		for _, cause := range []error{vfstest.ErrIO, vfstest.ErrNoSpace} {
			mem := writeDir(t)
			rule := &vfstest.Rule{Op: vfstest.OpChanges | vfstest.OpClose, Skip: n, Times: 1, Err: cause, Short: n%2 == 0}
			fsys := vfstest.Inject(mem, rule)
			_, err := Write(fsys, "d/s", s.in, Meta{}, Options{blockRows: 10})
			if rule.Hits() == 1 && !errors.Is(err, cause) {
				t.Fatalf("operation %d: %v, want %v", n, err, cause)
			}
			if err != nil {
				checkAbsent(t, mem, fmt.Sprintf("operation %d", n))
			}
			if mem.Handles() != 0 {
				t.Fatalf("operation %d: %d files open", n, mem.Handles())
			}
			if _, err := Write(fsys, "d/s", s.in, Meta{}, Options{blockRows: 10}); err != nil {
				t.Fatalf("after operation %d: %v", n, err)
			}
			checkSame(t, "second try", readAll(t, mem, "d/s"), s.spans)
		}
	}
}

func checkAbsent(t *testing.T, fsys vfs.FS, what string) {
	t.Helper()
	for _, name := range []string{"d/s", "d/s.tmp"} {
		if _, err := fsys.Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s: %s: %v", what, name, err)
		}
	}
}

func TestFullDisk(t *testing.T) {
	s := randomSample(t, 11, 12)
	mem := writeDir(t)
	mem.SetQuota(1000)
	_, err := Write(mem, "d/s", s.in, Meta{}, Options{})
	if !vfs.NoSpace(err) {
		t.Fatalf("got %v", err)
	}
	checkAbsent(t, mem, "full disk")
	mem.SetQuota(1 << 20)
	if _, err := Write(mem, "d/s", s.in, Meta{}, Options{}); err != nil {
		t.Fatal(err)
	}
}

// TestEveryCrash checks that after a power failure the segment exists completely or not at all, and
// completely if Write has returned.
func TestEveryCrash(t *testing.T) {
	s := randomSample(t, 11, 12)
	n := operations(t, s.in)
	for at := range n + 1 {
		for seed := range uint64(4) {
			mem := writeDir(t)
			var after *vfstest.Mem
			crash := func() { after = mem.Crash(rand.New(rand.NewPCG(seed, uint64(at)))) }
			rule := &vfstest.Rule{Op: vfstest.OpChanges | vfstest.OpClose, Skip: at, Times: 1, Hook: crash}
			_, err := Write(vfstest.Inject(mem, rule), "d/s", s.in, Meta{}, Options{blockRows: 10})
			if after == nil {
				crash()
			}
			if _, open := after.Open("d/s"); open == nil {
				checkSame(t, "after the crash", readAll(t, after, "d/s"), s.spans)
			} else if err == nil {
				t.Fatalf("crash at operation %d: segment is lost", at)
			}
		}
	}
}

// TestReadErrors checks that a failed read affects only the call that needs it.
func TestReadErrors(t *testing.T) {
	s := randomSample(t, 11, 12)
	mem := writeDir(t)
	if _, err := Write(mem, "d/s", s.in, Meta{}, Options{blockRows: 10}); err != nil {
		t.Fatal(err)
	}
	counter := vfstest.Inject(mem)
	checkSame(t, "all", readSource(t, counter), s.spans)
	for n := range counter.Count(vfstest.OpRead) {
		rule := &vfstest.Rule{Op: vfstest.OpRead, Skip: n, Times: 1, Err: vfstest.ErrIO}
		fsys := vfstest.Inject(mem, rule)
		seg, err := Open(fsys, "d/s")
		if err == nil {
			_, err = seg.Tables()
			for i := range seg.Info().Blocks {
				b, openErr := seg.Open(t.Context(), i)
				if openErr == nil {
					b.Close()
				}
				err = errors.Join(err, openErr)
			}
			seg.Close()
		}
		if rule.Hits() > 0 && !errors.Is(err, vfstest.ErrIO) {
			t.Errorf("read %d: %v", n, err)
		}
		checkSame(t, "afterwards", readSource(t, fsys), s.spans)
	}
	if mem.Handles() != 0 {
		t.Errorf("%d files open", mem.Handles())
	}
}

func readSource(t *testing.T, fsys vfs.FS) []storedSpan {
	t.Helper()
	seg, err := Open(fsys, "d/s")
	if err != nil {
		t.Fatal(err)
	}
	defer seg.Close()
	tables, err := seg.Tables()
	if err != nil {
		t.Fatal(err)
	}
	var spans []storedSpan
	for i := range seg.Info().Blocks {
		list, err := readBlock(seg, tables, i)
		if err != nil {
			t.Fatal(err)
		}
		spans = append(spans, list...)
	}
	return spans
}
