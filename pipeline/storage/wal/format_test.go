package wal_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

const goldenFile = "testdata/golden-v1.log"

// The file was written by version 1; every later version must read it.
func TestGoldenFile(t *testing.T) {
	content, _ := sample(t)
	want := golden.Check(t, goldenFile, content)
	_, d := withFile(t, 5, want)
	sound(t, d, 5, samplePayload(1), samplePayload(2), samplePayload(3), samplePayload(4), samplePayload(5))
}

// For any content of two part files, Replay ends, delivers ascending numbers (checked by replay),
// at most as many bytes as there are, and counts that add up.
func FuzzReplay(f *testing.F) {
	content, at := sample(f)
	f.Add(content, []byte(nil), false)
	f.Add(content[:at[2]], content[at[1]:], false)
	f.Add(content[at[3]:], content[:at[4]], true)
	f.Add(append(make([]byte, 24), content[:300]...), bytes.Repeat([]byte("WAL\x01"), 64), true)
	f.Fuzz(func(t *testing.T, first, second []byte, forge bool) {
		if forge {
			forgeChecksums(first)
			forgeChecksums(second)
		}
		mem, d := withFile(t, 5, first)
		writePart(t, mem, 5, 1, second)
		var delivered, last uint64
		var size int
		report, err := d.Replay(5, func(seq uint64, payload []byte) error {
			if seq <= last {
				t.Fatalf("record %d after %d", seq, last)
			}
			last, delivered, size = seq, delivered+1, size+len(payload)
			return nil
		})
		if err != nil {
			return // another version; anything else is not an error
		}
		if size > len(first)+len(second) || report.Bytes != int64(size) || report.Records != delivered || report.Last != last {
			t.Errorf("delivered %d records to %d with %d bytes of %d; report %+v", delivered, last, size, len(first)+len(second), report)
		}
		if sound := report.Lost == 0 && len(report.Damage) == 0 && !report.Truncated && !report.Doubtful; sound != report.Sound() ||
			report.Doubtful && report.Unsynced == 0 || len(report.Damage) > 2000 {
			t.Errorf("report %+v", report)
		}
	})
}

// forgeChecksums makes every header valid, and its payload if that is in the file, so that
// mutations pass the checksums.
func forgeChecksums(b []byte) {
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	for i := 0; i+40 <= len(b); i += 8 {
		if string(b[i:i+3]) != "WAL" {
			continue
		}
		h := b[i : i+40]
		if end := i + 40 + int(binary.LittleEndian.Uint32(h[4:])); end <= len(b) {
			binary.LittleEndian.PutUint32(h[32:], crc32.Checksum(b[i+40:end], castagnoli))
		}
		binary.LittleEndian.PutUint32(h[36:], crc32.Checksum(h[:36], castagnoli))
	}
}

// Many damaged places cost little memory and leave the count of lost records correct.
func TestReportIsBounded(t *testing.T) {
	const pairs = 3000
	mem := vfstest.NewMem()
	d := openDir(t, mem, small)
	l := create(t, d, 5)
	for range 2 * pairs {
		appendTo(t, l, "12345678")
	}
	commit(t, l, 1)
	commit(t, l, appendTo(t, l, "the last one knows that all were durable"))
	closeLog(t, l)
	content := readAll(t, mem, partPath(5, 0))
	for i := range pairs {
		content[2*i*48] = 0
	}
	_, d = withFile(t, 5, content)
	found, report := replay(t, d, 5)
	if len(found) != pairs+1 || report.Lost != pairs || len(report.Damage) != 1000 {
		t.Errorf("found %d, lost %d, %d places; want %d, %d, 1000", len(found), report.Lost, len(report.Damage), pairs+1, pairs)
	}
}
