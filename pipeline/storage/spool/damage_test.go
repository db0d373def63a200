package spool

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// queueFiles returns the files of a queue with items in three logs, some of them done, and the
// items that are left.
func queueFiles(t testing.TB) (files map[string][]byte, left []uint64) {
	t.Helper()
	mem := vfstest.NewMem()
	q := open(t, mem, options())
	const many = 20
	for n := range uint64(many) {
		put(t, q, n)
	}
	for range 3 {
		if i, ok := q.TryTake(); ok {
			q.Done(&i)
		}
	}
	put(t, q, many) // makes the done records durable
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	files = map[string][]byte{}
	entries, err := mem.ReadDir(testDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := path.Join(testDir, e.Name)
		if files[name], err = vfs.ReadFile(mem, name, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	return files, upTo(3, many+1)
}

// checkQueue opens a queue after replacing the content of a file, or removing it if that is nil. It
// returns an error unless each item is delivered or some loss is reported. An item may be delivered
// although it was done, if its done record is lost.
func checkQueue(t testing.TB, files map[string][]byte, left []uint64, changed string, content []byte) error {
	t.Helper()
	mem := vfstest.NewMem()
	if err := mem.MkdirAll(testDir); err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		if name == changed {
			b = content
		}
		if b == nil {
			continue
		}
		if err := vfs.WriteFileAtomic(mem, name, b); err != nil {
			t.Fatal(err)
		}
	}
	losses := 0
	q, err := Open(mem, testDir, options(func(o *Options) { o.Lost = func(Loss) { losses++ } }))
	if err != nil {
		return fmt.Errorf("cannot open the queue: %w", err)
	}
	defer q.Close() //nolint:errcheck // not the subject
	got := takeAll(t, q)
	for _, n := range left {
		if !slices.Contains(got, n) && losses == 0 {
			return fmt.Errorf("item %d is lost without a report; got %v", n, got)
		}
	}
	slices.Sort(got)
	if once := slices.Compact(slices.Clone(got)); len(once) != len(got) || len(got) > 0 && got[len(got)-1] > left[len(left)-1] {
		return fmt.Errorf("got %v", got)
	}
	return nil
}

// TestEveryBitOfTheQueue flips the bits of a queue's files, of the headers of records in
// particular, truncates the files, and removes them. Long runs (TRACING_SOAK) test every bit and
// length.
func TestEveryBitOfTheQueue(t *testing.T) {
	files, left := queueFiles(t)
	stride := 29
	if testing.Short() {
		stride = 487
	}
	stride = max(1, stride/soak.Rounds(t, 1, 1))
	for name, original := range files {
		content := slices.Clone(original)
		test := func(what string, content []byte) {
			if err := checkQueue(t, files, left, name, content); err != nil {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		for bit := 0; bit < 8*len(content); {
			content[bit/8] ^= 1 << (bit % 8)
			test(fmt.Sprintf("bit %d of byte %d of %d", bit%8, bit/8, len(content)), content)
			content[bit/8] ^= 1 << (bit % 8)
			if header := bit/8%512 < 40 && strings.HasSuffix(name, ".log"); header && !testing.Short() {
				bit++
			} else {
				bit += stride
			}
		}
		for n := 0; n < len(content); n += stride {
			test(fmt.Sprintf("cut to %d of %d bytes", n, len(content)), content[:n])
		}
		test("removed", nil)
	}
}

// TestRandomDamageOfTheQueue damages random files of a queue.
func TestRandomDamageOfTheQueue(t *testing.T) {
	files, left := queueFiles(t)
	names := slices.Sorted(maps.Keys(files))
	first := soak.Seed(t)
	for seed := first; seed < first+uint64(soak.Rounds(t, 1000, 100)); seed++ {
		rnd := rand.New(rand.NewPCG(seed, 0))
		name := names[rnd.IntN(len(names))]
		b := slices.Clone(files[name])
		at := rnd.IntN(len(b))
		end := min(len(b), at+1+rnd.IntN(1000))
		switch rnd.IntN(4) {
		case 0:
			clear(b[at:end])
		case 1:
			for i := range b[at:end] {
				b[at+i] = byte(rnd.Uint32())
			}
		case 2:
			b = slices.Delete(b, at, end)
		case 3:
			b = slices.Insert(b, at, b[at:end]...)
		}
		if err := checkQueue(t, files, left, name, b); err != nil {
			t.Errorf("%s=%d, %s: %v", soak.SeedVariable, seed, name, err)
		}
	}
}
