package wal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// sample is a log whose records 1 to 3 were committed one by one and 4 and 5 together, and the
// offsets of its records.
func sample(t testing.TB) (content []byte, at []int) {
	t.Helper()
	mem := vfstest.NewMem()
	l := create(t, openDir(t, mem, wal.Options{Step: 512, Size: 512}), 5)
	for seq := 1; seq <= 3; seq++ {
		commit(t, l, appendTo(t, l, samplePayload(seq)))
	}
	appendTo(t, l, samplePayload(4))
	commit(t, l, appendTo(t, l, samplePayload(5)))
	closeLog(t, l)
	return readAll(t, mem, partPath(5, 0)), []int{0, 512, 1024, 1536, 1536 + 40 + 24}
}

func samplePayload(seq int) string { return fmt.Sprintf("payload of record %d", seq) }

const sampleRecord = 40 + 19

// Every flipped bit loses the record that it is in, and no other. It is reported as corruption if a
// later record proves that the record was durable.
func TestFlippedBitCostsOneRecord(t *testing.T) {
	content, at := sample(t)
	for i := range content {
		damaged := append([]byte(nil), content...)
		damaged[i] ^= 1 << (i % 8)
		_, d := withFile(t, 5, damaged)
		found, report := replay(t, d, 5)
		hit := recordAt(at, i)
		for seq := 1; seq <= 5; seq++ {
			if got, ok := found[uint64(seq)]; ok == (seq == hit) || ok && got != samplePayload(seq) {
				t.Errorf("byte %d is wrong: record %d is found: %v %q", i, seq, ok, got)
			}
		}
		wantLost := uint64(0)
		if hit >= 1 && hit <= 3 {
			wantLost = 1
		}
		if report.Lost != wantLost || len(report.Damage) != int(wantLost) {
			t.Errorf("byte %d in record %d is wrong: %+v, want %d lost", i, hit, report, wantLost)
		}
		for _, dmg := range report.Damage {
			inside := int64(i) >= dmg.Offset && int64(i) < dmg.Offset+dmg.Bytes
			if !inside || dmg.First != uint64(hit) || dmg.Last != uint64(hit) || dmg.File != partPath(5, 0) {
				t.Errorf("byte %d in record %d is wrong, but the report points to %+v", i, hit, dmg)
			}
		}
	}
}

// recordAt returns the number of the record that byte i belongs to, 0 for padding.
func recordAt(at []int, i int) int {
	for n, start := range at {
		if i >= start && i < start+sampleRecord {
			return n + 1
		}
	}
	return 0
}

// A truncated file is a torn tail: the records before it are kept.
func TestTruncationKeepsWhatIsThere(t *testing.T) {
	content, at := sample(t)
	for size := range content {
		_, d := withFile(t, 5, content[:size])
		found, report := replay(t, d, 5)
		whole := 0
		for whole < len(at) && at[whole]+sampleRecord <= size {
			whole++
		}
		if len(found) != whole || !report.Sound() {
			t.Errorf("of %d bytes %d records were found, want %d; %+v", size, len(found), whole, report)
		}
	}
}

// TestDoubtfulEnd damages the last record of a log, which no later record proves to be synced. The
// damage is doubtful unless an interrupted write explains it: it leaves whole sectors as they were,
// zeros in a new file, and anything in a reused one.
func TestDoubtfulEnd(t *testing.T) {
	oneSector, twoSectors := repeated('x', 300), repeated('x', 700)
	for name, c := range map[string]struct {
		reused   bool
		payload  string
		damage   func(content []byte)
		doubtful bool
	}{
		"new file, sector is zero":                  {false, twoSectors, func(b []byte) { clear(b[512:1024]) }, false},
		"new file, flipped bit":                     {false, twoSectors, func(b []byte) { b[600] ^= 1 }, true},
		"new file, zeros inside a sector":           {false, twoSectors, func(b []byte) { clear(b[400:1024]) }, true},
		"reused file, flipped bit in a long record": {true, twoSectors, func(b []byte) { b[600] ^= 64 }, true},
		"reused file, sector is stale":              {true, twoSectors, func(b []byte) { fill(b[512:1024], 's') }, false},
		"reused file, flipped bit in sector":        {true, oneSector, func(b []byte) { b[100] ^= 1 }, true},
		"reused file, flipped bit in header":        {true, oneSector, func(b []byte) { b[20] ^= 1 }, true},
		"reused file, the record is not there":      {true, oneSector, func(b []byte) { fill(b[:512], 's') }, false},
	} {
		mem := vfstest.NewMem()
		d := openDir(t, mem, small)
		if c.reused {
			filled(t, d, 1, 1)
			if err := d.Recycle(1); err != nil {
				t.Fatal(err)
			}
		}
		l := create(t, d, 2)
		commit(t, l, appendTo(t, l, c.payload))
		closeLog(t, l)
		content := readAll(t, mem, partPath(2, 0))
		c.damage(content)
		write(t, mem, partPath(2, 0), content)
		_, report := replay(t, openDir(t, mem, small), 2)
		if report.Doubtful != c.doubtful || report.Sound() == c.doubtful {
			t.Errorf("%s: %+v; want doubtful: %t", name, report, c.doubtful)
		}
	}
}

