package tables

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// collector is a configuration with a durable queue in front of ClickHouse.
const collector = `
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0"}}}}
exporters:
  clickhouse:
    endpoints: [%q]
    protocol: http
    sending_queue: {enabled: true, storage: disk}
    retry_on_failure: {initial_interval: 100ms, max_interval: 1s}
extensions: {admin: {endpoint: "localhost:0"}}
service:
  data_dir: %q
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], exporters: [clickhouse]}}
`

// send sends spans of n traces from the first on, each in a request of its own.
func send(p *harness.Process, first, n int) {
	p.T.Helper()
	for i := first; i < first+n; i++ {
		p.PostJSON(harness.JSONSpan(fmt.Sprintf("%032x", i+1), "cart", fmt.Sprintf("GET /%d", i%7), time.Now(), time.Millisecond))
	}
}

// awaitRows waits until a table has a number of rows, and returns the number of different spans.
func awaitRows(t *testing.T, s *engine.Server, table string, rows int) (spans string) {
	t.Helper()
	harness.Poll(t, fmt.Sprintf("%d rows in %s", rows, table), func() bool {
		n, err := s.Query("SELECT count() FROM tracing." + table)
		return err == nil && strings.TrimSpace(n) == fmt.Sprint(rows)
	})
	return strings.TrimSpace(s.Exec(t, "SELECT uniqExact(trace_id, start) FROM tracing."+table))
}

// While the server is down, a collector starts, is degraded, and takes spans into its queue. They
// are stored when the server is up.
func TestStartWithoutServer(t *testing.T) {
	s := engine.Start(t, engine.Options{})
	s.Stop()
	p := harness.RunYAML(t, fmt.Sprintf(collector, s.HTTPAddr(), t.TempDir()))
	p.Await("msg", "component is degraded")
	p.AwaitReady()
	const traces = 40
	send(p, 0, traces)
	_, status := harness.Fetch(t, p.AdminURL()+"/status")
	if !strings.Contains(string(status), "preparing tables") {
		t.Errorf("status does not say that tables are not prepared: %s", status)
	}
	s.Restart(t)
	for _, table := range []string{"payload", "spans"} {
		if spans := awaitRows(t, s, table, traces); spans != fmt.Sprint(traces) {
			t.Errorf("%s has %s different spans, want %d", table, spans, traces)
		}
	}
	p.Await("msg", "tables are ready")
	p.Terminate()
}

// The spans of a disk store are moved to ClickHouse: exported while the store is in use, then
// loaded into a collector.
func TestMoveFromDisk(t *testing.T) {
	s := engine.Start(t, engine.Options{})
	const traces = 300
	data, out := t.TempDir(), filepath.Join(t.TempDir(), "spans")
	old := harness.RunAllInOne(t, data)
	send(old, 0, traces)
	command(t, "store", "export", data, "--format", "otlp-proto", "--output", out)

	p := harness.RunYAML(t, fmt.Sprintf(collector, s.HTTPAddr(), t.TempDir()))
	p.AwaitReady()
	load := []string{"store", "load", out, "--endpoint", "http://" + p.OTLPHTTP()}
	command(t, load...)
	for _, table := range []string{"payload", "spans"} {
		if spans := awaitRows(t, s, table, traces); spans != fmt.Sprint(traces) {
			t.Errorf("%s has %s different spans, want %d", table, spans, traces)
		}
	}
	harness.Poll(t, "statistics of all spans", func() bool {
		return strings.TrimSpace(s.Exec(t, "SELECT sum(spans) FROM tracing.minutes")) == fmt.Sprint(traces)
	})
	if again := command(t, load...); !strings.Contains(again, "sent 0 requests") {
		t.Errorf("second load: %s", again)
	}
	p.Terminate()
	old.Terminate()
}

// command runs a command of the program and returns its output.
func command(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := inprocess.RunCommand(t, args...)
	if code != 0 {
		t.Fatalf("%s: exit code %d: %s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}
