package pipeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// compatible shows the metrics of this program's interface a second time, under the names that dashboards and alerts in the field ask for:
// another prefix, `_total` behind the name of every counter, and the word that stands for the native format.
type compatible struct{ prometheus.Gatherer }

// Gather returns all families in the order of their names. With an error it returns those that could be gathered.
func (c compatible) Gather() ([]*dto.MetricFamily, error) {
	families, err := c.Gatherer.Gather()
	for _, f := range families {
		if name, ok := fieldName(f); ok {
			families = append(families, renamed(f, name))
		}
	}
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return families, err
}

// fieldName returns the name that a family has in the field, and whether it has one there.
func fieldName(f *dto.MetricFamily) (string, bool) {
	name, ours := strings.CutPrefix(f.GetName(), "tracing_")
	part, _, _ := strings.Cut(name, "_")
	if !ours || part != "collector" && part != "agent" && part != "query" && name != "build_info" {
		return "", false
	}
	if f.GetType() == dto.MetricType_COUNTER && !strings.HasSuffix(name, "_total") {
		name += "_total"
	}
	return "jaeger_" + name, true
}

// renamed returns a family under another name, with the labels of the field. The values are those of f itself.
func renamed(f *dto.MetricFamily, name string) *dto.MetricFamily {
	out := &dto.MetricFamily{Name: &name, Help: f.Help, Type: f.Type, Unit: f.Unit}
	for _, m := range f.GetMetric() {
		c := &dto.Metric{Gauge: m.Gauge, Counter: m.Counter, Summary: m.Summary, Untyped: m.Untyped, Histogram: m.Histogram, TimestampMs: m.TimestampMs}
		for _, l := range m.GetLabel() {
			if (l.GetName() == "format" || l.GetName() == "model") && l.GetValue() == "tracing" {
				native := "jaeger"
				l = &dto.LabelPair{Name: l.Name, Value: &native}
			}
			c.Label = append(c.Label, l)
		}
		out.Metric = append(out.Metric, c)
	}
	return out
}
