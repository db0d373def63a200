package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/soak"
)

// TestMergeOfDamage checks that a flipped bit stops a merge, or costs only the rows that it makes
// unreadable.
func TestMergeOfDamage(t *testing.T) {
	golden := readGolden(t)
	sound := openTest(t, put(t, golden), "s")
	places := int64(soak.Rounds(t, 40, 10)) // in each part
	for _, p := range partsOf(t, sound) {
		if p.name == "trailer" || p.name == "directory" || p.kind == kindInfo {
			continue // cannot be opened
		}
		step := max(1, (p.to-p.from)/places)
		for at := p.from; at < p.to; at += step {
			data := bytes.Clone(golden)
			data[at] ^= 1 << (at % 8)
			damaged := openTest(t, put(t, data), "s")
			var readable []storedSpan
			needed := p.block >= 0 || p.kind == kindTables || p.kind == kindLayout || p.kind == kindBlocks
			if tables, err := damaged.Tables(); err == nil {
				for i := range damaged.Info().Blocks {
					readable = append(readable, readableRows(damaged, tables, i)...)
				}
			}
			checkMergeOfDamage(t, damaged, readable, needed)
			if t.Failed() {
				t.Fatalf("flipped a bit of byte %d, in %s", at, p.name)
			}
		}
	}
}

func readableRows(s *Segment, tables *rows.Tables, number int) (spans []storedSpan) {
	b, err := s.Open(context.Background(), number)
	if err != nil {
		return nil
	}
	defer b.Close()
	for row := range b.Len() {
		if span, err := spanOf(tables, b, row); err == nil {
			spans = append(spans, span)
		}
	}
	return spans
}

func checkMergeOfDamage(t *testing.T, damaged *Segment, readable []storedSpan, needed bool) {
	t.Helper()
	fsys, inputs := writeDir(t), []source.Source{damaged}
	_, err := Merge(fsys, "d/s", inputs, Meta{}, MergeOptions{})
	var d *source.DamageError
	if errors.As(err, &d) != needed || !needed && err != nil {
		t.Errorf("without OnDamage: %v", err)
	}
	calls := 0
	info, err := Merge(fsys, "d/s", inputs, Meta{}, MergeOptions{OnDamage: func(*source.DamageError) error { calls++; return nil }})
	if err != nil || calls > 0 != needed {
		t.Errorf("OnDamage was called %d times, %v", calls, err)
		return
	}
	if info.Rows != len(readable) || info.Unreadable != damaged.Info().Rows-info.Rows {
		t.Errorf("%d rows and %d damaged ones, want %d", info.Rows, info.Unreadable, len(readable))
	}
	checkSame(t, "the rest", readAll(t, fsys, "d/s"), readable)
}

// unreliable is a segment that reports no constants from a certain call on, like a segment that is
// temporarily unreadable.
type unreliable struct {
	*Segment
	known int
}

func (f *unreliable) Constant(shape uint32, position int) (rows.Cell, bool) {
	if f.known--; f.known < 0 {
		return rows.Cell{}, false
	}
	return f.Segment.Constant(shape, position)
}

// TestMergeWithUnreliableConstants checks that a merge fails or produces the correct spans if
// constants become unknown.
func TestMergeWithUnreliableConstants(t *testing.T) {
	s, fsys := randomSample(t, 5, 40), writeDir(t)
	in := split(t, fsys, s, 1, rand.New(rand.NewPCG(1, 1)))[0].(*Segment)
	failed, succeeded := 0, 0
	for known := 0; succeeded == 0; known += 1 + known/3 {
		f := &unreliable{in, known}
		if _, err := Merge(fsys, "d/s", []source.Source{f}, Meta{}, MergeOptions{}); err != nil {
			failed++
			continue
		}
		if f.known >= 0 {
			succeeded++
		}
		checkSame(t, fmt.Sprintf("after %d questions", known), readAll(t, fsys, "d/s"), s.spans)
	}
	if failed == 0 {
		t.Error("no merge failed")
	}
}
