package clickhouse

import (
	"iter"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestSlices checks that the slices of a window cover it without gaps and overlaps, whatever is
// known about the number of spans.
func TestSlices(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var hours []hourSpans
		for h := 500 + g.Uint64N(100); h > 400 && g.IntN(20) > 0; h -= 1 + g.Uint64N(9) {
			hours = append(hours, hourSpans{h, g.Uint64N(20 * firstSlice)})
		}
		from, to := g.Uint64N(450*hourLength), 450*hourLength+g.Uint64N(200*hourLength)
		if g.IntN(4) == 0 {
			from, to = 0, math.MaxUint64
		}
		next, n := to, 0
		for first, last := range slicesOf(g, hours, from, to) {
			if last != next || first > last || first < from {
				t.Fatalf("slice from %d to %d, want one that ends at %d and begins at %d or later; hours %v", first, last, next, from, hours)
			}
			next = first - 1
			if n++; n > 1000 {
				t.Fatalf("window from %d to %d: more than %d slices; hours %v", from, to, n-1, hours)
			}
		}
		if next != from-1 {
			t.Fatalf("slices of the window from %d to %d end at %d; hours %v", from, to, next+1, hours)
		}
	}
}

// TestFirstSlice checks that the first slice has about the number of spans that is wanted.
func TestFirstSlice(t *testing.T) {
	hours := []hourSpans{{11, 4 * firstSlice}, {10, 4 * firstSlice}}
	var sizes []uint64
	plan := newSlicer(hours, 0, 12*hourLength-1)
	for first, last, ok := plan.next(); ok; first, last, ok = plan.next() {
		sizes = append(sizes, (last-first)/(hourLength/100))
		plan.found(0, 20)
	}
	if len(sizes) != 2 || sizes[0] < 24 || sizes[0] > 25 {
		t.Errorf("slices of %v hundredths of an hour, want 25 and the rest", sizes)
	}
}

// TestSizesOfSlices checks that the size of a slice depends on what the one before it found.
func TestSizesOfSlices(t *testing.T) {
	for _, c := range []struct {
		results, missing int
		want             float64 // in first slices
	}{
		{0, 20, sliceGrowth}, {20, 0, sliceGrowth}, {20, -20, sliceGrowth}, {1, 19, sliceGrowth},
		{5, 15, 3 * sliceMargin}, {10, 10, sliceMargin}, {19, 1, float64(minSlice) / firstSlice},
	} {
		s := newSlicer(nil, 0, 1)
		if s.found(c.results, c.missing); math.Abs(s.size/firstSlice-c.want) > 1e-9 {
			t.Errorf("%d found, %d missing: %g times the size, want %g", c.results, c.missing, s.size/firstSlice, c.want)
		}
	}
}

// slicesOf returns the slices of a window, with the sizes of a search that finds results at
// random.
func slicesOf(g *rand.Rand, hours []hourSpans, from, to uint64) iter.Seq2[uint64, uint64] {
	return func(yield func(uint64, uint64) bool) {
		plan := newSlicer(hours, from, to)
		for first, last, ok := plan.next(); ok && yield(first, last); first, last, ok = plan.next() {
			plan.found(g.IntN(3), g.IntN(20))
		}
	}
}

func TestHasService(t *testing.T) {
	service := tracestore.Cond{Field: tracestore.Field{Place: tracestore.Service}, Value: tracestore.Text("a")}
	other := tracestore.Cond{Field: tracestore.Field{Place: tracestore.Name}, Value: tracestore.Text("a")}
	differs := service
	differs.Op = tracestore.Ne
	for i, c := range []struct {
		e    tracestore.Expr
		want bool
	}{
		{nil, false}, {service, true}, {other, false}, {differs, false}, {tracestore.And{other, service}, true},
		{tracestore.And{other, tracestore.And{service}}, true}, {tracestore.Or{service, service}, false}, {tracestore.Not{Expr: service}, false},
	} {
		if got := hasService(c.e); got != c.want {
			t.Errorf("case %d: %t, want %t", i, got, c.want)
		}
	}
}

// TestOutdatedPlan checks that nothing is left of an outdated plan, to which a search would add the
// numbers of the next one.
func TestOutdatedPlan(t *testing.T) {
	var p plans
	now := time.Unix(1_800_000_000, 0)
	p.put(planKey{}, []hourSpans{{1, 2}}, now)
	if hours, ok := p.get(planKey{}, now.Add(planTime-1)); !ok || len(hours) != 1 {
		t.Errorf("got %v, %v", hours, ok)
	}
	if hours, ok := p.get(planKey{}, now.Add(planTime)); ok || hours != nil {
		t.Errorf("got %v, %v", hours, ok)
	}
}
