package explain

import (
	"math"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// base holds the traces among which a condition is compared: traces that make a call on which it
// can be met, in strata of traces with the same root operation. A value that all calls of an
// operation have says only that the operation is called, so it does not differ within a base.
type base struct {
	stratum []int32 // of each counted trace; -1: not in the base
	of      []pair  // by stratum
}

// newBase returns an empty base with a number of strata for each root operation.
func (c *counter) newBase(perRoot int) *base {
	b := &base{stratum: make([]int32, len(c.traces)), of: make([]pair, perRoot*len(c.calls.operations))}
	for i := range b.stratum {
		b.stratum[i] = -1
	}
	return b
}

func (b *base) add(c *counter, traces []uint32) {
	for _, t := range traces {
		if b.stratum[t] < 0 {
			b.stratum[t] = c.traces[t].root
			b.of[b.stratum[t]].add(c.traces[t].selected)
		}
	}
}

// bases makes the bases of the lines of a key.
type bases struct {
	c       *counter
	key     *key
	all     *base
	byCalls map[string]*base
}

// maxTimes limits the strata by the number of spans with a key. Where the highest value of a trace
// counts, traces with different numbers of such spans are compared separately up to this number.
const maxTimes = 4

// of returns the base of a line.
func (b *bases) of(l *attributeLine) *base {
	if l.values.op == between {
		out := b.c.newBase(maxTimes)
		for i, t := range b.key.traces {
			out.stratum[t] = b.c.traces[t].root*maxTimes + int32(min(b.key.times[i], maxTimes)) - 1
			out.of[out.stratum[t]].add(b.c.traces[t].selected)
		}
		return out
	}
	if b.key.place == tracestore.ResourceAttribute {
		if b.all == nil {
			b.all = b.c.newBase(1)
			if service := b.c.keys[keyID{place: tracestore.Service, service: b.key.service}]; service != nil {
				b.all.add(b.c, service.traces)
			}
		}
		return b.all
	}
	places := l.calls
	if places == nil {
		places = b.key.calls
	}
	id := make([]byte, 0, 4*len(places))
	for _, p := range places {
		id = append(id, byte(p), byte(p>>8), byte(p>>16), byte(p>>24))
	}
	if known := b.byCalls[string(id)]; known != nil {
		return known
	}
	out := b.c.newBase(1)
	for _, p := range places {
		out.add(b.c, b.c.calls.list[p].traces)
	}
	b.byCalls[string(id)] = out
	return out
}

// split counts traces by stratum.
func (b *base) split(c *counter, traces []uint32) []pair {
	out := make([]pair, len(b.of))
	for _, t := range traces {
		if s := b.stratum[t]; s >= 0 {
			out[s].add(c.traces[t].selected)
		}
	}
	return out
}

// comparison is the result of comparing a condition among traces of the same strata.
type comparison struct {
	// selected and rest are the shares of the two sides that meet the condition: means over the
	// strata with traces of both sides, weighted by precision.
	selected, rest float64
	covered        int // selected traces in these strata
	probability    float64
}

func (c *comparison) difference() float64 { return c.selected - c.rest }

// compare compares the shares has/of in each stratum by the method of Mantel and Haenszel.
func compare(has, of []pair) (out comparison) {
	weights := 0.0
	for s := range of {
		if of[s].selected == 0 || of[s].rest == 0 {
			continue
		}
		n, m := float64(of[s].selected), float64(of[s].rest)
		w := n * m / (n + m)
		weights += w
		out.selected += w * float64(has[s].selected) / n
		out.rest += w * float64(has[s].rest) / m
		out.covered += of[s].selected
	}
	if weights == 0 {
		out.probability = 1
		return out
	}
	out.selected, out.rest = out.selected/weights, out.rest/weights
	out.probability = stratifiedTest(has, of)
	return out
}

// stratifiedTest returns the p-value of a difference in the same direction in all strata between
// the shares has/of: the two-sided test of Cochran, Mantel and Haenszel. It uses the normal
// distribution, or the exact one if the numbers are small.
func stratifiedTest(has, of []pair) float64 {
	observed, expected, variance, smaller := 0.0, 0.0, 0.0, 0.0
	for s := range of {
		n, m := float64(of[s].selected), float64(of[s].rest)
		if n == 0 || m == 0 {
			continue
		}
		all, with := n+m, float64(has[s].selected+has[s].rest)
		observed += float64(has[s].selected)
		expected += n * with / all
		variance += n * m * with * (all - with) / (all * all * max(all-1, 1))
		smaller += min(n, m) * min(with, all-with) / all
	}
	switch {
	case variance == 0:
		return 1
	case smaller < fewExpected:
		return exactTest(has, of)
	}
	return math.Erfc(math.Abs(observed-expected) / math.Sqrt(2*variance))
}
