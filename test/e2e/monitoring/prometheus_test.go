package monitoring_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// server is a running Prometheus.
type server struct {
	t   *testing.T
	url string
}

var listening = regexp.MustCompile(`msg="Listening on".* address=(\S+)`)

// startPrometheus starts Prometheus on a free port with the alerts of the repository. It scrapes
// the targets each second, and ends with the test.
func startPrometheus(t *testing.T, path string, targets map[string]string) *server {
	t.Helper()
	return startPrometheusWith(t, path, deployed(t, "alerts.yaml")[0], targets)
}

// startPrometheusWith is like startPrometheus with a file of rules and with flags.
func startPrometheusWith(t *testing.T, path, rules string, targets map[string]string, flags ...string) *server {
	t.Helper()
	var config strings.Builder
	fmt.Fprintf(&config, "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n", rules)
	for job, address := range targets {
		fmt.Fprintf(&config, "  - {job_name: %s, static_configs: [{targets: [%q]}]}\n", job, address)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	flags = append(flags, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	cmd := exec.Command(path, flags...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for s := bufio.NewScanner(stderr); s.Scan(); {
			if m := listening.FindStringSubmatch(s.Text()); m != nil {
				address <- m[1]
			}
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		<-ended
		cmd.Wait() //nolint:errcheck // it was killed
	})
	select {
	case at := <-address:
		return &server{t, "http://" + at}
	case <-ended:
		t.Fatal("prometheus ended before it listened")
	case <-time.After(2 * time.Minute):
		t.Fatal("prometheus has not logged its address within 2 minutes")
	}
	return nil
}

// sample is an element of the result of a query.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

// number returns the value, or NaN.
func (s sample) number() float64 {
	text, _ := s.Value[1].(string)
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v
	}
	return math.NaN()
}

// query evaluates an expression now. An expression that Prometheus refuses fails the test.
func (s *server) query(expr string) []sample {
	s.t.Helper()
	status, body := harness.Fetch(s.t, s.url+"/api/v1/query?query="+url.QueryEscape(expr))
	if status == http.StatusServiceUnavailable { // Prometheus still starts
		return nil
	}
	var answer struct {
		Error string `json:"error"`
		Data  struct {
			Result []sample `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK {
		s.t.Fatalf("%s: status %d, %s %v", expr, status, answer.Error, err)
	}
	return answer.Data.Result
}

// has reports whether an expression has a value that is a number.
func (s *server) has(expr string) bool {
	for _, r := range s.query(expr) {
		if v := r.number(); !math.IsNaN(v) && !math.IsInf(v, 0) {
			return true
		}
	}
	return false
}
