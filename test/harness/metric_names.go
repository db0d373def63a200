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

// checkMetricNames checks what /metrics has after some traffic: names, types and labels, which dashboards and alerts depend on. A change of
// the golden file is a change of an interface; -update writes it.
func CheckMetricNames(t *testing.T, file, adminURL string) {
	t.Helper()
	got := strings.Join(metricNames(t, adminURL), "\n") + "\n"
	if golden.Updating() {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	have, listed := lineSet(got), lineSet(string(want))
	for _, l := range slices.Sorted(maps.Keys(listed)) {
		if !have[l] {
			t.Errorf("not on /metrics any more: %s", l)
		}
	}
	for _, l := range slices.Sorted(maps.Keys(have)) {
		if !listed[l] {
			t.Errorf("not in %s: %s", file, l)
		}
	}
	if t.Failed() {
		t.Logf("go test -run %s -update writes the file", t.Name())
	}
}

func lineSet(text string) map[string]bool {
	set := map[string]bool{}
	for l := range strings.Lines(text) {
		set[strings.TrimSpace(l)] = true
	}
	return set
}

// metricNames returns a line for each family: name, type and label names. The families of the Go runtime and of the operating system depend
// on both, and are left out.
func metricNames(t *testing.T, adminURL string) (lines []string) {
	t.Helper()
	_, body := Fetch(t, adminURL+"/metrics")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
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
