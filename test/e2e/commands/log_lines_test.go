package commands_test

import (
	"net/http"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// TestDebugLogLines checks the log lines that the documentation names for finding missing spans, as
// the program writes them: JSON objects on standard error, each with level, ts, caller and msg.
func TestDebugLogLines(t *testing.T) {
	began := time.Now()
	p := harness.Run(t, harness.PresetArgs("all-in-one", t.TempDir(), "--log-level=debug")...)
	admin := p.Await("msg", "Admin server started", "health-status", "unavailable")
	if admin["http.host-port"] != p.Address("admin", "http") {
		t.Errorf("got %v", admin)
	}
	p.Await("msg", "Health Check state change", "status", "ready", "level", "info")

	const trace = "d269b633813fc60c5b8efff798038103"
	p.PostJSON(harness.JSONSpan(trace, "checkout", "pay", time.Now(), time.Second))
	defer http.DefaultClient.CloseIdleConnections()
	if line := p.Await("msg", "Span batch processed by the collector.", "level", "debug"); line["ok"] != true {
		t.Errorf("got %v", line)
	}
	p.Await("msg", "Span written to the storage by the collector", "level", "debug",
		"trace-id", trace, "span-id", harness.JSONSpanID)
	p.Signal(syscall.SIGTERM)
	p.Await("msg", "Health Check state change", "status", "unavailable")
	if code := p.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, line := range p.LogLines() {
		checkLogLine(t, line, began)
	}
}

var caller = regexp.MustCompile(`^[\w.-]+/[\w.-]+\.go:\d+$`)

// checkLogLine checks the fields that every line has.
func checkLogLine(t *testing.T, line map[string]any, began time.Time) {
	t.Helper()
	level, _ := line["level"].(string)
	ts, _ := line["ts"].(float64)
	at, _ := line["caller"].(string)
	msg, _ := line["msg"].(string)
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, level) || !caller.MatchString(at) || msg == "" {
		t.Errorf("level, caller or msg: %v", line)
	}
	if seconds := time.Unix(0, int64(ts*1e9)); seconds.Before(began.Add(-time.Second)) || seconds.After(time.Now().Add(time.Second)) {
		t.Errorf("ts is not the time in seconds since the epoch: %v", line)
	}
}
