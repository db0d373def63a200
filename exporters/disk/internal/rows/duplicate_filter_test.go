package rows

import (
	"math/rand/v2"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestDuplicateFilter(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 100, 5000} {
		f := NewDuplicateFilter(n)
		for range 2 {
			var heads []Head
			for i := range n {
				h := Head{TraceID: otlpdata.TraceID{byte(i >> 8)}, SpanID: otlpdata.SpanID{byte(i)}, Start: uint64(i / 300)}
				if heads = append(heads, h); f.Seen(f.Hash(&h)) {
					t.Fatalf("row %d of %d: already seen", i, n)
				}
			}
			for i := range heads {
				if !f.Seen(f.Hash(&heads[i])) {
					t.Fatalf("row %d of %d: not seen", i, n)
				}
			}
			f.Reset()
		}
	}
}

// TestDuplicateFilterFull checks that a full filter reports every row.
func TestDuplicateFilterFull(t *testing.T) {
	f := NewDuplicateFilter(100)
	seen := 0
	for range 1000 {
		if f.Seen(rand.Uint64()) {
			seen++
		}
	}
	if seen < 1000-256 || seen > 900 {
		t.Errorf("%d of 1000 rows were reported as seen", seen)
	}
}
