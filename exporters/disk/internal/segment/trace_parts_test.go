package segment

import (
	"os"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// TestFilesWithoutTraceParts checks that files without trace parts are valid, and that their parts
// are those of the trace index without bounds.
func TestFilesWithoutTraceParts(t *testing.T) {
	for old, now := range map[string]string{
		"testdata/v1-before-trace-parts.segment": goldenFile, "testdata/v1-merged-before-trace-parts.segment": goldenMerge,
	} {
		before, after := openFile(t, old), openFile(t, now)
		if err := before.Verify(t.Context(), func(part string, err error) {
			if err != nil {
				t.Errorf("%s: %s: %v", old, part, err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		want := tracePartsOf(t, after)
		got := tracePartsOf(t, before)
		if len(got) != len(want) || len(got) < 3 {
			t.Fatalf("%s: %d parts, want %d", old, len(got), len(want))
		}
		for i, p := range got {
			if p != (source.TracePart{Hash: want[i].Hash, Block: want[i].Block}) {
				t.Errorf("%s: %+v, want that of %+v without bounds", old, p, want[i])
			}
		}
	}
}

func openFile(t *testing.T, path string) *Segment {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return openTest(t, put(t, b), "s")
}

// tracePartsOf lists the parts of a segment.
func tracePartsOf(t *testing.T, s *Segment) []source.TracePart {
	t.Helper()
	r, err := s.TraceParts()
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.Before(t.Context(), nil, 1<<source.TraceHashBits)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != r.Parts() {
		t.Errorf("%d parts, but Parts returned %d", len(list), r.Parts())
	}
	return list
}
