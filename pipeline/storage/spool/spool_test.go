package spool

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testDir = "queue"

func options(change ...func(*Options)) Options {
	o := Options{LogSize: 4 << 10, Now: time.Now}
	for _, f := range change {
		f(&o)
	}
	return o
}

func open(t testing.TB, fsys vfs.FS, o Options) *Queue {
	t.Helper()
	q, err := Open(fsys, testDir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() }) //nolint:errcheck // tests that care close it themselves
	return q
}

// number is an item's payload; the rest of it is filling.
func number(n uint64) []byte { return binary.LittleEndian.AppendUint64(make([]byte, 0, 8), n) }

func put(t testing.TB, q *Queue, n uint64) {
	t.Helper()
	if err := q.Put(n, 1, number(n), make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
}

// numberOf returns what was put, from memory or from a file.
func numberOf(t testing.TB, i Item) uint64 {
	t.Helper()
	if n, ok := i.Value.(uint64); ok && i.Payload == nil {
		return n
	}
	if len(i.Payload) != 108 || i.Value != nil || i.Size() != 108 || i.Weight != 1 || i.Since.IsZero() {
		t.Fatalf("item %+v", i)
	}
	return binary.LittleEndian.Uint64(i.Payload)
}

// takeAll takes all items and marks them as done.
func takeAll(t testing.TB, q *Queue) (numbers []uint64) {
	t.Helper()
	for {
		i, ok := q.TryTake()
		if !ok {
			return numbers
		}
		numbers = append(numbers, numberOf(t, i))
		q.Done(&i)
	}
}

func upTo(from, to uint64) (all []uint64) {
	for n := from; n < to; n++ {
		all = append(all, n)
	}
	return all
}

// Items are taken in the order of Put, from memory and from files, and leave no files.
func TestFirstInFirstOut(t *testing.T) {
	mem := vfstest.NewMem()
	q := open(t, mem, options())
	const many = 500 // in a dozen logs
	for n := range uint64(many) {
		put(t, q, n)
	}
	if s := q.State(); s != (State{many, many * 108, many}) {
		t.Errorf("state %+v", s)
	}
	if got := takeAll(t, q); !slices.Equal(got, upTo(0, many)) {
		t.Errorf("took %v", got)
	}
	if s := q.State(); s != (State{}) || q.Err() != nil {
		t.Errorf("state %+v, %v", s, q.Err())
	}
	if n := files(t, mem); n > 2 || len(q.parts) > 1 { // the current log and a spare
		t.Errorf("%d files and %d logs are left", n, len(q.parts))
	}
}

func files(t testing.TB, fsys vfs.FS) (n int) {
	t.Helper()
	entries, err := fsys.ReadDir(testDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir && e.Name != path.Base(wal.ListFile("")) {
			n++
		}
	}
	return n
}

// Memory holds the items of the log being read and of the one being written, regardless of the
// length of the queue.
func TestMemoryIsBounded(t *testing.T) {
	q := open(t, vfstest.NewMem(), options())
	for n := range uint64(2000) {
		put(t, q, n)
		held := 0
		for _, p := range q.parts {
			held += len(p.items)
		}
		if most := 2 * (4<<10/108 + 2); held > most {
			t.Fatalf("%d items are in memory, more than %d", held, most)
		}
	}
}

// After a restart the queue holds what was not done, in order; the second restart is like the
// first.
func TestRestart(t *testing.T) {
	mem := vfstest.NewMem()
	want := upTo(0, 300)
	q := open(t, mem, options())
	for _, n := range want {
		put(t, q, n)
	}
	for range 3 {
		var inFlight []Item
		for range 60 {
			i, err := q.Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n := numberOf(t, i); n%3 == 0 {
				inFlight = append(inFlight, i) // and never done
				continue
			} else {
				want = slices.DeleteFunc(want, func(w uint64) bool { return w == n })
			}
			q.Done(&i)
		}
		if s := q.State(); s.Items != int64(len(want)) {
			t.Errorf("state %+v, want %d items, %d of them in flight", s, len(want), len(inFlight))
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
		q = open(t, mem, options())
		if s := q.State(); s != (State{int64(len(want)), 108 * int64(len(want)), int64(len(want))}) {
			t.Errorf("state %+v after the restart, want %d items", s, len(want))
		}
	}
	if got := takeAll(t, q); !slices.Equal(got, want) {
		t.Errorf("took %v\nwant %v", got, want)
	}
}

// A waiting Take returns for an item, for the end of its context, and for the end of the queue.
func TestTakeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := open(t, vfstest.NewMem(), options())
		type result struct {
			item Item
			err  error
		}
		results := make(chan result, 1)
		take := func(ctx context.Context) {
			i, err := q.Take(ctx)
			results <- result{i, err}
		}
		go take(t.Context())
		synctest.Wait()
		put(t, q, 7)
		if r := <-results; r.err != nil || numberOf(t, r.item) != 7 {
			t.Errorf("got %+v", r)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go take(ctx)
		synctest.Wait()
		cancel()
		if r := <-results; !errors.Is(r.err, context.Canceled) {
			t.Errorf("got %+v", r)
		}
		go take(t.Context())
		synctest.Wait()
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		if r := <-results; !errors.Is(r.err, ErrClosed) {
			t.Errorf("got %+v", r)
		}
		if err := q.Put(nil, 1); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// Many put, many take: everything arrives once.
func TestConcurrent(t *testing.T) {
	q := open(t, vfstest.NewMem(), options())
	const producers, each, consumers = 8, 300, 4
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	seen := map[uint64]int{}
	var consuming, producing sync.WaitGroup
	for range consumers {
		consuming.Go(func() {
			for {
				i, err := q.Take(ctx)
				if err != nil {
					return
				}
				mu.Lock()
				if seen[numberOf(t, i)]++; len(seen) == producers*each {
					cancel()
				}
				mu.Unlock()
				q.Done(&i)
			}
		})
	}
	for p := range uint64(producers) {
		producing.Go(func() {
			for n := range uint64(each) {
				put(t, q, p*each+n)
			}
		})
	}
	producing.Wait()
	consuming.Wait()
	for n, times := range seen {
		if times != 1 {
			t.Errorf("%d was taken %d times", n, times)
		}
	}
	if s := q.State(); s != (State{}) || q.Err() != nil {
		t.Errorf("state %+v, %v", s, q.Err())
	}
}

// While the disk fails, Put returns an error and nothing acknowledged is lost; the queue recovers
// with the disk.
func TestDiskFailsAndHeals(t *testing.T) {
	for _, op := range []vfstest.Op{vfstest.OpWrite, vfstest.OpSync, vfstest.OpCreate} {
		t.Run(fmt.Sprint(op), func(t *testing.T) {
			broken := &vfstest.Rule{Op: op, Err: vfstest.ErrNoSpace}
			broken.Switch(false)
			mem := vfstest.NewMem()
			q := open(t, vfstest.Inject(mem, broken), options())
			var want []uint64
			for n := range uint64(200) {
				if n == 60 {
					broken.Switch(true)
				}
				if n == 120 {
					broken.Switch(false)
				}
				if err := q.Put(n, 1, number(n), make([]byte, 100)); err == nil {
					want = append(want, n)
				}
			}
			if len(want) < 140 || len(want) == 200 {
				t.Fatalf("%d puts were accepted", len(want))
			}
			if got := takeAll(t, q); !slices.Equal(got, want) {
				t.Errorf("took %d items, want %d", len(got), len(want))
			}
			if s := q.State(); s != (State{}) {
				t.Errorf("state %+v", s)
			}
		})
	}
}

// Files that disappear or are damaged lose only what was in them, and the loss is reported.
func TestLostFiles(t *testing.T) {
	mem := vfstest.NewMem()
	q := open(t, mem, options())
	for n := range uint64(300) {
		put(t, q, n)
	}
	entries, err := mem.ReadDir(testDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := mem.Remove(path.Join(testDir, entries[3].Name)); err != nil {
		t.Fatal(err)
	}
	var losses []Loss
	q.opt.Lost = func(l Loss) { losses = append(losses, l) }
	got := takeAll(t, q)
	if len(losses) != 1 || losses[0].Items == 0 || !errors.Is(losses[0].Err, ErrGone) || len(got)+int(losses[0].Items) != 300 {
		t.Errorf("took %d; told of %+v", len(got), losses)
	}
	if s := q.State(); s != (State{}) {
		t.Errorf("state %+v", s)
	}
}

// A file that is gone is reported although the start moves another one, of a later version, to the
// quarantine.
func TestGoneFileBesideNewerOne(t *testing.T) {
	mem := vfstest.NewMem()
	q := open(t, mem, options())
	for n := range uint64(60) {
		put(t, q, n)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := mem.ReadDir(testDir)
	if err != nil || len(entries) < 3 {
		t.Fatal(len(entries), err)
	}
	newer := path.Join(testDir, entries[1].Name)
	b, err := vfs.ReadFile(mem, newer, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	setVersion(b, 2)
	if err := errors.Join(vfs.WriteFileAtomic(mem, newer, b), mem.Remove(path.Join(testDir, entries[0].Name))); err != nil {
		t.Fatal(err)
	}
	var causes []error
	open(t, mem, options(func(o *Options) { o.Lost = func(l Loss) { causes = append(causes, l.Err) } }))
	if len(causes) != 2 || !errors.Is(causes[0], ErrGone) || !errors.Is(causes[1], wal.ErrVersion) {
		t.Errorf("told of %v, want a file that is gone and one of a later version", causes)
	}
}

// setVersion changes the version of the first record of a log.
func setVersion(b []byte, version byte) {
	b[3] = version
	binary.LittleEndian.PutUint32(b[36:], crc32.Checksum(b[:36], crc32.MakeTable(crc32.Castagnoli)))
}
