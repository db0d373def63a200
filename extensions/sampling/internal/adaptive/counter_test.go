package adaptive

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

func root(operation, sampler string, param float64) sampling.Root {
	return sampling.Root{Service: "s", Operation: operation, Sampler: sampler, Param: param}
}

func TestCounter(t *testing.T) {
	c := NewCounter(3, 1./60)
	c.Observe("", []sampling.Root{root("a", "probabilistic", 0.5), root("a", "probabilistic", 0.5000001), root("a", "lowerbound", 0.25),
		root("b", "ratelimiting", 0.016666666), root("b", "ratelimiting", 7), root("c", "const", 1), root("a", "probabilistic", 0),
		root("a", "probabilistic", 2)})
	c.Observe("tenant", []sampling.Root{root("a", "probabilistic", 1)}) // the fourth operation
	c.Observe("", []sampling.Root{root("", "const", 1), root(strings.Repeat("x", sampling.MaxName+1), "const", 1),
		root("\xff", "const", 1)})
	rows := c.Take()
	slices.SortFunc(rows, func(a, b sampling.ThroughputRow) int { return compare(a.OperationKey, b.OperationKey) })
	const want = "[{{ s a} [{0.5 2} {0.25 0}] 1} {{ s b} [] 1} {{ s c} [] 0}]"
	if got := fmt.Sprint(rows); got != want || c.Unobserved() != 4 {
		t.Errorf("%s, %d not observed\nwant %s, 4", got, c.Unobserved(), want)
	}
	if rows := c.Take(); len(rows) != 0 {
		t.Errorf("counted twice: %v", rows)
	}
	c.Observe("tenant", []sampling.Root{root("a", "probabilistic", 1)})
	if rows := c.Take(); len(rows) != 1 || rows[0].Tenant != "tenant" {
		t.Errorf("unused operations were not removed: %v", rows)
	}
}

// Long names reduce the number of operations, so that the memory stays limited. Unused operations
// are removed.
func TestLongNames(t *testing.T) {
	c := NewCounter(100, 1)
	long := func(first rune) sampling.Root {
		return root(string(first)+strings.Repeat("x", sampling.MaxName-1), "const", 1)
	}
	for first := 'a'; first <= 'z'; first++ {
		c.Observe("", []sampling.Root{long(first)})
	}
	const want = 100 * averageName / (sampling.MaxName + 1)
	if n := len(c.Take()); n != want || c.Unobserved() != 26-want {
		t.Errorf("%d counted, %d not", n, c.Unobserved())
	}
	c.Take()
	c.Observe("", []sampling.Root{long('z')})
	if n := len(c.Take()); n != 1 || c.names != sampling.MaxName+1 {
		t.Errorf("%d counted, with names of %d bytes", n, c.names)
	}
	c.Observe("\xff", []sampling.Root{root("o", "const", 1)})
	if n := len(c.Take()); n != 0 {
		t.Error("counted a tenant whose name is not valid UTF-8")
	}
}

// The number of distinct probabilities is limited, but all traces are counted.
func TestManyProbabilities(t *testing.T) {
	c := NewCounter(1, 1)
	for i := range 100 {
		c.Observe("", []sampling.Root{root("a", "probabilistic", float64(i+1)/100)})
	}
	n := int64(0)
	row := c.Take()[0]
	for _, s := range row.Counts {
		n += s.Count
	}
	if len(row.Counts) != sampling.MaxProbabilities || n != 100 {
		t.Errorf("%v", row.Counts)
	}
}

func BenchmarkObserve(b *testing.B) {
	c := NewCounter(1000, 1./60)
	roots := make([]sampling.Root, 256)
	for i := range roots {
		roots[i] = root(fmt.Sprint("operation ", i%100), "probabilistic", 0.125)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Observe("", roots)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(roots)), "ns/root")
}
