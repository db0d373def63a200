package spool

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// A Put that settles late, in a log that was the oldest one before, must not cause a later log to
// be read whose items were taken from memory.
func TestLatePut(t *testing.T) {
	q := open(t, vfstest.NewMem(), options())
	late := Item{Value: uint64(0), Since: time.Now(), Weight: 1, size: 108}
	a, err := q.append(&late, [][]byte{number(0), make([]byte, 100)})
	if err != nil {
		t.Fatal(err)
	}
	q.mu.Lock()
	q.end()
	q.mu.Unlock()
	put(t, q, 1)
	first, _ := q.TryTake()
	if n := numberOf(t, first); n != 1 {
		t.Fatalf("took %d", n)
	}
	q.settle(a.part, late, a.commit())
	for n := range uint64(200) {
		put(t, q, n+2)
	}
	got := takeAll(t, q)
	q.Done(&first)
	slices.Sort(got)
	if want := append([]uint64{0}, upTo(2, 202)...); !slices.Equal(got, want) {
		t.Errorf("took %v", got)
	}
	if s := q.State(); s != (State{}) {
		t.Errorf("state %+v", s)
	}
}

// A log without items in memory has no buffers either.
func TestOldLogsAreGivenUp(t *testing.T) {
	broken := &vfstest.Rule{Op: vfstest.OpWrite | vfstest.OpCreate, Err: vfstest.ErrNoSpace}
	broken.Switch(false)
	q := open(t, vfstest.Inject(vfstest.NewMem(), broken), options())
	var want []uint64
	for n := range uint64(500) {
		broken.Switch(n%20 == 0)
		if q.Put(n, 1, number(n), make([]byte, 100)) == nil {
			want = append(want, n)
		}
	}
	held := 0
	for _, p := range q.parts {
		if held += len(p.items); p.log != nil && p != q.current {
			t.Errorf("log %016x keeps its buffers", p.epoch)
		}
	}
	if most := 2 * (4<<10/108 + 2); held > most {
		t.Errorf("%d items are in memory, more than %d", held, most)
	}
	broken.Switch(false)
	if got := takeAll(t, q); !slices.Equal(got, want) {
		t.Errorf("took %d items, want %d", len(got), len(want))
	}
}

// Small items fill a log before its size does, which bounds their memory.
func TestRecordsOfALog(t *testing.T) {
	q := open(t, vfstest.NewMem(), options(func(o *Options) { o.LogSize = 64 << 10 }))
	for range 1000 {
		if err := q.Put(nil, 1); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(q.parts); n != 1000/128+1 {
		t.Errorf("%d logs", n)
	}
}

// A done record outlives the log in which it was written.
func TestNotesOutliveTheirLog(t *testing.T) {
	for _, failing := range []bool{false, true} {
		t.Run(fmt.Sprint(failing), func(t *testing.T) {
			broken := &vfstest.Rule{Op: vfstest.OpCreate | vfstest.OpWrite | vfstest.OpSync, Err: vfstest.ErrNoSpace}
			broken.Switch(false)
			mem := vfstest.NewMem()
			q := open(t, vfstest.Inject(mem, broken), options())
			for n := range uint64(100) {
				put(t, q, n)
			}
			stuck, _ := q.TryTake() // in the first log, which stays
			for range 95 {
				i, _ := q.TryTake()
				q.Done(&i)
			}
			q.mu.Lock()
			q.end() // all notes are in logs that will be gone
			q.mu.Unlock()
			broken.Switch(failing)
			takeAll(t, q)
			if broken.Switch(false); failing {
				put(t, q, 1000)
			}
			q = open(t, mem.Crash(rand.New(rand.NewPCG(1, 1))), options())
			got := takeAll(t, q)
			if got[0] != numberOf(t, stuck) || slices.Contains(got, 1) || slices.Contains(got, 90) {
				t.Errorf("took %v", got)
			}
		})
	}
}

// A log that cannot be read now does not block the others, and is read later.
func TestUnreadableLog(t *testing.T) {
	for _, op := range []vfstest.Op{vfstest.OpOpen, vfstest.OpRead} {
		t.Run(op.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := vfstest.NewMem()
				q := open(t, mem, options())
				for n := range uint64(200) {
					put(t, q, n)
				}
				name := fmt.Sprintf("%016x-0000.log", q.parts[2].epoch)
				broken := &vfstest.Rule{Op: op, Path: path.Join(testDir, name), Err: vfstest.ErrIO}
				if err := q.Close(); err != nil {
					t.Fatal(err)
				}
				broken.Switch(false)
				var lost []Loss
				q = open(t, vfstest.Inject(mem, broken), options(func(o *Options) { o.Lost = func(l Loss) { lost = append(lost, l) } }))
				broken.Switch(true)
				got := takeAll(t, q)
				if len(got) == 0 || len(got) == 200 || q.Err() == nil || q.State().Items != int64(200-len(got)) {
					t.Errorf("took %d, %v, state %+v", len(got), q.Err(), q.State())
				}
				time.Sleep(2 * retryRead)
				broken.Switch(false)
				rest := takeAll(t, q)
				got = append(got, rest...)
				slices.Sort(got)
				if !slices.Equal(got, upTo(0, 200)) || len(lost) > 0 || q.State() != (State{}) || q.Err() != nil {
					t.Errorf("took %d, lost %+v, state %+v, %v", len(got), lost, q.State(), q.Err())
				}
			})
		})
	}
}

