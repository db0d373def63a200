package wal_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// listedLog returns a directory with an open log of n records, which a checkpoint covers, and the
// path of its file.
func listedLog(t testing.TB, records int) (mem *vfstest.Mem, file string) {
	t.Helper()
	mem = vfstest.NewMem()
	d := openDir(t, mem, small)
	l := create(t, d, 7)
	for range records {
		commit(t, l, appendTo(t, l, repeated('x', 700)))
	}
	if err := d.Checkpoint(map[*wal.Log]int64{l: 100}); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	return mem, dirName + "/0000000000000007-0000.log"
}

// TestEveryTruncationIsReported cuts the file of a log at every length. Whatever is lost is
// reported. Without a checkpoint, the number of lost records is not known.
func TestEveryTruncationIsReported(t *testing.T) {
	const records, end = 5, 5*1024 + 512 // groups, and the bytes that show that nothing followed
	mem, file := listedLog(t, records)
	content := readAll(t, mem, file)
	list := readAll(t, mem, wal.ListFile(dirName))
	unsure := []byte("tracing logs, version 1\n0000000000000007 0 0 new\ncrc32c 8924e4fe\n")
	step := 1
	if testing.Short() {
		step = 7
	}
	for n := 0; n < len(content); n += step {
		for _, exact := range []bool{true, false} {
			after := vfstest.NewMem()
			write(t, after, file, content[:n])
			write(t, after, wal.ListFile(dirName), map[bool][]byte{true: list, false: unsure}[exact])
			found, report := replay(t, openDir(t, after, small), 7)
			if report.Truncated != (n < end) || report.Sound() != (n >= end) || exact && report.Lost != uint64(records-len(found)) {
				t.Fatalf("cut to %d of %d bytes, exact: %t: found %d of %d records, %+v", n, len(content), exact, len(found), records, report)
			}
		}
	}
}

// TestEveryHeaderBitIsReported flips every bit of every header of a log.
func TestEveryHeaderBitIsReported(t *testing.T) {
	const records, group = 3, 1024 // a group of one record has two units
	mem, file := listedLog(t, records)
	content := readAll(t, mem, file)
	for _, checkpoint := range []bool{true, false} {
		for bit := range records * 40 * 8 {
			at := bit/8/40*group + bit/8%40
			content[at] ^= 1 << (bit % 8)
			after := vfstest.NewMem()
			write(t, after, file, content)
			if checkpoint {
				write(t, after, wal.ListFile(dirName), readAll(t, mem, wal.ListFile(dirName)))
			}
			found, report := replay(t, openDir(t, after, small), 7)
			content[at] ^= 1 << (bit % 8)
			if len(found) != records-1 || report.Lost+report.Unsynced != 1 || checkpoint && report.Lost != 1 {
				t.Fatalf("bit %d of byte %d, checkpoint: %t: found %d of %d records, %+v", bit%8, at, checkpoint, len(found), records, report)
			}
		}
	}
}

// TestMissingLogs: a log whose files are gone is missing, with the numbers of the last checkpoint,
// until the list is rewritten. A removed log is not missing.
func TestMissingLogs(t *testing.T) {
	mem, file := listedLog(t, 5)
	d := openDir(t, mem, small)
	filled(t, d, 8, 3)
	filled(t, d, 9, 3)
	if err := d.Remove(8); err != nil {
		t.Fatal(err)
	}
	if missing, err := d.Missing(); err != nil || len(missing) != 0 {
		t.Errorf("%+v, %v; want nothing missing", missing, err)
	}
	if err := mem.Remove(file); err != nil {
		t.Fatal(err)
	}
	d = openDir(t, mem, small)
	missing, err := d.Missing()
	if err != nil || len(missing) != 1 || missing[0] != (wal.Missing{Epoch: 7, Records: 5, Weight: 100}) {
		t.Errorf("%+v, %v; want log 7", missing, err)
	}
	if err := d.Remove(9); err != nil {
		t.Fatal(err)
	}
	if missing, err := openDir(t, mem, small).Missing(); err != nil || len(missing) != 0 {
		t.Errorf("after the list was written: %+v, %v", missing, err)
	}
	if entries, err := mem.ReadDir(dirName); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v; want no files without logs", entries, err)
	}
}

// TestReplayOfGrowingLog: a log to which another process appends during the replay is not
// truncated.
func TestReplayOfGrowingLog(t *testing.T) {
	mem := vfstest.NewMem()
	l := create(t, openDir(t, mem, small), 7)
	commit(t, l, appendTo(t, l, repeated('x', 300_000))) // longer than one read
	report, err := openDir(t, mem, small).Replay(7, func(seq uint64, _ []byte) error {
		if seq == 1 {
			commit(t, l, appendTo(t, l, repeated('y', 10_000)))
		}
		return nil
	})
	if err != nil || !report.Sound() || report.Records != 1 {
		t.Errorf("%+v, %v; want one record without damage", report, err)
	}
}

// TestListOnFullDisk: logs that are removed while the list cannot be written are not missing after
// a crash.
func TestListOnFullDisk(t *testing.T) {
	for name, dispose := range map[string]func(*wal.Dir) error{
		"recycled": func(d *wal.Dir) error { return d.Recycle(8) },
		"removed":  func(d *wal.Dir) error { return d.Remove(8) },
	} {
		mem, _ := listedLog(t, 5)
		full := &vfstest.Rule{Op: vfstest.OpCreate, Err: vfstest.ErrNoSpace}
		full.Switch(false)
		d := openDir(t, vfstest.Inject(mem, full), small)
		filled(t, d, 8, 3)
		full.Switch(true)
		if err := dispose(d); err != nil {
			t.Fatal(err)
		}
		if missing, err := openDir(t, mem, small).Missing(); err != nil || len(missing) > 0 {
			t.Errorf("%s: missing %+v, %v", name, missing, err)
		}
		full.Switch(false)
		filled(t, d, 9, 3)
		if err := mem.Remove(dirName + "/0000000000000009-0000.log"); err != nil {
			t.Fatal(err)
		}
		if missing, err := openDir(t, mem, small).Missing(); err != nil || len(missing) != 1 {
			t.Errorf("%s: missing %+v, %v; want log 9, because the list was rewritten", name, missing, err)
		}
	}
}

