package tracing_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func TestMetricNames(t *testing.T) {
	p := start(t)
	p.someTraffic()
	checkMetricNames(t, "testdata/metrics.golden", p.admin())
}

// checkMetricNames checks what /metrics has after some traffic: names, types and labels, which dashboards and alerts depend on. A change of
// the golden file is a change of an interface; -update writes it.
func checkMetricNames(t *testing.T, golden, adminURL string) {
	t.Helper()
	got := strings.Join(metricNames(t, adminURL), "\n") + "\n"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
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
			t.Errorf("not in %s: %s", golden, l)
		}
	}
	if t.Failed() {
		t.Logf("go test -run %s -update . writes the file anew", t.Name())
	}
}

func lineSet(text string) map[string]bool {
	set := map[string]bool{}
	for l := range strings.Lines(text) {
		set[strings.TrimSpace(l)] = true
	}
	return set
}

// someTraffic has every route answer, well and badly.
func (p *program) someTraffic() {
	p.t.Helper()
	expect := func(want, got int, body string) {
		p.t.Helper()
		if got != want {
			p.t.Fatalf("status %d, want %d: %s", got, want, body)
		}
	}
	get := func(want int, path string) {
		p.t.Helper()
		status, body := fetch(p.t, p.query()+path)
		expect(want, status, string(body))
	}
	post := func(want int, contentType, body string) {
		p.t.Helper()
		status, answer := p.post(contentType, body)
		expect(want, status, answer)
	}
	const id = "5b8efff798038103d269b633813fc60c"
	post(http.StatusOK, "application/json", jsonSpan(id, "checkout", "pay", time.Now(), time.Second))
	post(http.StatusBadRequest, "application/json", "{}{}")
	get(http.StatusOK, "/api/services")
	get(http.StatusOK, "/api/services/checkout/operations")
	get(http.StatusOK, "/api/operations?service=checkout")
	get(http.StatusOK, "/api/traces?service=checkout")
	get(http.StatusOK, "/api/traces/"+id)
	get(http.StatusNotFound, "/api/traces/1")
	get(http.StatusOK, "/api/dependencies")
}

// metricNames returns a line for each family: name, type and label names. The families of the Go runtime and of the operating system depend
// on both, and are left out.
func metricNames(t *testing.T, adminURL string) (lines []string) {
	t.Helper()
	_, body := fetch(t, adminURL+"/metrics")
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
