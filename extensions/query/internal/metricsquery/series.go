package metricsquery

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Series is a list of samples.
type Series struct {
	Labels []Label
	// Samples are the values at the times of Result.Times. NaN means that there is no sample.
	Samples   []float64
	Exemplars []Exemplar
}

// Label is a property of all spans of a series.
type Label struct {
	Key   string
	Value otlpdata.Value
}

// nameLabel is the key of the label of a series without others.
const nameLabel = "__name__"

// noSample stands for a missing sample.
var noSample = math.NaN()

// textOf returns a text by which series are sorted and matched.
func textOf(labels []Label) string {
	var b strings.Builder
	for _, l := range labels {
		value := l.Value.AsString()
		if l.Value.Kind() == otlpdata.ValueString {
			value = strconv.Quote(value)
		}
		b.WriteString(l.Key + "=" + value + ",")
	}
	return b.String()
}

// isNamed reports whether a series has no labels except its name.
func isNamed(labels []Label) bool { return len(labels) == 1 && labels[0].Key == nameLabel }

// sortSeries sorts series by their labels.
func sortSeries(list []Series) {
	slices.SortStableFunc(list, func(a, b Series) int { return strings.Compare(textOf(a.Labels), textOf(b.Labels)) })
}

// withoutEmpty returns the series that have a sample.
func withoutEmpty(list []Series) []Series {
	return slices.DeleteFunc(list, func(s Series) bool {
		return !slices.ContainsFunc(s.Samples, func(v float64) bool { return !math.IsNaN(v) })
	})
}

// calculateWith applies an operation with a number to all samples and exemplars.
func calculateWith(op byte, list []Series, n float64, numberFirst bool) []Series {
	result := func(v float64) float64 {
		if numberFirst {
			return finite(traceql.Calculate(op, n, v))
		}
		return finite(traceql.Calculate(op, v, n))
	}
	for i := range list {
		s := &list[i]
		for j, v := range s.Samples {
			s.Samples[j] = result(v)
		}
		for j := range s.Exemplars {
			s.Exemplars[j].Value = result(s.Exemplars[j].Value)
		}
		s.Exemplars = slices.DeleteFunc(s.Exemplars, func(e Exemplar) bool { return math.IsNaN(e.Value) })
	}
	return withoutEmpty(list)
}

// finite returns noSample for a result that is not a number.
func finite(v float64) float64 {
	if math.IsInf(v, 0) {
		return noSample
	}
	return v
}

// calculate applies an operation to series with the same labels. Series without labels are combined
// with all series of the other side, without their exemplars. The values of exemplars remain as on
// their side.
func calculate(op byte, left, right []Series) []Series {
	byText := make(map[string]*Series, len(right))
	for i := range right {
		byText[keyOf(right[i].Labels)] = &right[i]
	}
	var out []Series
	switch {
	case len(left) == 1 && isNamed(left[0].Labels) && len(right) > 0 && !isNamed(right[0].Labels):
		for i := range right {
			out = append(out, Series{right[i].Labels, combine(op, left[0].Samples, right[i].Samples), right[i].Exemplars})
		}
	case len(right) == 1 && isNamed(right[0].Labels):
		for i := range left {
			labels, exemplars := left[i].Labels, left[i].Exemplars
			if isNamed(labels) {
				name := "(" + labels[0].Value.AsString() + " " + string(op) + " " + right[0].Labels[0].Value.AsString() + ")"
				labels = []Label{{nameLabel, otlpdata.StringValue(name)}}
				exemplars = slices.Concat(exemplars, right[0].Exemplars)
			}
			out = append(out, Series{labels, combine(op, left[i].Samples, right[0].Samples), exemplars})
		}
	default:
		for i := range left {
			if other := byText[keyOf(left[i].Labels)]; other != nil {
				out = append(out, Series{left[i].Labels, combine(op, left[i].Samples, other.Samples),
					slices.Concat(left[i].Exemplars, other.Exemplars)})
			}
		}
	}
	return withoutEmpty(out)
}

// keyOf is textOf, without the name.
func keyOf(labels []Label) string {
	if isNamed(labels) {
		return ""
	}
	return textOf(labels)
}

func combine(op byte, a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = finite(traceql.Calculate(op, a[i], b[i]))
	}
	return out
}

// filter removes the samples for which a comparison does not hold.
func filter(list []Series, op tracestore.Op, n float64) []Series {
	cond := tracestore.Cond{Op: op, Value: tracestore.Number(n)}
	for i := range list {
		for j, v := range list[i].Samples {
			if !math.IsNaN(v) && !cond.Holds(otlpdata.DoubleValue(v)) {
				list[i].Samples[j] = noSample
			}
		}
		list[i].Exemplars = nil
	}
	return withoutEmpty(list)
}

// top removes all but the n highest or lowest samples of each time. Of equal samples, the one that
// is first in the order of labels counts as higher.
func top(list []Series, n int, lowest bool) []Series {
	if len(list) <= n {
		return list
	}
	sortSeries(list)
	order := make([]int, len(list))
	for j := range list[0].Samples {
		order = order[:0]
		for i := range list {
			if !math.IsNaN(list[i].Samples[j]) {
				order = append(order, i)
			}
		}
		slices.SortFunc(order, func(a, b int) int {
			if lowest {
				a, b = b, a
			}
			return cmp.Or(cmp.Compare(list[b].Samples[j], list[a].Samples[j]), a-b)
		})
		for _, i := range order[min(n, len(order)):] {
			list[i].Samples[j] = noSample
		}
	}
	return withoutEmpty(list)
}
