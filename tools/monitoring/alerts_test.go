package monitoring_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/tools/internal/external"
)

const (
	alertsFile  = root + "/deploy/monitoring/alerts.yaml"
	configFile  = root + "/deploy/monitoring/prometheus.yaml"
	testsFile   = root + "/deploy/monitoring/alerts_test.yaml"
	runbooks    = root + "/docs/runbooks"
	runbooksURL = "https://github.com/tracing-backend/tracing/blob/main/docs/runbooks/"
)

var (
	alertName = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)
	// firing matches a test in which an alert fires, quiet one in which it does not.
	firing = regexp.MustCompile(`alertname: (\w+)\n +exp_alerts:\n +- exp_labels:`)
	quiet  = regexp.MustCompile(`alertname: (\w+), exp_alerts: \[\]`)
)

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func names(pattern *regexp.Regexp, text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	return found
}

// Every alert fires in a test of promtool, is quiet in another one, and has a runbook with its
// name, to which it links.
func TestEveryAlertHasTestAndRunbook(t *testing.T) {
	text := read(t, alertsFile)
	alerts := names(alertName, text)
	if len(alerts) < 20 {
		t.Fatalf("%d alerts found", len(alerts))
	}
	tests := read(t, testsFile)
	for what, tested := range map[string]map[string]bool{"fires": names(firing, tests), "is quiet": names(quiet, tests)} {
		for _, alert := range slices.Sorted(maps.Keys(alerts)) {
			if !tested[alert] {
				t.Errorf("%s: no test in which it %s", alert, what)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]bool{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		pages[name] = true
		if content := read(t, file); !strings.HasPrefix(content, "# "+name+"\n") || !strings.Contains(content, "## What to do\n") {
			t.Errorf("%s: not a runbook of %s", file, name)
		}
		if !alerts[name] {
			t.Errorf("%s: no alert has this name", file)
		}
	}
	for _, alert := range slices.Sorted(maps.Keys(alerts)) {
		if !pages[alert] || !strings.Contains(text, "runbook_url: "+runbooksURL+alert+".md\n") {
			t.Errorf("%s: no runbook, or no link to it", alert)
		}
	}
}

// The rules and the example configuration are valid, and the tests beside the rules pass.
func TestAlerts(t *testing.T) {
	promtool := external.Require(t, "promtool", "prometheus")
	for _, args := range [][]string{{"check", "rules", alertsFile}, {"test", "rules", testsFile}, {"check", "config", configFile}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
