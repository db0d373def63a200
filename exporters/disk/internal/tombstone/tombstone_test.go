package tombstone_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/tombstone"
	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

var made = time.Date(2026, 11, 21, 17, 0, 0, 123, time.UTC)

func samples() []*tombstone.Tombstone {
	return []*tombstone.Tombstone{
		{Number: 1, Through: 7, Made: made, Tenant: "a", Traces: []otlpdata.TraceID{{1}, {15: 2}}, To: math.MaxUint64},
		{Number: 2, Through: 1 << 60, Made: made, Service: "cart", From: 1, To: 2},
		{Number: math.MaxUint64, Through: math.MaxUint64, Made: made, From: 5, To: math.MaxUint64},
	}
}

func encode(t testing.TB, m *tombstone.Tombstone) []byte {
	t.Helper()
	b, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTombstoneRoundTrip(t *testing.T) {
	for _, m := range samples() {
		got, err := tombstone.Decode(encode(t, m))
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v decoded as %+v, %v", m, got, err)
		}
	}
}

func TestTombstoneGolden(t *testing.T) {
	var all []byte
	for _, m := range samples() {
		all = append(all, encode(t, m)...)
	}
	const name = "testdata/v1.marks"
	golden.Check(t, name, all) // files of version 1 must stay readable
}

// TestDecodeDetectsDamage changes every bit and cuts the file at every length.
func TestDecodeDetectsDamage(t *testing.T) {
	b := encode(t, samples()[0])
	for i := range len(b) * 8 {
		bad := bytes.Clone(b)
		bad[i/8] ^= 1 << (i % 8)
		if m, err := tombstone.Decode(bad); err == nil {
			t.Errorf("bit %d flipped: decoded as %+v", i, m)
		}
	}
	for n := range len(b) {
		if _, err := tombstone.Decode(b[:n]); err == nil {
			t.Errorf("truncated to %d bytes: no error", n)
		}
	}
}

func TestTooManyTraces(t *testing.T) {
	if _, err := (&tombstone.Tombstone{Number: 1, Traces: make([]otlpdata.TraceID, tombstone.MaxTraces+1)}).Append(nil); err == nil {
		t.Error("no error for a tombstone with too many traces")
	}
}

func TestApplies(t *testing.T) {
	m := &tombstone.Tombstone{Number: 7, Through: 3}
	for _, f := range []struct {
		first, applied uint64
		want           bool
	}{{1, 0, true}, {3, 6, true}, {4, 0, false}, {3, 7, false}, {1, 8, false}} {
		if got := m.Applies(f.first, f.applied); got != f.want {
			t.Errorf("Applies(%d, %d) = %t", f.first, f.applied, got)
		}
	}
}

func TestDir(t *testing.T) {
	fs := vfstest.NewMem()
	d := tombstone.Dir{FS: fs, Path: "/store/deletions"}
	if tombstones, damaged, err := d.Load(); err != nil || len(tombstones)+len(damaged) > 0 {
		t.Fatalf("no folder: %v, %v, %v", tombstones, damaged, err)
	}
	for _, m := range samples() {
		if err := d.Write(m); err != nil {
			t.Fatal(err)
		}
	}
	for name, b := range map[string][]byte{
		"x.mark": nil, "0000000000000005.mark": encode(t, samples()[1]), "y.tombstone.tmp": {1}, "notes": {1},
	} {
		if err := vfs.WriteFileAtomic(fs, d.Path+"/"+name, b); err != nil {
			t.Fatal(err)
		}
	}
	tombstones, damaged, err := d.Load()
	if err != nil || !reflect.DeepEqual(tombstones, samples()) || len(damaged) != 2 || damaged[0].Number != 5 {
		t.Errorf("%v, %v, %v", tombstones, damaged, err)
	}
	for range 2 {
		if err := d.Remove(2); err != nil {
			t.Error(err)
		}
	}
	if tombstones, _, err := d.Load(); err != nil || len(tombstones) != 2 {
		t.Errorf("after Remove: %v, %v", tombstones, err)
	}
}

func TestNewerVersion(t *testing.T) {
	fs := vfstest.NewMem()
	d := tombstone.Dir{FS: fs, Path: "/store/deletions"}
	b := encode(t, samples()[0])
	binary.LittleEndian.PutUint32(b[4:], 2)
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], crc32.MakeTable(crc32.Castagnoli)))
	if err := fs.MkdirAll(d.Path); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFileAtomic(fs, d.File(1), b); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Load(); !errors.Is(err, tombstone.ErrNewer) {
		t.Errorf("error %v", err)
	}
}

// TestWrittenTombstonesSurviveACrash checks that a tombstone exists after a crash if Write returned
// nil.
func TestWrittenTombstonesSurviveACrash(t *testing.T) {
	for seed := range uint64(100) {
		fs := vfstest.NewMem()
		if err := (tombstone.Dir{FS: fs, Path: "/store/deletions"}).Write(samples()[0]); err != nil {
			t.Fatal(err)
		}
		d := tombstone.Dir{FS: fs.Crash(rand.New(rand.NewPCG(seed, 0))), Path: "/store/deletions"}
		if tombstones, _, err := d.Load(); err != nil || len(tombstones) != 1 {
			t.Fatalf("seed %d: %v, %v", seed, tombstones, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		f.Add(encode(f, m))
	}
	f.Add([]byte("TDEL"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := tombstone.Decode(b)
		if err != nil {
			return
		}
		if again := encode(t, m); !bytes.Equal(again, b) {
			t.Errorf("%+v encodes to %x, decoded from %x", m, again, b)
		}
	})
}