func fill(b []byte, with byte) { copy(b, bytes.Repeat([]byte{with}, len(b))) }

// A hole before records that were written later but synced with it was never acknowledged.
func TestUnsyncedHoleIsNoDamage(t *testing.T) {
	content, at := sample(t)
	clear(content[at[3] : at[3]+sampleRecord])
	_, d := withFile(t, 5, content)
	found, report := replay(t, d, 5)
	if _, ok := found[4]; ok || len(found) != 4 || !report.Sound() || report.Unsynced != 1 {
		t.Errorf("found %d records, %+v; want 4 and one unsynced", len(found), report)
	}
}

func TestUnreadableSectorsCostTheirRecords(t *testing.T) {
	mem := vfstest.NewMem()
	l := create(t, openDir(t, mem, small), 1)
	for range 20 {
		commit(t, l, appendTo(t, l, repeated('x', 8000)))
	}
	closeLog(t, l)
	// The first read of a chunk fails, then one of the reads sector by sector. Each rule counts its
	// own reads.
	whole := &vfstest.Rule{Op: vfstest.OpRead, Path: "*.log", Skip: 0, Times: 1, Err: errDisk}
	bad := &vfstest.Rule{Op: vfstest.OpRead, Path: "*.log", Skip: 4, Times: 1, Err: errDisk}
	found, report := replay(t, openDir(t, vfstest.Inject(mem, whole, bad), small), 1)
	if len(found) != 19 || report.Lost != 1 || len(report.Damage) != 1 || !errors.Is(report.Damage[0].Err, errDisk) {
		t.Errorf("found %d records, %+v; want all but one, and the place", len(found), report)
	}
}

func TestUnreadableFileIsGivenUp(t *testing.T) {
	mem := vfstest.NewMem()
	d := openDir(t, mem, wal.Options{Step: 4 << 20})
	closeLog(t, create(t, d, 1))
	broken := vfstest.Inject(mem, &vfstest.Rule{Op: vfstest.OpRead, Err: errDisk})
	found, report := replay(t, openDir(t, broken, small), 1)
	if len(found) != 0 || len(report.Damage) != 1 || report.Damage[0].Bytes != 4<<20 || report.Sound() {
		t.Errorf("found %d records, %+v; want the whole file reported", len(found), report)
	}
	if reads := broken.Count(vfstest.OpRead); reads > 300 {
		t.Errorf("%d reads of a file that cannot be read", reads)
	}
}

// A part lost in the middle is noticed although no file has a broken byte.
func TestMissingPartIsNoticed(t *testing.T) {
	content, at := sample(t)
	mem, d := withFile(t, 5, content[:at[1]])
	writePart(t, mem, 5, 2, content[at[3]:])
	found, report := replay(t, d, 5)
	if len(found) != 3 || report.Lost != 2 {
		t.Errorf("found %d records, %+v; want 3, and 2 lost", len(found), report)
	}
}

// Stale records of a reused file have another epoch, and records of a later version are not
// interpreted.
func TestOtherEpochsAndVersions(t *testing.T) {
	content, at := sample(t)
	_, d := withFile(t, 6, content)
	if found, report := replay(t, d, 6); len(found) != 0 || !report.Sound() {
		t.Errorf("epoch 6 found %d records of epoch 5, %+v", len(found), report)
	}
	content[at[2]+3] = 2
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(content[at[2]+36:], crc32.Checksum(content[at[2]:at[2]+36], castagnoli))
	_, d = withFile(t, 5, content)
	_, err := d.Replay(5, func(uint64, []byte) error { return nil })
	if !errors.Is(err, wal.ErrVersion) || !strings.Contains(err.Error(), partPath(5, 0)) {
		t.Errorf("a record of version 2 gives %v", err)
	}
}

// A sender may put a forged record into a payload. It is not looked for while the header before it
// is valid.
func TestRecordInsideAPayloadIsNoRecord(t *testing.T) {
	forged, _ := sample(t)
	mem := vfstest.NewMem()
	l := create(t, openDir(t, mem, small), 5)
	commit(t, l, appendTo(t, l, string(forged)))
	commit(t, l, appendTo(t, l, "second"))
	closeLog(t, l)
	content := readAll(t, mem, partPath(5, 0))
	content[40+len(forged)-1] ^= 1
	_, d := withFile(t, 5, content)
	found, report := replay(t, d, 5)
	if len(found) != 1 || found[2] != "second" || report.Lost != 1 {
		t.Errorf("found %v, %+v; want the second record only", found, report)
	}
}

func TestReplayPassesOnTheErrorOfItsCaller(t *testing.T) {
	content, _ := sample(t)
	_, d := withFile(t, 5, content)
	report, err := d.Replay(5, func(seq uint64, _ []byte) error {
		if seq == 2 {
			return errDisk
		}
		return nil
	})
	if !errors.Is(err, errDisk) || report.Last != 2 {
		t.Errorf("Replay returned %v after record %d", err, report.Last)
	}
}
