package commands_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// The demo sends the last 30 minutes immediately. Then the web UI's API names the bad version, and
// Explain finds it, or the flag that came with it, in the first three lines. The spans depend on
// the time. With too few of them, the first lines are others that follow from the errors: 20 of 20
// runs passed with 5 requests per second.
func TestDemo(t *testing.T) {
	p := harness.RunAllInOne(t, t.TempDir())
	stdout, stderr, err := execute(t, []string{"TRACING_OTLP_URL=http://" + p.OTLPHTTP()},
		"demo", "--backfill=30m", "--rate=5", "--seed=1", "--once")
	if err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	sent := regexp.MustCompile(`(?m)^in total: \d+ requests, (\d+) spans sent, (\d+) acknowledged$`).FindStringSubmatch(stdout)
	if sent == nil || sent[1] != sent[2] {
		t.Fatalf("summary: %s", stdout)
	}
	api := demoAPI{t, p.QueryURL() + "/api/ui/v1/", time.Now()}
	api.checkOverview()
	for _, selection := range []string{"sel_q={+error+}", "sel_min=1s", "q={+service+%3D+\"payment\"+}&sel_q={+error+}"} {
		lines := api.explain(selection)
		first := strings.Join(lines[:3], "\n")
		if !strings.Contains(first, "resource.service.version=2.14.0") && !strings.Contains(first, "span.feature_flag.result.variant=on") {
			t.Errorf("%s: neither the version nor its flag is in the first three lines of\n%s", selection, strings.Join(lines, "\n"))
		}
	}
}

// demoAPI reads the last 15 minutes of the demo.
type demoAPI struct {
	t   *testing.T
	url string
	now time.Time
}

// get reads the data of a response.
func (a demoAPI) get(name, query string, into any) {
	a.t.Helper()
	all := fmt.Sprintf("%s%s?start=%d&end=%d&%s", a.url, name, a.now.Add(-15*time.Minute).UnixNano(), a.now.UnixNano(), query)
	status, body := harness.Fetch(a.t, all)
	answer := struct{ Data any }{into}
	if err := json.Unmarshal(body, &answer); status != 200 || err != nil {
		a.t.Fatalf("%s: %d %v %s", all, status, err, body)
	}
}

// checkOverview checks from what the overview makes its sentence: payment is the service with the
// largest rise of errors, and a new version of it appeared.
func (a demoAPI) checkOverview() {
	a.t.Helper()
	type red struct{ Calls, Errors float64 }
	var services struct {
		Services []struct {
			Name           string
			Summary, Usual red
		}
	}
	a.get("services", "", &services)
	for _, s := range services.Services {
		now, usual := s.Summary.Errors/s.Summary.Calls, s.Usual.Errors/s.Usual.Calls
		failing := s.Summary.Errors >= 5 && now > 0.01 && now > 2*usual
		if failing != slices.Contains([]string{"frontend", "checkout", "payment"}, s.Name) {
			a.t.Errorf("%s: %v, usually %v", s.Name, s.Summary, s.Usual)
		}
	}
	if len(services.Services) != 10 {
		a.t.Errorf("services %v", services)
	}
	var changes struct {
		Changes []struct{ At, Service, Kind, From, To string }
	}
	a.get("changes", "", &changes)
	for _, c := range changes.Changes {
		ns, _ := strconv.ParseInt(c.At, 10, 64)
		if ago := a.now.Sub(time.Unix(0, ns)); c.Kind == "version" && c.Service == "payment" && c.From == "2.13.4" && c.To == "2.14.0" &&
			ago > 2*time.Minute && ago < 6*time.Minute {
			return
		}
	}
	a.t.Errorf("changes: %v", changes)
}

// explain returns the lines of attributes, each with the attributes of the same traces.
func (a demoAPI) explain(selection string) (lines []string) {
	a.t.Helper()
	type attribute struct{ Field, Value string }
	var explained struct {
		Attributes struct {
			Lines []struct {
				attribute
				Same []attribute
			}
		}
	}
	a.get("explain", strings.ReplaceAll(selection, `"`, url.QueryEscape(`"`)), &explained)
	for _, l := range explained.Attributes.Lines {
		line := ""
		for _, one := range append([]attribute{l.attribute}, l.Same...) {
			line += " " + one.Field + "=" + one.Value
		}
		lines = append(lines, line)
	}
	if len(lines) < 3 {
		a.t.Fatalf("%s: %q", selection, lines)
	}
	return lines
}

// The demo starts an installation of its own on all interfaces, sends the backfill to it, and ends.
func TestDemoAllInOneOnce(t *testing.T) {
	settings := harness.PresetArgs("all-in-one", t.TempDir())[3:]
	for _, listener := range []string{"receivers::otlp::protocols::http", "extensions::query::http"} {
		settings = append(settings, "--set", listener+"::endpoint=0.0.0.0:0")
	}
	stdout, stderr, err := execute(t, nil, append([]string{"demo", "--all-in-one", "--backfill=1m", "--rate=1", "--once"}, settings...)...)
	if err != nil || !strings.HasPrefix(stdout, "started all-in-one: web UI on http://localhost:") ||
		!regexp.MustCompile(`\nin total: .* acknowledged\n\z`).MatchString(stdout) {
		t.Errorf("%v: %s%s", err, stdout, stderr)
	}
}

// The demo starts an installation of its own, sends to it until it is interrupted, and leaves
// nothing behind.
func TestDemoAllInOne(t *testing.T) {
	folder := t.TempDir()
	args := append([]string{"demo", "--all-in-one", "--backfill=1m", "--rate=1"}, harness.PresetArgs("all-in-one", folder)[3:]...)
	cmd := exec.Command(harness.Binary(t), args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+folder)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for s := bufio.NewScanner(stdout); s.Scan(); {
		if lines = append(lines, s.Text()); strings.Contains(s.Text(), "press Ctrl C") {
			cmd.Process.Signal(syscall.SIGINT) //nolint:errcheck // Wait returns what happened
		}
	}
	if err := cmd.Wait(); err != nil || len(lines) != 6 || !strings.HasPrefix(lines[0], "started all-in-one: web UI on http://127.0.0.1:") ||
		!strings.HasPrefix(lines[5], "in total: ") || strings.Contains(lines[5], "not acknowledged") {
		t.Errorf("%v: %s\n%s", err, strings.Join(lines, "\n"), &stderr)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v: %v is left", err, left)
	}
}

// Mistakes are named with what to do.
func TestDemoErrors(t *testing.T) {
	for args, want := range map[string]string{
		"--rate=0":                  "--rate must be above 0",
		"--otlp=localhost:4317":     "write http://localhost:4318",
		"--backfill=0 --once":       "set --backfill",
		"--backfill=8760h":          "--backfill must be from 0 to 168h0m0s",
		"--data-dir=x":              "--data-dir and --set need --all-in-one",
		"--all-in-one --set=a":      "--set: ",
		"--all-in-one --set=a::b=1": "unknown section",
		"--header=x":                "not of the form",
		"more":                      `unexpected argument "more"`,
		"--otlp=http://127.0.0.9:1": `connection refused; start the program with "tracing", set --otlp, or pass --all-in-one`,
	} {
		stdout, stderr, err := execute(t, nil, append([]string{"demo"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(stderr, want) {
			t.Errorf("%s: %v: %s%s, want %s", args, err, stdout, stderr, want)
		}
	}
}
