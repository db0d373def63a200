package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

const goldenFile = "testdata/v1.segment"

// goldenSample is the sample in the golden file.
func goldenSample(tb testing.TB) *sample { return randomSample(tb, 42, 8) }

// TestGolden checks that the golden file stays readable, and that the same input is written
// identically until the version changes.
func TestGolden(t *testing.T) {
	s := goldenSample(t)
	_, fs := writeSample(t, s, 10)
	data, err := vfs.ReadFile(fs, "s", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	want := golden.Check(t, goldenFile, data)
	checkSame(t, "golden file", readAll(t, put(t, want), "s"), s.spans)
}

// TestSegmentWithoutElements checks that segments whose filters do not hold the elements of arrays
// stay readable, and that their filters are not expected to hold them.
func TestSegmentWithoutElements(t *testing.T) {
	data, err := os.ReadFile("testdata/v1-no-elements.segment")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(put(t, data), "s")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if rows, _, _ := s.Bounds(); rows == 0 || s.HoldsElements() {
		t.Errorf("%d rows, holds elements: %t", rows, s.HoldsElements())
	}
	if now, err := Open(put(t, readGolden(t)), "s"); err != nil || !now.HoldsElements() {
		t.Error("segments that are written now do not hold elements", err)
	} else {
		now.Close()
	}
}

func readGolden(tb testing.TB) []byte {
	tb.Helper()
	b, err := os.ReadFile(goldenFile)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// put returns a file system with a file "s".
func put(tb testing.TB, data []byte) vfs.FS {
	tb.Helper()
	fs := vfstest.NewMem()
	f, err := fs.Create("s")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(data, 0); err != nil {
		tb.Fatal(err)
	}
	return fs
}

// part is a range of bytes of a file.
type part struct {
	name     string
	kind     kind // of a section
	block    int  // -1 if it is not a block
	from, to int64
}

func partsOf(tb testing.TB, s *Segment) []part {
	tb.Helper()
	b, err := s.load()
	if err != nil {
		tb.Fatal(err)
	}
	parts := []part{{name: "header", block: -1, to: headerSize}}
	for i, p := range b.blocks {
		parts = append(parts, part{fmt.Sprintf("block %d", i), 0, i, p.offset, p.offset + int64(p.length)})
	}
	var sections []part
	for k, e := range s.dir {
		if e.kind != 0 {
			sections = append(sections, part{e.kind.String(), kind(k), -1, e.offset, e.offset + e.length})
		}
	}
	slices.SortFunc(sections, func(a, b part) int { return int(a.from - b.from) })
	parts = append(parts, sections...)
	end := parts[len(parts)-1].to
	parts = append(parts, part{"directory", 0, -1, end, s.size - trailerSize}, part{"trailer", 0, -1, s.size - trailerSize, s.size})
	for i := range parts[1:] {
		if parts[i+1].from != parts[i].to {
			tb.Fatalf("%s begins at %d, %s ends at %d", parts[i+1].name, parts[i+1].from, parts[i].name, parts[i].to)
		}
	}
	return parts
}

// TestEveryBitFlip checks that a flipped bit affects only the part that it is in.
func TestEveryBitFlip(t *testing.T) {
	golden, spans := readGolden(t), goldenSample(t).spans
	sound := openTest(t, put(t, golden), "s")
	parts := partsOf(t, sound)
	step := 1
	if testing.Short() {
		step = 7
	}
	want := blocksOf(t, sound)
	for _, p := range parts {
		for at := p.from; at < p.to; at += int64(step) {
			data := bytes.Clone(golden)
			data[at] ^= 1 << (at % 8)
			checkDamaged(t, put(t, data), sound, p, spans, want)
			if t.Failed() {
				t.Fatalf("flipped a bit of byte %d, in %s", at, p.name)
			}
		}
	}
}

func blocksOf(t *testing.T, s *Segment) [][]storedSpan {
	t.Helper()
	tables, err := s.Tables()
	if err != nil {
		t.Fatal(err)
	}
	blocks := make([][]storedSpan, s.Info().Blocks)
	for i := range blocks {
		if blocks[i], err = readBlock(s, tables, i); err != nil {
			t.Fatal(err)
		}
	}
	return blocks
}

// checkDamaged checks a file with a damaged part. blocks are the blocks of the undamaged file.
func checkDamaged(t *testing.T, fs vfs.FS, sound *Segment, p part, spans []storedSpan, blocks [][]storedSpan) {
	t.Helper()
	s, err := Open(fs, "s")
	if slices.Contains([]string{"trailer", "directory", "info"}, p.name) {
		checkDamageError(t, err, p.name, -1)
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	defer s.Close()
	reported := map[string]error{}
	if err := s.Verify(t.Context(), func(part string, err error) { reported[part] = err }); err != nil {
		t.Error(err)
	}
	for name, err := range reported {
		if name == p.name {
			checkDamageError(t, err, p.name, lostWith(sound, p))
		} else if err != nil && !essential(p.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if essential(p.kind) {
		_, err := s.Tables()
		checkDamageError(t, err, p.name, len(spans))
		return
	}
	checkRest(t, s, p, spans, blocks)
}

func essential(k kind) bool { return k == kindTables || k == kindLayout || k == kindBlocks }

// lostWith returns the number of spans that are unreadable without a part.
func lostWith(sound *Segment, p part) int {
	switch {
	case p.block >= 0:
		b, _ := sound.load()
		return b.blocks[p.block].rows
	case essential(p.kind):
		return sound.Info().Rows
	}
	return 0
}

func checkDamageError(t *testing.T, err error, part string, rows int) {
	t.Helper()
	var d *source.DamageError
	if !errors.As(err, &d) || d.Part != part || d.File != "s" || rows >= 0 && d.Rows != rows {
		t.Errorf("got %v (%+v), want damage of %s with %d rows", err, d, part, rows)
	}
}

// checkRest checks that everything except the damaged part is read correctly.
func checkRest(t *testing.T, s *Segment, p part, spans []storedSpan, blocks [][]storedSpan) {
	t.Helper()
	tables, err := s.Tables()
	if err != nil {
		t.Fatal(err)
	}
	if infos, err := s.Blocks(); len(infos) != len(blocks) || err != nil {
		t.Errorf("%d blocks, %v", len(infos), err)
	}
	lost := map[string]bool{} // spans of the damaged block
	for i, want := range blocks {
		got, err := readBlock(s, tables, i)
		if i == p.block {
			checkDamageError(t, err, p.name, len(want))
			for _, s := range want {
				lost[s.tenant+" "+s.content] = true
			}
			continue
		}
		if err != nil {
			t.Error(err)
		}
		checkSame(t, "block", got, want)
	}
	checkTraceRest(t, s, spans, lost)
	_, err = s.Series()
	_, edges := s.Edges()
	_, orphans := s.Orphans()
	services, operations := readAllNames(s)
	for k, err := range map[kind]error{kindSeries: err, kindEdges: edges, kindOrphans: orphans, kindServices: services,
		kindOperations: operations} {
		if k == p.kind || p.kind == kindNameDirectory && (k == kindServices || k == kindOperations) {
			checkDamageError(t, err, p.name, 0)
		} else if err != nil {
			t.Error(err)
		}
	}
}

func readBlock(s *Segment, tables *rows.Tables, i int) ([]storedSpan, error) {
	b, err := s.Open(context.Background(), i)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	var spans []storedSpan
	for row := range b.Len() {
		s, err := spanOf(tables, b, row)
		if err != nil {
			return nil, err
		}
		spans = append(spans, s)
	}
	return spans, nil
}

// checkTraceRest reads all traces: each must have all its spans, or some of them and an error if
// the damaged block has others.
func checkTraceRest(t *testing.T, s *Segment, spans []storedSpan, lost map[string]bool) {
	t.Helper()
	want := map[string][]storedSpan{}
	for _, span := range spans {
		key := span.tenant + string(span.trace[:])
		want[key] = append(want[key], span)
	}
	for _, all := range want {
		got, err := readTrace(s, all[0].tenant, all[0].trace)
		var d *source.DamageError
		if errors.As(err, &d) && isDamaged(all, lost) {
			known := keysOf(all)
			for _, key := range keysOf(got) {
				if !slices.Contains(known, key) {
					t.Errorf("unknown span: %q", key)
				}
			}
			continue
		}
		if err != nil {
			t.Error(err)
		}
		checkSame(t, "trace", got, all)
	}
}

// isDamaged reports whether one of the spans is in the damaged block.
func isDamaged(spans []storedSpan, lost map[string]bool) bool {
	return slices.ContainsFunc(spans, func(s storedSpan) bool { return lost[s.tenant+" "+s.content] })
}

func TestEveryTruncation(t *testing.T) {
	golden := readGolden(t)
	for n := range golden {
		s, err := Open(put(t, golden[:n]), "s")
		if err == nil {
			s.Close()
		}
		checkDamageError(t, err, "trailer", 0)
		if t.Failed() {
			t.Fatalf("truncated to %d bytes", n)
		}
	}
}

func TestNewerVersion(t *testing.T) {
	data := readGolden(t)
	end, err := readTrailer(data[len(data)-trailerSize:], int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	trailer := end.append(nil)
	trailer[16]++
	binary.LittleEndian.PutUint32(trailer[20:], checksum(trailer[:20]))
	copy(data[len(data)-trailerSize:], trailer)
	_, err = Open(put(t, data), "s")
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "s: ") {
		t.Errorf("got %v", err)
	}
	var d *source.DamageError
	if errors.As(err, &d) {
		t.Error("error of a newer version matches DamageError")
	}
}

// FuzzOpen checks that any bytes are a segment or an error. It corrects the trailer, so that the
// code after the checks is reached.
func FuzzOpen(f *testing.F) {
	golden := readGolden(f)
	f.Add(golden)
	f.Add(golden[:len(golden)/2])
	f.Add([]byte{})
	f.Add(plainSegment(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.Clone(data)
		fixChecksums(data)
		fs := put(t, data)
		s, err := Open(fs, "s")
		if err != nil {
			return
		}
		defer s.Close()
		if err := s.Verify(t.Context(), func(string, error) {}); err != nil {
			t.Fatal(err)
		}
		if b, err := s.load(); err == nil {
			for i := range min(len(b.blocks), 4) {
				s.MayHold(i, "unique", "text")
			}
		}
		readTrace(s, "tenant 0", otlpdata.TraceID{15: 7})
	})
}

// plainSegment returns a file with uncompressed sections, so that changes reach the decoders.
func plainSegment(tb testing.TB) []byte {
	tb.Helper()
	fs := vfstest.NewMem()
	if _, err := Write(fs, "s", goldenSample(tb).in, testMeta, Options{blockRows: 10, plain: true}); err != nil {
		tb.Fatal(err)
	}
	data, err := vfs.ReadFile(fs, "s", 1<<20)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// fixChecksums corrects the checksums of trailer, directory and sections, if they exist.
func fixChecksums(data []byte) {
	if len(data) < headerSize+trailerSize {
		return
	}
	end := len(data) - trailerSize
	d := end - entrySize*int(kinds-1)
	if d < headerSize {
		return
	}
	for e := range slices.Chunk(data[d:end], entrySize) {
		offset, length := binary.LittleEndian.Uint64(e[8:]), binary.LittleEndian.Uint64(e[16:])
		if offset <= uint64(d) && length <= uint64(d)-offset {
			binary.LittleEndian.PutUint32(e[4:], checksum(data[offset:offset+length]))
		}
	}
	t := trailer{offset: int64(d), length: int64(end - d), crc: checksum(data[d:end])}
	copy(data[end:], t.append(nil))
}
