package column

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// readAny reads src as a column of n values of the given kind and returns the outcome.
func readAny(d *Decoder, kind byte, src []byte, n int) error {
	switch kind % 7 {
	case 0:
		return d.Uint64s(src, make([]uint64, n))
	case 1:
		return d.Int64s(src, make([]int64, n))
	case 2:
		return d.Float64s(src, make([]float64, n))
	case 3:
		return d.Bools(src, make([]bool, n))
	case 4:
		return d.Codes(src, make([]uint32, n))
	case 5:
		return d.Fixed(src, make([]byte, 3*n), 3)
	}
	v := make([]string, n)
	if err := readTexts(d, src, v); err != nil {
		return err
	}
	return checkCodes(d, src, v)
}

// readTexts decodes strings and compares the result with StringsAt.
func readTexts(d *Decoder, src []byte, v []string) error {
	if err := d.Strings(src, v); err != nil {
		return err
	}
	for _, step := range []int{1, 2, 7, 100, len(v) + 1} {
		var at []int32
		for i := step / 2; i < len(v); i += step {
			at = append(at, int32(i))
		}
		some := make([]string, len(at))
		if err := d.StringsAt(src, len(v), at, some); err != nil {
			//nolint:errorlint // not the error of a corrupt column
			return fmt.Errorf("StringsAt failed, Strings did not: %v", err)
		}
		for i, pos := range at {
			if some[i] != v[pos] {
				return fmt.Errorf("string %d is %q, StringsAt returned %q", pos, v[pos], some[i])
			}
		}
	}
	return nil
}

// checkCodes compares Strings with StringCodes.
func checkCodes(d *Decoder, src []byte, v []string) error {
	codes := make([]uint32, len(v))
	table, ok, err := d.StringCodes(src, codes)
	if err != nil || !ok {
		return err
	}
	for i, c := range codes {
		if table[c] != v[i] {
			return errors.New("strings and codes differ")
		}
	}
	return nil
}

func checkOutcome(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrCorrupt) {
		t.Fatalf("got %v", err)
	}
}

func goldenFiles(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/golden/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	out := map[string][]byte{}
	for _, f := range files {
		if out[f], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestDamagedColumns decodes columns that are truncated, have a changed byte, or are decoded as a
// different kind or number of values. The outcome must be ErrCorrupt or some values.
func TestDamagedColumns(t *testing.T) {
	d, r := NewDecoder(), rand.New(rand.NewPCG(1, 2))
	for _, b := range goldenFiles(t) {
		for kind := range byte(8) {
			for _, n := range []int{0, 1, 50, 100, 300, 500, 1000} {
				checkOutcome(t, readAny(d, kind, b, n))
			}
		}
		for i := range b {
			n := []int{10, 50, 100, 300, 500, 600, 1000}[i%7]
			changed := bytes.Clone(b)
			changed[i] ^= byte(1 << r.IntN(8))
			for kind := range byte(8) {
				checkOutcome(t, readAny(d, kind, changed, n))
				checkOutcome(t, readAny(d, kind, b[:i], n))
			}
		}
	}
}

func TestTruncatedColumnsAreRejected(t *testing.T) {
	c := newCoders()
	for _, s := range stringSamples() {
		b := c.flush.Strings(nil, s.v)
		for _, n := range []int{0, 1, len(b) / 2, len(b) - 1} {
			if err := c.d.Strings(b[:n], make([]string, len(s.v))); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s truncated to %d of %d bytes: %v", s.name, n, len(b), err)
			}
		}
		if err := c.d.Strings(append(b, 0), make([]string, len(s.v))); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s with a trailing byte: %v", s.name, err)
		}
	}
}

// TestAllocationsAreBounded checks that a few bytes that announce huge values do not cause large
// allocations.
func TestAllocationsAreBounded(t *testing.T) {
	uvarints := func(b []byte, v ...uint64) []byte {
		for _, x := range v {
			b = binary.AppendUvarint(b, x)
		}
		return b
	}
	short := binary.AppendUvarint(nil, 4<<1|1)
	short = append(short, 0xa0, 0xff, 0xff, 0xff)
	hostile := map[string][]byte{
		"constant of 128 MiB": append(uvarints([]byte{stringsConstant}, MaxBytes), short...),
		"constant beyond":     append(uvarints([]byte{stringsConstant}, 1<<60), short...),
		"plain of 128 MiB":    append(uvarints([]byte{stringsPlain, numConstant}, zigzag(MaxBytes/10)), short...),
		"lengths overflow":    append(uvarints([]byte{stringsPlain, numConstant}, zigzag(1<<63)), short...),
		"table too large":     uvarints([]byte{stringsTable}, 1<<40),
		"many templates":      uvarints([]byte{stringsSplit}, 1<<40),
		"stream too long":     uvarints([]byte{stringsConstant}, 10, 1<<40),
	}
	d := NewDecoder()
	for name, b := range hostile {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := d.Strings(b, make([]string, 10))
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: allocated %d bytes", name, n)
		}
	}
}

// TestDecompressionBomb checks that a frame that holds more than the column needs is not
// decompressed.
func TestDecompressionBomb(t *testing.T) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	frame := enc.EncodeAll(make([]byte, 64<<20), nil)[len(frameMagic):]
	b := binary.AppendUvarint([]byte{stringsConstant, 100}, uint64(len(frame))<<1|1)
	b = append(b, frame...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = NewDecoder().Strings(b, make([]string, 10))
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Fatalf("allocated %d bytes", n)
	}
}

// TestSplitStringsTooLong checks that strings whose total length exceeds the limit are rejected
// before they are built.
func TestSplitStringsTooLong(t *testing.T) {
	e := NewEncoder(Flush)
	long := string(bytes.Repeat([]byte("x"), 1<<20))
	b := e.Strings(nil, []string{"1" + long, "2" + long, "3" + long, "4" + long, "5" + long, "6" + long, "7" + long, "8" + long})
	if b[0] != stringsSplit {
		t.Fatalf("method %d", b[0])
	}
	// The same column, with 1000 equal strings.
	p := e.plain([]byte{stringsSplit, 1}, []string{string([]byte{escape, opDecimal}) + long})
	p = e.numbers(p, make([]uint64, 1000), false)
	if err := NewDecoder().Strings(p, make([]string, 1000)); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("1 GB of strings from %d bytes: %v", len(p), err)
	}
	if err := NewDecoder().Strings(p, make([]string, 10)); !errors.Is(err, ErrCorrupt) && err != nil {
		t.Fatal(err)
	}
}
