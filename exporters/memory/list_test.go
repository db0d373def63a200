package memory

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// TestListAgainstSlice adds and removes rows in several orders and compares with a sorted slice.
func TestListAgainstSlice(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	orders := map[string]func(i int) uint64{
		"ascending":  func(i int) uint64 { return uint64(i) },
		"descending": func(i int) uint64 { return math.MaxUint64 - uint64(i) },
		"equal":      func(int) uint64 { return 7 },
		"random":     func(int) uint64 { return rnd.Uint64N(500) },
		"zigzag":     func(i int) uint64 { return uint64(i ^ 63) },
	}
	for name, start := range orders {
		var l list
		var want []*row
		for i := range 3000 {
			r := &row{trace: &trace{id: otlpdata.TraceID{byte(rnd.IntN(4))}}, start: start(i), seq: uint64(i + 1)}
			if !l.add(r) || l.add(r) {
				t.Fatalf("%s: add must return true only once for a row", name)
			}
			want = append(want, r)
			if i%3 == 2 { // the oldest or any row
				j := []int{0, rnd.IntN(len(want))}[rnd.IntN(2)]
				if !l.remove(want[j]) || l.remove(want[j]) {
					t.Fatalf("%s: remove must return true only once for a row", name)
				}
				want = slices.Delete(want, j, j+1)
			}
		}
		checkList(t, name, &l, want)
		for len(want) > 0 {
			j := rnd.IntN(len(want))
			l.remove(want[j])
			want = slices.Delete(want, j, j+1)
			if len(want)%500 == 0 {
				checkList(t, name, &l, want)
			}
		}
		if l.n != 0 || len(l.blocks) != 0 {
			t.Errorf("%s: an empty list has %d rows in %d blocks", name, l.n, len(l.blocks))
		}
	}
}

// checkList reads the list from every tenth row on, and checks its invariants.
func checkList(t *testing.T, name string, l *list, rows []*row) {
	t.Helper()
	want := slices.SortedFunc(slices.Values(rows), func(a, b *row) int { return b.compare(a.position()) })
	if l.n != len(want) {
		t.Fatalf("%s: %d rows, want %d", name, l.n, len(want))
	}
	end := position{start: math.MaxUint64, seq: math.MaxUint64, id: maxID()}
	for i := 0; i < len(want); i += 10 {
		if got := l.below(end, nil, 25); !slices.Equal(got, want[i:min(i+25, len(want))]) {
			t.Fatalf("%s: the rows from %d on differ", name, i)
		}
		end = want[min(i+9, len(want)-1)].position()
	}
	for _, b := range l.blocks {
		if len(b) == 0 || len(b) > blockRows {
			t.Fatalf("%s: a block of %d rows", name, len(b))
		}
	}
	if limit := 4*len(want)/blockRows + 2; len(l.blocks) > limit {
		t.Errorf("%s: %d blocks for %d rows, want at most %d", name, len(l.blocks), len(want), limit)
	}
}
