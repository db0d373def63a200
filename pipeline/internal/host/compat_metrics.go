package host

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// compatGatherer adds the metrics of collector, agent and query under the names that established
// dashboards and alerts use: with another prefix, `_total` after counters, and another value for
// Jaeger's format.
type compatGatherer struct{ prometheus.Gatherer }

// Gather returns all families sorted by name. If gathering fails, it returns the families that
// could be gathered with the error.
func (c compatGatherer) Gather() ([]*dto.MetricFamily, error) {
	families, err := c.Gatherer.Gather()
	for _, f := range families {
		if name, ok := compatName(f); ok {
			families = append(families, renamed(f, name))
		}
	}
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return families, err
}

// compatName returns the established name of a family, and whether it has one.
func compatName(f *dto.MetricFamily) (string, bool) {
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

// renamed returns a copy of a family with another name and the established labels. It shares the
// values with f.
func renamed(f *dto.MetricFamily, name string) *dto.MetricFamily {
	out := &dto.MetricFamily{Name: &name, Help: f.Help, Type: f.Type, Unit: f.Unit}
	for _, m := range f.GetMetric() {
		c := &dto.Metric{Gauge: m.Gauge, Counter: m.Counter, Summary: m.Summary, Untyped: m.Untyped, Histogram: m.Histogram,
			TimestampMs: m.TimestampMs}
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
