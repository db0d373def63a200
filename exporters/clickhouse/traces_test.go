package clickhouse

import "testing"

// TestBatchSize checks the number of statements that read traces of some sizes: a large trace, or a
// short lack of memory, must not make all later traces cost a statement each.
func TestBatchSize(t *testing.T) {
	const small, large, plenty = 10 << 10, 18 << 20, maxTogether
	sizes := func(n int, size int64, more ...int64) (all []int64) {
		for range n {
			all = append(all, size)
		}
		return append(all, more...)
	}
	for name, c := range map[string]struct {
		sizes  []int64
		memory func(statement int) int64
		most   int // statements
	}{
		"small traces":      {sizes: sizes(600, small), most: 5},
		"large trace first": {sizes: append([]int64{large}, sizes(600, small)...), most: 20},
		"large trace later": {sizes: append(sizes(100, small, large), sizes(500, small)...), most: 25},
		"only large traces": {sizes: sizes(50, large), most: 60},
		"pairs do not fit":  {sizes: sizes(50, 9<<20), most: 60},
		"few fit together":  {sizes: sizes(600, 1<<20), most: 90},
		"lack of memory": {sizes: sizes(600, small), most: 20, memory: func(statement int) int64 {
			if statement == 2 {
				return small
			}
			return plenty
		}},
	} {
		next, statements := newBatchSize(), 0
		for left := c.sizes; len(left) > 0 && statements < 1000; {
			statements++
			limit := int64(plenty)
			if c.memory != nil {
				limit = c.memory(statements)
			}
			n, size := min(next.traces, len(left)), int64(0)
			for _, s := range left[:n] {
				if size += s; size > limit {
					break
				}
			}
			if n == 1 || size <= limit {
				left = left[n:]
				next.wasRead(n, size)
			} else {
				next.wasTooLarge(n, size)
			}
		}
		if statements > c.most {
			t.Errorf("%s: %d statements for %d traces, want at most %d", name, statements, len(c.sizes), c.most)
		}
	}
}
