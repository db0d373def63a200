package wal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const dirName = "/data/log"

var errDisk = errors.New("disk is on fire")

// small files keep the tests fast and make them grow often.
var small = wal.Options{Step: 4096, Size: 16384}

func openDir(t testing.TB, fsys vfs.FS, o wal.Options) *wal.Dir {
	t.Helper()
	d, err := wal.OpenDir(fsys, dirName, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func create(t testing.TB, d *wal.Dir, epoch uint64) *wal.Log {
	t.Helper()
	l, err := d.Create(epoch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) // a second Close is harmless; a failed log is no concern of this function
	return l
}

func appendTo(t testing.TB, l *wal.Log, payload string) wal.Ticket {
	t.Helper()
	ticket, err := l.Append([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

func commit(t testing.TB, l *wal.Log, ticket wal.Ticket) {
	t.Helper()
	if err := l.Commit(context.Background(), ticket); err != nil {
		t.Fatal(err)
	}
}

func closeLog(t testing.TB, l *wal.Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// replay returns the payloads by sequence number and checks that the numbers ascend.
func replay(t testing.TB, d *wal.Dir, epoch uint64) (map[uint64]string, wal.Report) {
	t.Helper()
	found, last := map[uint64]string{}, uint64(0)
	report, err := d.Replay(epoch, func(seq uint64, payload []byte) error {
		if seq <= last {
			t.Fatalf("record %d comes after %d", seq, last)
		}
		last = seq
		found[seq] = string(payload)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.Records != uint64(len(found)) || report.Last != last {
		t.Fatalf("report says %d records, last %d; delivered %d, last %d", report.Records, report.Last, len(found), last)
	}
	return found, report
}

// sound replays a log that must hold the records of wanted numbered from 1, and no damage.
func sound(t testing.TB, d *wal.Dir, epoch uint64, wanted ...string) {
	t.Helper()
	found, report := replay(t, d, epoch)
	if !report.Sound() || report.Unsynced != 0 {
		t.Errorf("report %+v, want no damage", report)
	}
	if len(found) != len(wanted) {
		t.Errorf("found %d records, want %d", len(found), len(wanted))
	}
	for i, w := range wanted {
		if got := found[uint64(i+1)]; got != w {
			t.Errorf("record %d is %.40q, want %.40q", i+1, got, w)
		}
	}
}

func payload(rng *rand.Rand, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(rng.Uint32())
	}
	return p
}

func fileNames(t testing.TB, fsys vfs.FS, dir string) string {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name != path.Base(wal.ListFile("")) {
			names = append(names, e.Name)
		}
	}
	return fmt.Sprint(names)
}

func readAll(t testing.TB, fsys vfs.FS, name string) []byte {
	t.Helper()
	b, err := vfs.ReadFile(fsys, name, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// withFile returns a directory that holds one log file with these bytes.
func withFile(t testing.TB, epoch uint64, content []byte) (*vfstest.Mem, *wal.Dir) {
	t.Helper()
	mem := vfstest.NewMem()
	d := openDir(t, mem, small)
	writePart(t, mem, epoch, 0, content)
	return mem, d
}

func writePart(t testing.TB, fsys vfs.FS, epoch uint64, n int, content []byte) {
	t.Helper()
	if err := vfs.WriteFileAtomic(fsys, partPath(epoch, n), content); err != nil {
		t.Fatal(err)
	}
}

func partPath(epoch uint64, n int) string { return fmt.Sprintf("%s/%016x-%04x.log", dirName, epoch, n) }

func repeated(b byte, n int) string { return string(bytes.Repeat([]byte{b}, n)) }
