package segment

import (
	"math"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// zoneSample returns the zones of slightly more blocks than a page has.
func zoneSample() (list []block.Zone, blocks []blockLocation) {
	for i := range zonePageBlocks + 3 {
		z := block.Zone{BlockInfo: source.BlockInfo{Rows: i + 1, MinStart: uint64(i), MaxStart: math.MaxUint64}}
		for shape := uint32(i % 3); shape < 700; shape += uint32(i) + 1 {
			z.Shapes = append(z.Shapes, source.BlockShape{Shape: shape, Longest: source.Step(i)})
		}
		list, blocks = append(list, z), append(blocks, blockLocation{rows: i + 1})
	}
	list[5].Shapes = nil
	return list, blocks
}

// TestZones checks that zones round-trip, compressed or not, and that truncation is detected.
func TestZones(t *testing.T) {
	want, blocks := zoneSample()
	var w zoneWriter
	for i := range want {
		w.add(&want[i])
	}
	for _, zip := range []*compressor{nil, newCompressor(zstd.SpeedDefault)} {
		bounds, shapes := w.sections(zip)
		z, err := readBounds(bounds, blocks, int64(len(shapes)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if z.list[i] != want[i].BlockInfo {
				t.Errorf("block %d: %+v", i, z.list[i])
			}
			got, err := shapesOf(z, shapes, i, 700)
			if err != nil || !slices.Equal(got, want[i].Shapes) {
				t.Errorf("block %d: %v, %v", i, got, err)
			}
		}
		if _, err := shapesOf(z, shapes, 0, 699); err == nil {
			t.Error("no error for an undefined shape")
		}
		for n := range bounds {
			if _, err := readBounds(bounds[:n], blocks, int64(len(shapes))); err == nil {
				t.Errorf("no error for %d of %d bytes", n, len(bounds))
			}
		}
		for at := range shapes {
			shapes[at] ^= 1
			if _, err := shapesOf(z, shapes, 0, 700); err == nil && at < z.pages[0].length {
				t.Errorf("changed byte %d of the page is not detected", at)
			}
			shapes[at] ^= 1
		}
		if _, err := readBounds(bounds, blocks, int64(len(shapes))-1); err == nil {
			t.Error("no error for a page outside of the section")
		}
	}
}

func shapesOf(z *zones, section []byte, number, shapes int) ([]source.BlockShape, error) {
	p := z.pages[number/zonePageBlocks]
	raw, err := new(scratch).unpackPage(section[p.offset:][:p.length], p.raw)
	if err != nil {
		return nil, err
	}
	open := zonePageData{raw: raw}
	return open.shapes(nil, number%zonePageBlocks, shapes)
}

// FuzzZones checks that any bytes are rejected or decode to values within bounds.
func FuzzZones(f *testing.F) {
	list, _ := zoneSample()
	for _, zip := range []*compressor{nil, newCompressor(zstd.SpeedDefault)} {
		var w zoneWriter
		for i := range list[:4] {
			w.add(&list[i])
		}
		bounds, shapes := w.sections(zip)
		f.Add(bounds, shapes)
	}
	f.Add([]byte{4}, []byte{})
	f.Fuzz(func(t *testing.T, bounds, shapes []byte) {
		const all = 700
		blocks := make([]blockLocation, 4)
		z, err := readBounds(bounds, blocks, int64(len(shapes)))
		if err != nil {
			return
		}
		for i := range blocks {
			got, _ := shapesOf(z, shapes, i, all)
			for _, s := range got {
				if s.Shape >= all {
					t.Fatalf("shape %d of %d", s.Shape, all)
				}
			}
		}
	})
}
