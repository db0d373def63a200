package vfstest_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// Everyone works on one file system until it crashes under them; what was synced before is there.
func TestConcurrentUse(t *testing.T) {
	m := newMem(t)
	started := make(chan struct{}, 8)
	synced := make([]int, 8) // records of 8 bytes per worker
	var workers sync.WaitGroup
	for w := range synced {
		f := createSynced(t, m, fmt.Sprint("/d/", w), "")
		workers.Go(func() {
			for i := 0; ; i++ {
				_, err := f.WriteAt(fmt.Appendf(nil, "%8d", i), int64(8*i))
				if err == nil {
					err = f.Sync()
				}
				if _, listErr := m.ReadDir("/d"); err == nil {
					err = listErr
				}
				if err != nil {
					if !errors.Is(err, vfstest.ErrCrashed) {
						t.Errorf("worker %d: %v", w, err)
					}
					return
				}
				synced[w]++
				if i == 10 {
					started <- struct{}{}
				}
			}
		})
	}
	for range synced {
		<-started
	}
	after := m.Crash(rng(1))
	workers.Wait()
	for w, n := range synced {
		data := read(t, after, fmt.Sprint("/d/", w))
		for i := range n {
			if want := fmt.Sprintf("%8d", i); data[8*i:8*i+8] != want {
				t.Fatalf("worker %d: record %d is %q", w, i, data[8*i:8*i+8])
			}
		}
	}
}

// BenchmarkCrash is one round of a crash test: a file system with three files of 100 KiB, two of
// them with unsynced bytes.
func BenchmarkCrash(b *testing.B) {
	block := make([]byte, 100<<10)
	b.ReportAllocs()
	for seed := 0; b.Loop(); seed++ {
		m := vfstest.NewMem()
		for i := range 3 {
			f, err := m.Create(fmt.Sprint("/", i))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := f.WriteAt(block, 0); err != nil {
				b.Fatal(err)
			}
			if i > 0 {
				continue
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
		}
		if err := m.SyncDir("/"); err != nil {
			b.Fatal(err)
		}
		m.Crash(rng(seed))
	}
}
