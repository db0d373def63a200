package explain

import (
	"math"
	"slices"
	"sort"
)

// numberLines returns a line for each range of numbers with a tenth of the other traces, or fewer
// lines if many numbers are equal. It returns none if a value is not a number, or if too few of the
// other traces have the key.
func (c *counter) numberLines(k *key) []*attributeLine {
	if k.text {
		return nil
	}
	var rest []float64
	for i, t := range k.traces {
		if !c.traces[t].selected {
			rest = append(rest, k.numbers[i])
		}
	}
	if len(rest) < minTraces {
		return nil
	}
	bounds, ranks := decileBounds(rest)
	out := make([]*attributeLine, len(bounds)+1)
	for i := range out {
		out[i] = &attributeLine{key: k, values: condition{op: between, low: math.Inf(-1), high: math.Inf(1), first: 1, last: deciles}}
		if i > 0 {
			out[i].values.first = ranks[i-1] + 1
		}
		if i < len(bounds) {
			out[i].values.last = ranks[i]
		}
		out[i].values.observed = [2]float64{math.Inf(1), math.Inf(-1)}
	}
	for i, t := range k.traces {
		n := k.numbers[i]
		line := out[sort.SearchFloat64s(bounds, n)]
		line.traces = append(line.traces, t)
		line.has.add(c.traces[t].selected)
		line.values.observed = [2]float64{min(line.values.observed[0], n), max(line.values.observed[1], n)}
	}
	for i, line := range out {
		line.values.setBounds(i == 0, i == len(bounds))
	}
	return slices.DeleteFunc(out, func(l *attributeLine) bool { return len(l.traces) == 0 })
}

// decileBounds returns the highest number of each decile except the last one, without duplicates,
// and for each the number of deciles up to it.
func decileBounds(numbers []float64) (bounds []float64, ranks []int) {
	slices.Sort(numbers)
	for d := 1; d < deciles; d++ {
		bound := numbers[(len(numbers)*d+deciles-1)/deciles-1]
		if n := len(bounds); n > 0 && bounds[n-1] == bound {
			ranks[n-1] = d
			continue
		}
		bounds, ranks = append(bounds, bound), append(ranks, d)
	}
	return bounds, ranks
}

// setBounds sets the bounds to the observed numbers. The lowest and the highest range have only one
// bound.
func (v *condition) setBounds(lowest, highest bool) {
	if !lowest {
		v.low = v.observed[0]
	}
	if !highest {
		v.high = v.observed[1]
	}
}

// widen joins a range with neighbors whose shares clearly differ in the same direction.
func (c *counter) widen(best *attributeLine, lines []*attributeLine, b *bases) *attributeLine {
	var ranges []*attributeLine
	for _, line := range lines {
		if line.values.op == between {
			ranges = append(ranges, line)
		}
	}
	at := slices.Index(ranges, best)
	joins := func(l *attributeLine) bool {
		return l.difference()*best.difference() > 0 && l.probability < falseDiscoveryRate
	}
	from, to := at, at
	for from > 0 && joins(ranges[from-1]) {
		from--
	}
	for to < len(ranges)-1 && joins(ranges[to+1]) {
		to++
	}
	out := *best
	out.traces, out.has = nil, pair{}
	for _, l := range ranges[from : to+1] {
		out.traces = append(out.traces, l.traces...)
		out.has = pair{out.has.selected + l.has.selected, out.has.rest + l.has.rest}
	}
	slices.Sort(out.traces)
	first, last := ranges[from].values, ranges[to].values
	out.values.low, out.values.high, out.values.first, out.values.last = first.low, last.high, first.first, last.last
	out.values.observed = [2]float64{first.observed[0], last.observed[1]}
	out.compare(b, nil)
	out.score = best.score * math.Abs(out.difference()) / math.Abs(best.difference())
	return &out
}
