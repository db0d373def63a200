package loadbalancing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func addresses(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("10.0.0.%d:4317", i)
	}
	slices.Sort(all)
	return all
}

const ringKeys = 100_000

func assign(r ring, addresses []string) []string {
	all := make([]string, ringKeys)
	for i := range all {
		all[i] = addresses[r.pick(traceKey(traceID(i)))]
	}
	return all
}

// Every backend has its share of the keys: the standard deviation is as for a random assignment,
// 2.3 % for 50 backends and 100,000 keys.
func TestRingBalance(t *testing.T) {
	for _, n := range []int{2, 3, 5, 10, 50} {
		list := addresses(n)
		counts := map[string]int{}
		for _, a := range assign(newRing(list), list) {
			counts[a]++
		}
		mean := float64(ringKeys) / float64(n)
		sum := 0.0
		for _, a := range list {
			sum += (float64(counts[a]) - mean) * (float64(counts[a]) - mean)
		}
		deviation := math.Sqrt(sum / float64(n))
		t.Logf("%d backends: mean %.0f keys, standard deviation %.2f %%", n, mean, 100*deviation/mean)
		if random := math.Sqrt(mean); deviation > 2*random {
			t.Errorf("%d backends: standard deviation %.0f keys; a random assignment has %.0f", n, deviation, random)
		}
	}
}

// Only keys of a backend that went, or that belong to a backend that came, move: 1/n of all.
func TestRingMovement(t *testing.T) {
	for _, n := range []int{2, 3, 10, 50} {
		large := addresses(n)
		gone := n / 2
		small := slices.Delete(slices.Clone(large), gone, gone+1)
		before, after := assign(newRing(large), large), assign(newRing(small), small)
		moved := 0
		for i := range before {
			if before[i] == after[i] {
				continue
			}
			moved++
			if before[i] != large[gone] {
				t.Fatalf("key %d moved from %s to %s, but %s went", i, before[i], after[i], large[gone])
			}
		}
		t.Logf("%d backends, one goes: %.2f %% of the keys move; 1/n is %.2f %%", n, 100*float64(moved)/ringKeys, 100/float64(n))
		if share := float64(ringKeys) / float64(n); float64(moved) > share+4*math.Sqrt(share) {
			t.Errorf("%d backends: %d keys moved; 1/n is %.0f", n, moved, share)
		}
	}
}

// The order of a response does not matter.
func TestRingOrder(t *testing.T) {
	list := addresses(7)
	shuffled := slices.Clone(list)
	rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	if !slices.Equal(assign(newRing(list), list), assign(newRing(shuffled), shuffled)) {
		t.Error("assignment depends on the order of the backends")
	}
}

// The assignment is part of the contract between processes of different versions.
func TestRingIsStable(t *testing.T) {
	list := []string{"a:4317", "b:4317", "c:4317"}
	r, got := newRing(list), ""
	for i := range 16 {
		got += list[r.pick(traceKey(traceID(i)))][:1]
	}
	got += " " + list[r.pick(hashText(hashStart, "checkout").key())][:1]
	if want := "aacbbababbccbabb c"; got != want {
		t.Errorf("assignment %q, want %q", got, want)
	}
}

func BenchmarkRing(b *testing.B) {
	for _, n := range []int{2, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newRing(addresses(n))
			sum := 0
			for i := range b.N {
				sum += r.pick(traceKey(traceID(i)))
			}
			if sum < 0 {
				b.Error("impossible")
			}
		})
	}
}
