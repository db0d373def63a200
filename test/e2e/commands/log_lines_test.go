package commands_test

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// The lines that users are told to look for when spans are missing, as the program itself writes them: JSON objects on standard error, each
// with level, ts, caller and msg.
func TestDebugLinesOfTheProgram(t *testing.T) {
	args := []string{"all-in-one", "--log-level=debug", "--set", "service::data_dir=" + t.TempDir()}
	for _, s := range harness.FreePorts {
		args = append(args, "--set", s)
	}
	began := time.Now()
	p := harness.Run(t, args...)
	target := p.Address("otlp", "protocols.http")
	admin := p.Await("msg", "Admin server started", "health-status", "unavailable")
	if admin["http.host-port"] != p.Address("admin", "http") {
		t.Errorf("got %v", admin)
	}
	p.Await("msg", "Health Check state change", "status", "ready", "level", "info")

	body := harness.JSONSpan("d269b633813fc60c5b8efff798038103", "checkout", "pay", time.Now(), time.Second)
	resp, err := http.Post("http://"+target+"/v1/traces", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	if answer, err := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || err != nil {
		t.Fatalf("%d %s %v", resp.StatusCode, answer, err)
	}
	if line := p.Await("msg", "Span batch processed by the collector.", "level", "debug"); line["ok"] != true {
		t.Errorf("got %v", line)
	}
	p.Await("msg", "Span written to the storage by the collector", "level", "debug",
		"trace-id", "d269b633813fc60c5b8efff798038103", "span-id", "eee19b7ec3c1b174")
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.Await("msg", "Health Check state change", "status", "unavailable")
	if code := p.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, line := range p.LogLines() {
		checkLogLine(t, line, began)
	}
}

var caller = regexp.MustCompile(`^[\w.-]+/[\w.-]+\.go:\d+$`)

// checkLogLine checks what all lines have in common.
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
		t.Errorf("ts is not in seconds since the epoch: %v", line)
	}
}
