package harness

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/tracing-backend/tracing/internal/golden"
)

// CheckMetricNames compares the metric families on /metrics (name, type and label names) with a
// golden file. Dashboards and alerts depend on them: a change of the file is a change of an
// interface.
func CheckMetricNames(tb testing.TB, file, adminURL string) {
	tb.Helper()
	got := strings.Join(metricNames(tb, adminURL), "\n") + "\n"
	if golden.Updating() {
		golden.Write(tb, file, got)
		return
	}
	content, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	have, want := lineSet(got), lineSet(string(content))
	for _, l := range slices.Sorted(maps.Keys(want)) {
		if !have[l] {
			tb.Errorf("missing on /metrics: %s", l)
		}
	}
	for _, l := range slices.Sorted(maps.Keys(have)) {
		if !want[l] {
			tb.Errorf("missing in %s: %s; run the test with -update to add it", file, l)
		}
	}
}

func lineSet(text string) map[string]bool {
	set := map[string]bool{}
	for l := range strings.Lines(text) {
		set[strings.TrimSpace(l)] = true
	}
	return set
}

// metricNames returns one line for each family: name, type and label names. It omits the families
// of the Go runtime and of the process, which depend on the platform.
func metricNames(tb testing.TB, adminURL string) (lines []string) {
	tb.Helper()
	_, body := Fetch(tb, adminURL+"/metrics")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(body)))
	if err != nil {
		tb.Fatal(err)
	}
	for name, f := range families {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		labels := map[string]bool{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		kind := strings.ToLower(f.GetType().String())
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", name, kind, strings.Join(slices.Sorted(maps.Keys(labels)), ","))))
	}
	slices.Sort(lines)
	return lines
}
