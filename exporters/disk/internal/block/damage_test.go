package block

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/column"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// fixed returns the rows of the golden file. They have all kinds of values and must not change.
func fixed() (*segment, *Layout) {
	s := &segment{}
	t := &s.tables
	for kind := otlpdata.ValueEmpty; kind <= otlpdata.ValueMap; kind++ {
		for _, name := range []string{"varies", "constant"} {
			t.Columns = append(t.Columns, rows.Column{Kind: kind, Key: fmt.Sprint(name, kind)})
		}
	}
	t.Columns = append(t.Columns, rows.Column{Kind: otlpdata.ValueString, Key: "dictionary"})
	t.Words = make([][]string, len(t.Columns))
	dictionary := uint32(len(t.Columns) - 1)
	t.Resources = []rows.Resource{{Resource: otlpdata.Resource{Service: "a"}}, {Resource: otlpdata.Resource{Service: "b"}},
		{Resource: otlpdata.Resource{Service: "a"}}, {Tenant: "t", Resource: otlpdata.Resource{Service: "a"}}}
	t.Shapes = []rows.Shape{{Service: "a"}, {Service: "b", Columns: []uint32{dictionary, 3, 2, 6, 2}}, {Service: "c"},
		{Tenant: "t", Service: "a"}}
	for c := range dictionary + 1 {
		t.Shapes[0].Columns = append(t.Shapes[0].Columns, c)
	}
	for i := range uint64(60) {
		trace := i / 12
		h := rows.Head{Shape: uint32(i*i) % 3, Resource: uint32(i % 3), TraceID: otlpdata.TraceID{byte(trace % 2), 15: byte(trace + 1)},
			SpanID: otlpdata.SpanID{byte(i), 7: 1}, ParentID: otlpdata.SpanID{byte(i - i%5), 7: byte(i % 4)}, Start: 1e18 + i*i*1000}
		h.End = h.Start + (i*i*i%977)*1000
		if trace == 4 {
			h.Shape, h.Resource, h.End = 3, 3, h.Start-i
		}
		var cells []rows.Cell
		for _, c := range t.Shapes[h.Shape].Columns {
			cells = append(cells, fixedCell(c, i, dictionary))
		}
		s.add(h, cells...)
	}
	return s, s.plan()
}

func fixedCell(column uint32, i uint64, dictionary uint32) rows.Cell {
	if column != dictionary && column%2 == 1 {
		i = 1
	}
	switch kind := otlpdata.ValueKind(column / 2); {
	case column == dictionary:
		return rows.Cell{Data: []string{"x", "y", "z"}[i*7/2%3]}
	case kind == otlpdata.ValueEmpty:
		return rows.Cell{}
	case kind == otlpdata.ValueBool:
		return rows.Cell{Num: i * 7 / 3 % 2}
	case kind == otlpdata.ValueInt:
		return rows.Cell{Num: i*i*i - 1000}
	case kind == otlpdata.ValueDouble:
		return rows.Cell{Num: math.Float64bits(float64(i*i) / 8)}
	}
	return rows.Cell{Data: strings.Repeat("ab", int(i%5)) + fmt.Sprint(i*i)}
}

// goldenBlock returns the committed block of the fixed rows.
func goldenBlock(t testing.TB) (*segment, *Layout, []byte) {
	s, l := fixed()
	path := filepath.Join("testdata", "block.golden")
	if golden.Updating() {
		data, _ := s.encode(NewEncoder(column.Merge), nil, l)
		golden.Write(t, path, data)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return s, l, data
}

// inspect reads everything, and returns which of the checks failed. It fails the test for errors
// that are not about the damage of the block.
func (c *checker) inspect() (failed []bool) {
	failed = make([]bool, len(c.all())+1)
	note := func(check int, err error) {
		var damage *source.DamageError
		if err == nil {
			return
		}
		if !errors.As(err, &damage) || damage.File != "file" || damage.Part != "block 7" || damage.Rows != c.b.Len() {
			c.Fatalf("not an error about the damaged block: %v", err)
		}
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, column.ErrCorrupt) {
			c.Fatalf("error does not match ErrCorrupt: %v", err)
		}
		failed[check] = true
	}
	for check, read := range c.all() {
		for row := range c.in.heads {
			note(check, read(row))
		}
	}
	note(len(failed)-1, c.traces())
	return failed
}

func TestGolden(t *testing.T) {
	s, l, data := goldenBlock(t)
	c := check(t, l, s.input, data, &Pool{})
	if failed := c.inspect(); slices.Contains(failed, true) {
		t.Errorf("failed checks: %v", failed)
	}
}

func TestFlippedBitsAreDetected(t *testing.T) {
	s, l, data := goldenBlock(t)
	var d directory
	if err := d.read(data); err != nil {
		t.Fatal(err)
	}
	var pool Pool
	for i := range data {
		data[i] ^= 1 << (i % 8)
		b, err := pool.Open(l, data, "file", 7)
		inDirectory := i < int(d.heads[0].from)
		var damage *source.DamageError
		switch {
		case inDirectory && !errors.As(err, &damage):
			t.Fatalf("byte %d of the directory: got %v", i, err)
		case !inDirectory && err != nil:
			t.Fatalf("byte %d of the parts: %v", i, err)
		case err == nil:
			failed := (&checker{t, l, s.input, b}).inspect()
			if !slices.Contains(failed, true) {
				t.Fatalf("byte %d: damage not detected", i)
			}
			if heads := append(failed[:5:5], failed[7]); i >= int(d.columns[0].from) && slices.Contains(heads, true) {
				t.Fatalf("byte %d of a column: heads failed: %v", i, failed)
			}
			b.Close()
		}
		data[i] ^= 1 << (i % 8)
	}
}