// Sectors that stay unreadable lose only what was in them, after some time.
func TestBadSectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfstest.NewMem()
		q := open(t, mem, options())
		for n := range uint64(200) {
			put(t, q, n)
		}
		file := path.Join(testDir, fmt.Sprintf("%016x-0000.log", q.parts[2].epoch))
		broken := &vfstest.Rule{Op: vfstest.OpRead, Path: file, Err: vfstest.ErrIO}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
		broken.Switch(false)
		var lost []Loss
		q = open(t, vfstest.Inject(mem, broken), options(func(o *Options) { o.Lost = func(l Loss) { lost = append(lost, l) } }))
		broken.Switch(true)
		got := len(takeAll(t, q))
		for range maxReads {
			time.Sleep(2 * retryRead)
			got += len(takeAll(t, q))
		}
		if len(lost) != 1 || lost[0].Gone.Items == 0 || got+int(lost[0].Gone.Items) != 200 || q.State() != (State{}) {
			t.Errorf("took %d, lost %+v, state %+v", got, lost, q.State())
		}
		if set, err := mem.ReadDir(path.Join(testDir, "damaged")); err != nil || len(set) != 1 {
			t.Errorf("set aside: %v, %v", set, err)
		}
	})
}

// Items that could not be read at the start count again once they can be read.
func TestReadableAgain(t *testing.T) {
	for _, op := range []vfstest.Op{vfstest.OpOpen, vfstest.OpRead} {
		t.Run(op.String(), func(t *testing.T) { readableAgain(t, op) })
	}
}

func readableAgain(t *testing.T, op vfstest.Op) {
	mem := vfstest.NewMem()
	q := open(t, mem, options())
	for n := range uint64(200) {
		put(t, q, n)
	}
	broken := &vfstest.Rule{Op: op, Path: path.Join(testDir, fmt.Sprintf("%016x-0000.log", q.parts[2].epoch)), Err: vfstest.ErrIO}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	var gone State
	q = open(t, vfstest.Inject(mem, broken), options(func(o *Options) { o.Lost = func(l Loss) { gone.addState(l.Gone) } }))
	broken.Switch(false)
	before := q.State()
	if before.Items == 0 || before.Items == 200 {
		t.Fatalf("state %+v", before)
	}
	if got := takeAll(t, q); len(got) != 200 || gone.Items != before.Items-200 || q.State() != (State{}) {
		t.Errorf("%+v at the start, %+v gone, took %d, state %+v", before, gone, len(got), q.State())
	}
}

