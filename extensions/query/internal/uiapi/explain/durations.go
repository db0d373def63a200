package explain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// shownValues is the maximum number of values of a key whose durations are shown.
const shownValues = 5

// durationsAnswer holds the durations of the traces with values of a key. Bucket b begins at the
// duration 2^(b/4).
type durationsAnswer struct {
	First  int              `json:"first"` // bucket
	Values []valueDurations `json:"values"`
}

// valueDurations holds the durations of the traces with a value: the estimated number of traces in
// each bucket, starting at the first non-empty one.
type valueDurations struct {
	Text     string   `json:"text"`
	Traces   uint64   `json:"traces"`
	Selected []uint64 `json:"selected"`
	Rest     []uint64 `json:"rest"`
}

// durationBuckets is the number of buckets of package tracestore in one of a durationsAnswer.
const durationBuckets = tracestore.BucketsPerOctave / 4

// durations returns the durations of the traces with the values of a line, and with other values of
// its key. weights are the numbers of traces that each counted trace represents.
func (c *counter) durations(l *attributeLine, w weights) durationsAnswer {
	rows := c.durationRows(l)
	low, high := tracestore.Buckets, 0
	for _, t := range c.traces {
		b := tracestore.BucketOf(t.duration) / durationBuckets
		low, high = min(low, b), max(high, b)
	}
	out := durationsAnswer{First: low, Values: make([]valueDurations, len(rows))}
	for i, row := range rows {
		counts := [2][]float64{make([]float64, high-low+1), make([]float64, high-low+1)}
		total := 0.0
		for _, t := range row.traces {
			trace := c.traces[t]
			side, weight := 0, w.rest
			if trace.selected {
				side, weight = 1, w.selected
			}
			counts[side][tracestore.BucketOf(trace.duration)/durationBuckets-low] += weight
			total += weight
		}
		out.Values[i] = valueDurations{Text: row.text, Traces: round(total), Selected: rounded(counts[1]), Rest: rounded(counts[0])}
	}
	return out
}

// durationRow is the traces of a row.
type durationRow struct {
	text   string
	traces []uint32
}

// durationRows returns the most frequent values of a line's key, including the line's value. For
// other conditions, it returns the traces that meet the condition and the traces that do not.
func (c *counter) durationRows(l *attributeLine) []durationRow {
	if l.values.op != equals {
		others := l.key.traces
		if l.values.op == exists {
			others = c.all()
		}
		return []durationRow{{"", l.traces}, {"", without(others, l.traces)}}
	}
	var rows []durationRow
	for text, v := range l.key.values {
		rows = append(rows, durationRow{text, v.traces})
	}
	slices.SortFunc(rows, func(a, b durationRow) int {
		return cmp.Or(cmp.Compare(rank(b.text == l.values.text), rank(a.text == l.values.text)), cmp.Compare(len(b.traces), len(a.traces)),
			strings.Compare(a.text, b.text))
	})
	return rows[:min(len(rows), shownValues)]
}

func rank(first bool) int {
	if first {
		return 1
	}
	return 0
}

// all returns all counted traces.
func (c *counter) all() []uint32 {
	out := make([]uint32, len(c.traces))
	for i := range out {
		out[i] = uint32(i)
	}
	return out
}

// without returns the elements of a sorted list that are not in another one.
func without(list, other []uint32) (out []uint32) {
	i := 0
	for _, t := range list {
		for i < len(other) && other[i] < t {
			i++
		}
		if i == len(other) || other[i] != t {
			out = append(out, t)
		}
	}
	return out
}
