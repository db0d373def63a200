package explain

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	// maxInputLines and maxOutcomeLines are the maximum numbers of lines of the list of attributes.
	maxInputLines, maxOutcomeLines = 8, 4
	// minValueTraces is the minimum number of traces with a value. The shares of rarer values
	// cannot differ significantly; testing them would only hide others.
	minValueTraces = 5
	// sameTraces is the minimum share of traces that two lines must have in common, of all traces
	// of either, to be shown as one.
	sameTraces = 0.95
	// Of two lines with the same traces, the one with the lower score may name both if its score is
	// at least sameScore times the other score.
	sameScore = 0.9
	// minScore is the minimum score of a line. Attributes of fewer selected traces do not explain
	// the selection.
	minScore = 0.05
	// dependentShare is the minimum difference of a line that depends on another line, relative to
	// the other line's difference.
	dependentShare = 0.5
	// preferred is the factor for the score of a condition that selected traces meet more often
	// than the others, because it is easier to understand than the opposite.
	preferred = 1.1
	// deciles is the number of ranges with the same number of traces of the rest.
	deciles = 10
)

// attributeLine is an attribute whose share differs between the selected traces and the others.
type attributeLine struct {
	key    *key
	kind   attributeKind
	values condition
	traces []uint32 // that meet the condition
	calls  []int32  // calls on which they do; nil: calls of the key
	has    pair     // the number of traces
	comparison
	score float64
	same  []*attributeLine // lines with (nearly) the same traces
	with  *attributeLine   // an earlier line that explains this one's difference; nil: none
}

// condition is a test of the values of a key.
type condition struct {
	op       conditionOp
	text     string  // for equals
	low      float64 // for between, inclusive; -Inf and +Inf are no bounds
	high     float64
	first    int // for between: the deciles of the rest, from 1 to 10
	last     int
	observed [2]float64 // for between: the lowest and the highest number in the sample
}

type conditionOp uint8

const (
	equals conditionOp = iota
	exists
	between
)

// attributeList is the ranked list of attributes.
type attributeList struct {
	lines   []*attributeLine // inputs, then outcomes, by score; dependent inputs last
	tested  int              // number of keys
	differ  int              // keys whose shares differ significantly, and enough to matter
	omitted bool             // some keys were not counted
}

// rankAttributes returns the attributes that distinguish selected traces from the others.
//
// For each key, several conditions are tested by comparing the shares of traces that meet them: the
// key has a certain value, the key exists and, for numbers, the highest one is in a certain decile
// of the others. A comparison includes only traces that make a call on which the condition can be
// met, and only within the same root operation (see base). The probability of a key is the lowest
// probability of its conditions multiplied by their number (Bonferroni). discoveries selects the
// keys that differ. They are sorted by score: the largest difference of shares times the share of
// selected traces that were compared. Inputs are listed before outcomes.
func (c *counter) rankAttributes() attributeList {
	c.endTrace()
	out := attributeList{omitted: c.omitted}
	of := c.sides()
	if of.selected < minTraces || of.rest < minTraces {
		return out
	}
	var lines []*attributeLine
	var probabilities []float64
	for _, k := range c.sortedKeys() {
		if c.chosenBy[tracestore.Field{Place: k.place, Key: k.key}] {
			continue // it differs by definition
		}
		if line, p := c.bestLine(k, of); line != nil {
			lines, probabilities = append(lines, line), append(probabilities, p)
		}
	}
	out.tested = len(lines)
	var kinds [2][]*attributeLine
	for i, differs := range discoveries(probabilities, attributeRate) {
		if differs && lines[i].score >= minScore {
			lines[i].kind = c.kindOf(lines[i].key)
			kinds[lines[i].kind] = append(kinds[lines[i].kind], lines[i])
			out.differ++
		}
	}
	for kind, most := range [2]int{input: maxInputLines, outcome: maxOutcomeLines} {
		some := kinds[kind]
		slices.SortStableFunc(some, func(a, b *attributeLine) int { return cmp.Compare(b.score, a.score) })
		some = fold(some)
		if attributeKind(kind) == input {
			some = c.independentFirst(some)
		}
		out.lines = append(out.lines, some[:min(len(some), most)]...)
	}
	return out
}

// sides returns the number of counted traces.
func (c *counter) sides() (of pair) {
	for _, t := range c.traces {
		of.add(t.selected)
	}
	return of
}

// bestLine returns the condition on a key that distinguishes the traces best, and the probability
// that the key differs so much by chance. best is nil if there is nothing to test.
func (c *counter) bestLine(k *key, of pair) (best *attributeLine, p float64) {
	if c.namesCall(k) {
		return nil, 1
	}
	lines := slices.Concat(c.valueLines(k), c.numberLines(k))
	if line := c.existence(k, lines); line != nil {
		lines = append(lines, line)
	}
	b := bases{c: c, key: k, byCalls: make(map[string]*base)}
	numbers := c.valuesOfTraces(k)
	for _, line := range lines {
		line.compare(&b, numbers)
	}
	// Where a condition holds for all traces, or for none, there is nothing to compare.
	lines = slices.DeleteFunc(lines, func(l *attributeLine) bool { return l.difference() == 0 })
	p = 1
	for _, line := range lines {
		probability := line.probability * float64(len(lines))
		p = min(p, probability)
		if line.score = math.Abs(line.difference()) * shareOf(line.covered, of.selected); probability > attributeRate {
			line.score = 0
		}
		if best == nil || line.better(best) {
			best = line
		}
	}
	if best != nil && best.values.op == between {
		best = c.widen(best, lines, &b)
	}
	return best, p
}

