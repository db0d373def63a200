package wal_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// recordBytes is a request of 100 spans at 91 bytes.
const recordBytes = 9100

func BenchmarkCommit(b *testing.B) {
	for _, mode := range []wal.Mode{wal.SyncAlways, wal.SyncOS} {
		for _, writers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%s/%d", mode, writers), func(b *testing.B) { benchmarkCommit(b, mode, writers) })
		}
	}
}

func benchmarkCommit(b *testing.B, mode wal.Mode, writers int) {
	d, err := wal.OpenDir(vfs.OS(), filepath.ToSlash(b.TempDir()), wal.Options{Mode: mode})
	if err != nil {
		b.Fatal(err)
	}
	filled(b, d, 1, 1)
	l := create(b, d, 2)
	payload := make([]byte, recordBytes)
	var left atomic.Int64
	left.Store(int64(b.N))
	b.SetBytes(recordBytes)
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				ticket, err := l.Append(payload)
				if err == nil {
					err = l.Commit(context.Background(), ticket)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	s := l.Stats()
	b.ReportMetric(float64(s.Records)/float64(s.Groups), "records/group")
	if s.Syncs > 0 {
		b.ReportMetric(float64(s.Records)/float64(s.Syncs), "records/sync")
	}
	closeLog(b, l)
}

func BenchmarkAppend(b *testing.B) {
	d, err := wal.OpenDir(vfs.OS(), filepath.ToSlash(b.TempDir()), wal.Options{Mode: wal.SyncOS})
	if err != nil {
		b.Fatal(err)
	}
	l := create(b, d, 1)
	payload := make([]byte, recordBytes)
	b.SetBytes(recordBytes)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		ticket, err := l.Append(payload)
		if err != nil {
			b.Fatal(err)
		}
		if i%256 == 255 {
			b.StopTimer()
			commit(b, l, ticket)
			b.StartTimer()
		}
	}
}

func BenchmarkReplay(b *testing.B) {
	d, err := wal.OpenDir(vfs.OS(), filepath.ToSlash(b.TempDir()), wal.Options{Mode: wal.SyncOS})
	if err != nil {
		b.Fatal(err)
	}
	l := create(b, d, 1)
	for range 4000 {
		commit(b, l, appendTo(b, l, repeated('x', recordBytes)))
	}
	closeLog(b, l)
	size, err := d.Size()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	for b.Loop() {
		report, err := d.Replay(1, func(uint64, []byte) error { return nil })
		if err != nil || report.Records != 4000 {
			b.Fatal(report, err)
		}
	}
}
