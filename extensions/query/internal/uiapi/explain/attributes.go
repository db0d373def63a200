package explain

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	// maxAttributeLines is the maximum number of lines of the list of attributes.
	maxAttributeLines = 8
	// minValueTraces is the minimum number of traces that must have a value. The shares of rarer
	// values cannot differ significantly; testing them would only hide others.
	minValueTraces = 5
	// sameTraces is the share of traces that two lines must have in common, of all traces of
	// either, to be shown as one.
	sameTraces = 0.95
	// preferred is the factor by which the score of a condition counts more if selected traces meet
	// it more often than the others: it is easier to understand than the opposite.
	preferred = 1.1
	// deciles is the number of ranges with the same number of traces of the rest.
	deciles = 10
)

// attributeLine is an attribute of which selected traces have another share than the others.
type attributeLine struct {
	key    *key
	values condition
	traces []uint32 // that meet the condition
	has    pair     // the number of these
	score  float64
	same   []*attributeLine // lines with (nearly) the same traces
}

// condition is what the values of a key are tested for.
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
	lines   []*attributeLine // the most telling first
	tested  int              // number of keys
	differ  int              // keys whose shares differ significantly
	omitted bool             // some keys were not counted
}

// rankAttributes returns the attributes that distinguish selected traces from the others.
//
// For each key, the shares of traces that meet each of several conditions are compared: the key has
// a value, the key exists, and for numbers, the highest one lies in one of the deciles of the
// others. The key's probability is that of its clearest condition, multiplied by the number of
// conditions (Bonferroni). The keys that differ are selected as by discoveries, and sorted by
// score: the largest difference of shares times the square root of the share of traces that have
// the key.
func (c *counter) rankAttributes() attributeList {
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
		if line, p, tested := c.bestLine(k, of); tested {
			lines, probabilities = append(lines, line), append(probabilities, p)
		}
	}
	out.tested = len(lines)
	for i, differs := range discoveries(probabilities, falseDiscoveryRate) {
		if differs {
			out.lines = append(out.lines, lines[i])
		}
	}
	out.differ = len(out.lines)
	slices.SortStableFunc(out.lines, func(a, b *attributeLine) int { return cmp.Compare(b.score, a.score) })
	out.lines = fold(out.lines)
	out.lines = out.lines[:min(len(out.lines), maxAttributeLines)]
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
// that the key differs so much by chance. tested is false if there is nothing to test.
func (c *counter) bestLine(k *key, of pair) (best *attributeLine, p float64, tested bool) {
	within := of
	if k.place == tracestore.ResourceAttribute {
		// Whether the service is in the trace at all is not a difference of its attributes.
		if service := c.keys[keyID{place: tracestore.Service, service: k.service}]; service != nil {
			within = c.split(service.traces)
		}
	}
	lines := slices.Concat(c.valueLines(k), c.numberLines(k))
	if line := c.existence(k, lines); line != nil {
		lines = append(lines, line)
	}
	// Where a condition holds for all traces, there is nothing to compare.
	lines = slices.DeleteFunc(lines, func(l *attributeLine) bool { return l.has == within })
	coverage := math.Sqrt(max(shareOf(c.split(k.traces).selected, of.selected), shareOf(c.split(k.traces).rest, of.rest)))
	p = 1
	occurrences := c.occurrences(k, within)
	for _, line := range lines {
		probability := proportionTest(line.has, within)
		if line.values.op == equals {
			// Traces with more spans have more values of a key; that is a matter of their shape.
			probability = max(probability, proportionTest(line.has, occurrences))
		}
		probability *= float64(len(lines))
		p = min(p, probability)
		if line.score = math.Abs(line.has.difference(within)) * coverage; probability > falseDiscoveryRate {
			line.score = 0
		}
		if best == nil || line.better(best, within) {
			best = line
		}
	}
	if best != nil && best.values.op == between {
		best = c.widen(best, lines, within)
	}
	return best, p, best != nil
}

// better reports whether a line is better to show than another one of the same key.
func (l *attributeLine) better(than *attributeLine, within pair) bool {
	value := func(l *attributeLine) float64 {
		if l.has.difference(within) > 0 {
			return l.score * preferred
		}
		return l.score
	}
	return value(l) > value(than)
}

// occurrences returns the number of pairs of a trace and one of its values of a key, where no value
// counts as one.
func (c *counter) occurrences(k *key, within pair) pair {
	has := c.split(k.traces)
	of := pair{within.selected - has.selected, within.rest - has.rest}
	for _, v := range k.values {
		n := c.split(v.traces)
		of = pair{of.selected + n.selected, of.rest + n.rest}
	}
	return of
}

// valueLines returns a line for each value that enough traces have, sorted by value.
func (c *counter) valueLines(k *key) (out []*attributeLine) {
	for text, v := range k.values {
		if len(v.traces) >= minValueTraces {
			out = append(out, &attributeLine{key: k, values: condition{op: equals, text: text}, traces: v.traces, has: c.split(v.traces)})
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

// fold joins lines with nearly the same traces: the first one stays.
func fold(lines []*attributeLine) (out []*attributeLine) {
next:
	for _, line := range lines {
		for _, first := range out {
			if overlap(first.traces, line.traces) >= sameTraces {
				first.same = append(first.same, line)
				continue next
			}
		}
		out = append(out, line)
	}
	return out
}

// overlap returns how many traces two sorted lists have in common, as share of all in either.
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
	if selected {
		p.selected++
	} else {
		p.rest++
	}
}

// difference returns the share of selected traces minus that of the others.
func (p pair) difference(of pair) float64 {
	return shareOf(p.selected, of.selected) - shareOf(p.rest, of.rest)
}
