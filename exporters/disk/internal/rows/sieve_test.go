package rows

import (
	"math/rand/v2"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestSieve(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 100, 5000} {
		v := NewSieve(n)
		for range 2 {
			var heads []Head
			for i := range n {
				h := Head{TraceID: otlpdata.TraceID{byte(i >> 8)}, SpanID: otlpdata.SpanID{byte(i)}, Start: uint64(i / 300)}
				if heads = append(heads, h); v.Again(v.Hash(&h)) {
					t.Fatalf("%d of %d: came before", i, n)
				}
			}
			for i := range heads {
				if !v.Again(v.Hash(&heads[i])) {
					t.Fatalf("%d of %d: did not come before", i, n)
				}
			}
			v.Reset()
		}
	}
}

// TestSieveIsFull: it then says of all rows that they may be duplicates, which is always right.
func TestSieveIsFull(t *testing.T) {
	v := NewSieve(100)
	again := 0
	for range 1000 {
		if v.Again(rand.Uint64()) {
			again++
		}
	}
	if again < 1000-256 || again > 900 {
		t.Errorf("%d of 1000 came before", again)
	}
}