// TestDamagedListCostsNothing flips every bit of the list, and cuts it: records are read, and
// Missing returns an error.
func TestDamagedListCostsNothing(t *testing.T) {
	mem, _ := listedLog(t, 5)
	name := wal.ListFile(dirName)
	list := readAll(t, mem, name)
	check := func(content []byte) {
		t.Helper()
		if err := mem.Remove(name); err != nil {
			t.Fatal(err)
		}
		write(t, mem, name, content)
		d := openDir(t, mem, small)
		if _, err := d.Missing(); err == nil {
			t.Errorf("no error for the list %q", content)
		}
		if found, report := replay(t, d, 7); len(found) != 5 || !report.Sound() {
			t.Errorf("list %q: found %d records, %+v", content, len(found), report)
		}
	}
	for bit := range len(list) * 8 {
		list[bit/8] ^= 1 << (bit % 8)
		check(list)
		list[bit/8] ^= 1 << (bit % 8)
	}
	for n := range list {
		check(list[:n])
	}
}

// TestListDuringCrash: whenever the power fails while logs are created and removed, no log is
// missing and none is truncated.
func TestListDuringCrash(t *testing.T) {
	for seed := range uint64(300) {
		mem, after := vfstest.NewMem(), (*vfstest.Mem)(nil)
		rng := rand.New(rand.NewPCG(seed, 3))
		crash := &vfstest.Rule{Op: vfstest.OpChanges, Skip: rng.IntN(60), Times: 1, Hook: func() { after = mem.Crash(rng) }}
		openDir(t, mem, small)
		if d, err := wal.OpenDir(vfstest.Inject(mem, crash), dirName, small); err == nil {
			useUntilCrash(d, rng)
		}
		if after == nil {
			after = mem.Crash(rng)
		}
		d := openDir(t, after, small)
		if missing, err := d.Missing(); err != nil || len(missing) > 0 {
			t.Fatalf("seed %d: missing %v, %v", seed, missing, err)
		}
		epochs, err := d.Epochs()
		if err != nil {
			t.Fatal(err)
		}
		for _, epoch := range epochs {
			if _, report := replay(t, d, epoch); !report.Sound() {
				t.Fatalf("seed %d: log %d: %+v", seed, epoch, report)
			}
		}
	}
}

// useUntilCrash creates logs one after the other, and removes each when the next one has records.
// It ends at the first error.
func useUntilCrash(d *wal.Dir, rng *rand.Rand) {
	for epoch := uint64(1); epoch < 5; epoch++ {
		l, err := d.Create(epoch)
		if err != nil {
			return
		}
		ticket, err := l.Append(make([]byte, rng.IntN(9000)))
		if err == nil {
			err = l.Commit(context.Background(), ticket)
		}
		if err == nil {
			err = errors.Join(d.Checkpoint(map[*wal.Log]int64{l: 1}), l.Close())
		}
		if err == nil && epoch > 1 {
			err = []func(uint64) error{d.Remove, d.Recycle}[rng.IntN(2)](epoch - 1)
		}
		if err != nil {
			l.Close()
			return
		}
	}
}

func write(t testing.TB, fsys vfs.FS, name string, content []byte) {
	t.Helper()
	if err := fsys.MkdirAll(dirName); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFileAtomic(fsys, name, content); err != nil {
		t.Fatal(err)
	}
}

// TestListThatStays: a log is not removed while the list can neither be written nor durably
// removed.
func TestListThatStays(t *testing.T) {
	for op, file := range map[vfstest.Op]string{vfstest.OpRemove: wal.ListFile(dirName), vfstest.OpSyncDir: dirName} {
		t.Run(op.String(), func(t *testing.T) {
			mem, log := listedLog(t, 5)
			full := &vfstest.Rule{Op: vfstest.OpCreate, Err: vfstest.ErrNoSpace}
			broken := &vfstest.Rule{Op: op, Path: file, Err: vfstest.ErrIO}
			d := openDir(t, vfstest.Inject(mem, full, broken), small)
			for range 2 {
				if err := d.Remove(7); !errors.Is(err, vfstest.ErrIO) {
					t.Errorf("got %v", err)
				}
			}
			readAll(t, mem, log) // fails the test if the log is gone
			broken.Switch(false)
			if err := d.Remove(7); err != nil {
				t.Error(err)
			}
			if missing, err := openDir(t, mem, small).Missing(); err != nil || len(missing) > 0 {
				t.Errorf("missing after the removal: %+v, %v", missing, err)
			}
		})
	}
}

// TestListOfOtherLinesIsDamaged: a list with a valid checksum is damaged if a line lacks the word
// for the file, or has another one.
func TestListOfOtherLinesIsDamaged(t *testing.T) {
	for _, line := range []string{"0000000000000007 0 0\n", "0000000000000007 0 0 old\n", "7\n"} {
		mem, _ := listedLog(t, 1)
		write(t, mem, wal.ListFile(dirName), vfs.AppendChecksum([]byte("tracing logs, version 1\n"+line)))
		if _, err := openDir(t, mem, small).Missing(); !errors.Is(err, wal.ErrListDamaged) {
			t.Errorf("%q: %v", line, err)
		}
	}
}