func TestTruncatedAndExtended(t *testing.T) {
	_, l, data := goldenBlock(t)
	var pool Pool
	for _, b := range append([][]byte{append(slices.Clone(data), 0)}, prefixes(data)...) {
		if _, err := pool.Open(l, b, "file", 7); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d bytes of %d: got %v", len(b), len(data), err)
		}
	}
}

func prefixes(b []byte) (all [][]byte) {
	for i := range b {
		all = append(all, b[:i])
	}
	return all
}

// TestForeignLayout decodes a block with the layout of another segment, which must result in errors
// or different cells.
func TestForeignLayout(t *testing.T) {
	_, _, data := goldenBlock(t)
	var pool Pool
	for seed := range uint64(20) {
		_, l := randomSegment(seed, 10)
		read(t, &pool, l, data)
	}
}

// fixChecksums corrects the checksums of a block, if it has a directory, so that the tests reach
// the code after the checks.
func fixChecksums(block []byte) []byte {
	if len(block) < prefix {
		return block
	}
	block = slices.Clone(block)
	var d directory
	size := min(int(block[4])|int(block[5])<<8, len(block)-prefix)
	block[4], block[5], block[6], block[7] = byte(size), byte(size>>8), 0, 0
	sum := crc32.Checksum(block[4:prefix+size], castagnoli)
	block[0], block[1], block[2], block[3] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
	if d.read(block) != nil {
		return block
	}
	return assemble(&d, func(e entry) []byte { return block[e.from : e.from+e.length] })
}

// assemble returns a block with the parts that part returns for the entries.
func assemble(d *directory, part func(entry) []byte) []byte {
	var body []byte
	put := func(e *entry) {
		p := part(*e)
		body = append(body, p...)
		e.length, e.crc = uint32(len(p)), crc32.Checksum(p, castagnoli)
	}
	for i := range d.heads {
		put(&d.heads[i])
	}
	for i := range d.columns {
		put(&d.columns[i].entry)
	}
	return append(d.append(nil), body...)
}

// read reads everything of a block with any content. Only errors about damage are allowed.
func read(t *testing.T, pool *Pool, l *Layout, data []byte) {
	var damage *source.DamageError
	ok := func(err error) bool {
		if err != nil && !errors.As(err, &damage) {
			t.Fatalf("unexpected kind of error: %v", err)
		}
		return err == nil
	}
	b, err := pool.Open(l, data, "file", 7)
	if !ok(err) {
		return
	}
	defer b.Close()
	for _, read := range []func() ([]uint32, error){b.Shapes, b.Resources} {
		list, err := read()
		if ok(err) && len(list) != b.Len() {
			t.Fatalf("%d of %d rows", len(list), b.Len())
		}
	}
	_, errEnds := b.Ends()
	traces, err := b.Traces()
	if ok(errEnds); ok(err) && len(traces) > 0 && int(traces[len(traces)-1].First+traces[len(traces)-1].Rows) != b.Len() {
		t.Fatalf("traces %v of %d rows", traces, b.Len())
	}
	var h rows.Head
	var cells []rows.Cell
	for row := range b.Len() {
		ok(b.Head(row, &h))
		cells, err = b.Cells(cells[:0], row)
		ok(err)
		shapes, err := b.Shapes()
		if !ok(err) {
			break
		}
		for i, id := range l.tables.Shapes[shapes[row]].Columns {
			if i < len(cells) {
				l.tables.Value(id, cells[i]) // panics if a word is not in the table
			}
		}
	}
}

func FuzzBlock(f *testing.F) {
	_, l, data := goldenBlock(f)
	var pool Pool
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		read(t, &pool, l, data)
		read(t, &pool, l, fixChecksums(data))
	})
}

// FuzzPart replaces one part of a valid block.
func FuzzPart(f *testing.F) {
	_, l, data := goldenBlock(f)
	var pool Pool
	var d directory
	if err := d.read(data); err != nil {
		f.Fatal(err)
	}
	n := headParts + len(d.columns)
	for i := range n {
		e := d.entry(i)
		f.Add(uint8(i), uint16(d.rows), uint16(d.traces), data[e.from:e.from+e.length])
	}
	f.Fuzz(func(t *testing.T, part uint8, rows, traces uint16, content []byte) {
		var d directory
		if err := d.read(data); err != nil {
			t.Fatal(err)
		}
		replaced := d.entry(int(part) % n)
		d.rows, d.traces = int(rows), int(traces)
		read(t, &pool, l, assemble(&d, func(e entry) []byte {
			if e == replaced {
				return content
			}
			return data[e.from : e.from+e.length]
		}))
	})
}

// entry returns the entry of a part by its number in the block.
func (d *directory) entry(i int) entry {
	if i < headParts {
		return d.heads[i]
	}
	return d.columns[i-headParts].entry
}