// compare compares the traces that meet the condition with the others. values is the number of
// values of the key that each trace has.
func (l *attributeLine) compare(b *bases, values []int) {
	in := b.of(l)
	has := in.split(b.c, l.traces)
	l.comparison = compare(has, in.of)
	if l.values.op != equals || values == nil {
		return
	}
	// Traces with more spans have more values of a key, which only reflects their size. Therefore,
	// the share of the value among all values must differ as well.
	of := make([]pair, len(in.of))
	for t, s := range in.stratum {
		if s >= 0 {
			of[s].addTimes(b.c.traces[t].selected, max(values[t], 1))
		}
	}
	if among := compare(has, of); among.difference()*l.difference() <= 0 {
		l.comparison.probability = 1
	} else {
		l.comparison.probability = max(l.comparison.probability, among.probability)
	}
}

// better reports whether to show a line rather than another line of the same key.
func (l *attributeLine) better(than *attributeLine) bool {
	value := func(l *attributeLine) float64 {
		if l.difference() > 0 {
			return l.score * preferred
		}
		return l.score
	}
	return value(l) > value(than)
}

// valuesOfTraces returns the number of values of a key that each trace has, or nil if none has
// several.
func (c *counter) valuesOfTraces(k *key) []int {
	out, several := make([]int, len(c.traces)), false
	for _, v := range k.values {
		for _, t := range v.traces {
			out[t]++
			several = several || out[t] > 1
		}
	}
	if !several {
		return nil
	}
	return out
}

// valueLines returns a line for each value that enough traces have, sorted by value.
func (c *counter) valueLines(k *key) (out []*attributeLine) {
	for text, v := range k.values {
		if len(v.traces) >= minValueTraces {
			values := condition{op: equals, text: text}
			out = append(out, &attributeLine{key: k, values: values, traces: v.traces, calls: v.calls, has: c.split(v.traces)})
		}
	}
	slices.SortFunc(out, func(a, b *attributeLine) int { return strings.Compare(a.values.text, b.values.text) })
	return out
}

// existence returns the line for the existence of a key, or nil if one of its values says the same.
func (c *counter) existence(k *key, lines []*attributeLine) *attributeLine {
	if len(k.traces) < minValueTraces || k.place == tracestore.ResourceAttribute {
		return nil
	}
	for _, line := range lines {
		if len(line.traces) == len(k.traces) {
			return nil
		}
	}
	return &attributeLine{key: k, values: condition{op: exists}, traces: k.traces, has: c.split(k.traces)}
}

// fold joins lines with nearly the same traces. Among lines with about the same score, the one with
// the first rank names the joined line.
func fold(lines []*attributeLine) (out []*attributeLine) {
next:
	for _, line := range lines {
		for i, first := range out {
			if overlap(first.traces, line.traces) < sameTraces {
				continue
			}
			if line.score >= sameScore*first.score && rankOf(line.key) < rankOf(first.key) {
				line.same, first.same = append([]*attributeLine{first}, first.same...), nil
				out[i] = line
			} else {
				first.same = append(first.same, line)
			}
			continue next
		}
		out = append(out, line)
	}
	return out
}

// independentFirst moves lines to the end that differ only because of an earlier line: they do not
// differ among the traces that meet the earlier line's condition, nor among the others. It removes
// such lines if they differ much less.
func (c *counter) independentFirst(lines []*attributeLine) []*attributeLine {
	var first, dependent []*attributeLine
	for _, l := range lines {
		for _, earlier := range first {
			if !c.differsWithin(l, earlier) {
				l.with = earlier
				break
			}
		}
		switch {
		case l.with == nil:
			first = append(first, l)
		case math.Abs(l.difference()) >= dependentShare*math.Abs(l.with.difference()):
			dependent = append(dependent, l)
		}
	}
	return append(first, dependent...)
}

// differsWithin reports whether a line differs on its own, within the traces that meet an earlier
// line's condition and within the traces that do not.
func (c *counter) differsWithin(l, earlier *attributeLine) bool {
	b := bases{c: c, key: l.key, byCalls: make(map[string]*base)}
	in := b.of(l)
	split := &base{stratum: slices.Clone(in.stratum), of: make([]pair, 2*len(in.of))}
	for t, s := range in.stratum {
		if s >= 0 {
			split.stratum[t] = 2 * s
		}
	}
	for _, t := range earlier.traces {
		if s := split.stratum[t]; s >= 0 {
			split.stratum[t] = s + 1
		}
	}
	for t, s := range split.stratum {
		if s >= 0 {
			split.of[s].add(c.traces[t].selected)
		}
	}
	within := compare(split.split(c, l.traces), split.of)
	return within.probability < falseDiscoveryRate && within.difference()*l.difference() > 0
}

// overlap returns the share of traces that two sorted lists have in common, of all traces in
// either.
func overlap(a, b []uint32) float64 {
	common, i := 0, 0
	for _, t := range a {
		for i < len(b) && b[i] < t {
			i++
		}
		if i < len(b) && b[i] == t {
			common++
		}
	}
	return shareOf(common, len(a)+len(b)-common)
}

// add counts a trace.
func (p *pair) add(selected bool) {
	p.addTimes(selected, 1)
}

func (p *pair) addTimes(selected bool, n int) {
	if selected {
		p.selected += n
	} else {
		p.rest += n
	}
}