// A log that could not be removed is removed later; meanwhile the others are.
func TestRemovalIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfstest.NewMem()
		broken := &vfstest.Rule{Op: vfstest.OpRename | vfstest.OpRemove, Err: vfstest.ErrIO}
		q := open(t, vfstest.Inject(mem, broken), options())
		put(t, q, 0)
		broken.Path = path.Join(testDir, fmt.Sprintf("%016x-*", q.current.epoch))
		for n := range uint64(300) {
			put(t, q, n+1)
		}
		if got := takeAll(t, q); len(got) != 301 {
			t.Errorf("took %d", len(got))
		}
		if n := files(t, mem); n > 3 { // the current log, a spare, and the one that stays
			t.Errorf("%d files are left", n)
		}
		broken.Switch(false)
		time.Sleep(retryRemove)
		put(t, q, 0)
		if n := files(t, mem); n > 2 {
			t.Errorf("%d files are left in the end", n)
		}
	})
}

// Many goroutines put and take when the power fails or the process is killed.
func TestConcurrentCrash(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		c := &crowd{t: t, promised: map[uint64]bool{}}
		mem := vfstest.NewMem()
		for range 3 {
			mem = c.live(mem, rng)
		}
		q := open(t, mem, options())
		for _, n := range takeAll(t, q) {
			c.promised[n] = false
		}
		maps.DeleteFunc(c.promised, func(_ uint64, still bool) bool { return !still })
		if len(c.promised) > 0 || q.State() != (State{}) {
			t.Fatalf("seed %d: lost %v, state %+v", seed, c.promised, q.State())
		}
	}
}

// crowd is a queue that many goroutines use concurrently, and what is known about it.
type crowd struct {
	t        *testing.T
	mu       sync.Mutex
	next     uint64
	promised map[uint64]bool // put; false: and done
}

// live uses a queue until it dies, and returns what is left of the disk.
func (c *crowd) live(mem *vfstest.Mem, rng *rand.Rand) *vfstest.Mem {
	q := open(c.t, mem, options(func(o *Options) { o.LogSize = 1 << (11 + rng.Int64N(3)) }))
	taken := map[uint64]bool{}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	repeat := func(step func()) {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					step()
				}
			}
		})
	}
	for range 4 {
		repeat(func() { c.put(q) })
		repeat(func() { c.take(q, taken) })
	}
	time.Sleep(time.Duration(rng.IntN(8)) * time.Millisecond)
	left := mem.Kill
	if rng.IntN(2) == 0 {
		left = func() *vfstest.Mem { return mem.Crash(rng) }
	}
	after := left()
	close(stop)
	wg.Wait()
	return after
}

func (c *crowd) put(q *Queue) {
	c.mu.Lock()
	n := c.next
	c.next++
	c.mu.Unlock()
	if q.Put(n, 1, number(n), make([]byte, 100)) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, done := c.promised[n]; !done {
		c.promised[n] = true
	}
}

func (c *crowd) take(q *Queue, taken map[uint64]bool) {
	i, ok := q.TryTake()
	if !ok {
		return
	}
	n := numberOf(c.t, i)
	c.mu.Lock()
	if n >= c.next || taken[n] {
		c.t.Errorf("%d was taken; %d were put; taken before: %t", n, c.next, taken[n])
	}
	taken[n] = true
	done := n%7 != 0
	if done {
		c.promised[n] = false
	}
	c.mu.Unlock()
	if done {
		q.Done(&i)
	}
}

// After the clock is set back, no log reuses an earlier epoch: stale records of former logs must
// not appear in it.
func TestClockSetBack(t *testing.T) {
	mem := vfstest.NewMem()
	now := time.Unix(1e9, 0)
	o := options(func(o *Options) {
		o.Now = func() time.Time {
			now = now.Add(-time.Minute)
			return now
		}
	})
	var want []uint64
	var last uint64
	for life := range uint64(3) {
		q := open(t, mem, o)
		for n := life * 100; n < life*100+100; n++ {
			put(t, q, n)
			want = append(want, n)
			if epoch := q.current.epoch; epoch < last {
				t.Fatalf("log %x after %x", epoch, last)
			}
			last = q.current.epoch
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
	}
	q := open(t, mem, o)
	if got := takeAll(t, q); !slices.Equal(got, want) {
		t.Errorf("took %v", got)
	}
}
