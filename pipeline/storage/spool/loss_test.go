package spool

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// Damage to the last item of a log in a reused file, which looks like an interrupted write, is a
// loss after a checkpoint, and reported as unsynced records before.
func TestDamageAfterCheckpoint(t *testing.T) {
	for _, checkpoint := range []bool{true, false} {
		t.Run(fmt.Sprint(checkpoint), func(t *testing.T) {
			mem := vfstest.NewMem()
			q := open(t, mem, options())
			for n := range uint64(100) { // fills logs; one becomes a spare
				put(t, q, n)
			}
			takeAll(t, q)
			q.mu.Lock()
			q.end() // the next log begins with the next Put
			q.mu.Unlock()
			if err := q.Put(nil, 1, make([]byte, 1000), number(1)); err != nil {
				t.Fatal(err)
			}
			if checkpoint {
				if err := q.Checkpoint(); err != nil {
					t.Fatal(err)
				}
			}
			file := path.Join(testDir, fmt.Sprintf("%016x-0000.log", q.current.epoch))
			mem = mem.Kill()
			b, err := vfs.ReadFile(mem, file, 1<<20)
			list, errList := vfs.ReadFile(mem, wal.ListFile(testDir), 1<<20)
			if err != nil || errList != nil || !bytes.Contains(list, fmt.Appendf(nil, "%016x 0 0 reused", q.current.epoch)) && !checkpoint {
				t.Fatal(err, errList, string(list))
			}
			copy(b[512:1024], "garbled")
			if err := vfs.WriteFileAtomic(mem, file, b); err != nil {
				t.Fatal(err)
			}
			var lost, unsynced uint64
			open(t, mem, options(func(o *Options) {
				o.Lost = func(l Loss) { lost += l.Items }
				o.Unsynced = func(_, n uint64) { unsynced += n }
			}))
			if checkpoint && (lost != 1 || unsynced != 0) || !checkpoint && (lost != 0 || unsynced != 1) {
				t.Errorf("%d items are lost, %d unsynced", lost, unsynced)
			}
		})
	}
}

// A log that could not be opened at the start is lost, reported and kept if a later attempt finds
// that it is of another version, damaged or gone.
func TestLogReadLaterIsDamaged(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(mem *vfstest.Mem, file string, content []byte) error
		cause  error
		kept   bool
	}{
		"version": {func(mem *vfstest.Mem, file string, content []byte) error {
			setVersion(content, 2)
			return vfs.WriteFileAtomic(mem, file, content)
		}, wal.ErrVersion, true},
		"damage": {func(mem *vfstest.Mem, file string, content []byte) error {
			content[20]++
			return vfs.WriteFileAtomic(mem, file, content)
		}, nil, true},
		"gone": {func(mem *vfstest.Mem, file string, _ []byte) error { return mem.Remove(file) }, ErrGone, false},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfstest.NewMem()
			q := open(t, mem, options())
			for n := range uint64(60) {
				put(t, q, n)
			}
			file := path.Join(testDir, fmt.Sprintf("%016x-0000.log", q.parts[0].epoch))
			if err := q.Close(); err != nil {
				t.Fatal(err)
			}
			content, err := vfs.ReadFile(mem, file, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			broken := &vfstest.Rule{Op: vfstest.OpOpen, Path: file, Err: vfstest.ErrIO}
			var losses []Loss
			q = open(t, vfstest.Inject(mem, broken), options(func(o *Options) { o.Lost = func(l Loss) { losses = append(losses, l) } }))
			broken.Switch(false)
			if err := c.damage(mem, file, content); err != nil {
				t.Fatal(err)
			}
			takeAll(t, q)
			if len(losses) != 1 || losses[0].Items != 1 || !errors.Is(losses[0].Err, c.cause) {
				t.Errorf("losses %+v", losses)
			}
			if entries, err := mem.ReadDir(path.Join(testDir, "damaged")); (err == nil && len(entries) == 1) != c.kept {
				t.Errorf("damaged files: %v, %v", entries, err)
			}
		})
	}
}

// What was counted as lost at the start is recovered when it can be read.
func TestLossIsRecovered(t *testing.T) {
	mem := vfstest.NewMem()
	q := open(t, mem, options())
	for n := range uint64(20) {
		put(t, q, n)
	}
	i, _ := q.TryTake()
	q.Done(&i)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	broken := &vfstest.Rule{Op: vfstest.OpRead, Path: "*.log", Err: vfstest.ErrIO}
	var lost, recovered uint64
	q = open(t, vfstest.Inject(mem, broken), options(func(o *Options) {
		o.Lost = func(l Loss) { lost, recovered = lost+l.Items, recovered+l.Recovered }
	}))
	broken.Switch(false)
	if got := takeAll(t, q); lost < 21 || recovered != lost || len(got) < 19 {
		t.Errorf("%d records were lost, %d recovered, took %v", lost, recovered, got)
	}
}

// A list that cannot be read is no loss.
func TestListLost(t *testing.T) {
	mem := vfstest.NewMem()
	q := open(t, mem, options())
	put(t, q, 1)
	mem = mem.Kill()
	if err := vfs.WriteFileAtomic(mem, wal.ListFile(testDir), []byte("garbled")); err != nil {
		t.Fatal(err)
	}
	var lists, losses int
	q = open(t, mem, options(func(o *Options) {
		o.ListLost = func(error) { lists++ }
		o.Lost = func(Loss) { losses++ }
	}))
	if got := takeAll(t, q); len(got) != 1 || lists != 1 || losses != 0 {
		t.Errorf("took %v; %d lists and %d logs are lost", got, lists, losses)
	}
}
