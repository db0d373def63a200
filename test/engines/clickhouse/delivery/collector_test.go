package delivery_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
	"github.com/tracing-backend/tracing/test/harness"
)

// collectorConfig is a collector with a queue on disk in front of ClickHouse.
const collectorConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
processors: {batch: {min_interval: 50ms}}
exporters:
  clickhouse:
    endpoints: [%q]
    protocol: %s
    retry_on_failure: {initial_interval: 20ms, max_interval: 200ms, max_elapsed_time: 0s}
    sending_queue: {storage: disk, queue_size: 0}
extensions: {admin: {endpoint: "localhost:0"}}
service:
  data_dir: %q
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [clickhouse]}}
`

// runCollector starts a collector whose store is s.
func runCollector(t *testing.T, s *engine.Server, protocol, dir string) *harness.Process {
	t.Helper()
	addr := s.NativeAddr()
	if protocol == "http" {
		addr = s.HTTPAddr()
	}
	p := harness.RunYAML(t, fmt.Sprintf(collectorConfig, addr, protocol, dir))
	p.AwaitReady()
	return p
}

// eachProtocol runs a test with both protocols, with -short with one.
func eachProtocol(t *testing.T, test func(t *testing.T, protocol string)) {
	protocols := []string{"native", "http"}
	if testing.Short() {
		protocols = protocols[:1]
	}
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) { test(t, protocol) })
	}
}

// checkStored checks that the tables have every acknowledged span exactly once and no other span
// than those that were sent, and that the tables that views fill have counted the same.
func checkStored(t *testing.T, s *engine.Server, sent *harness.SentSpans) {
	t.Helper()
	counts := storedSpans(t, s)
	acknowledged, stored := sent.CheckCounts(t, func(trace string) map[string]int { return counts[trace] })
	if t.Failed() {
		t.Fatal("the table payload differs")
	}
	const same = "trace_id, start, duration, service, name, count() FROM tracing."
	const by = " GROUP BY trace_id, start, duration, service, name"
	for _, pair := range [][2]string{{"spans", "payload"}, {"payload", "spans"}} {
		only := s.Exec(t, "SELECT count() FROM (SELECT "+same+pair[0]+by+" EXCEPT SELECT "+same+pair[1]+by+")")
		if strings.TrimSpace(only) != "0" {
			t.Fatalf("%s spans of the table %s are not in %s, or not as often", strings.TrimSpace(only), pair[0], pair[1])
		}
	}
	for _, table := range []string{"bounds", "minutes", "hours"} {
		n := strings.TrimSpace(s.Exec(t, "SELECT sum(spans) FROM tracing."+table))
		if n != strconv.Itoa(stored) {
			t.Errorf("the table %s has counted %s spans, %d are stored", table, n, stored)
		}
	}
	t.Logf("%d spans acknowledged, %d stored, 0 lost, 0 twice", acknowledged, stored)
}

// storedSpans returns how often each span is in the table of payload, by trace and span id.
func storedSpans(t *testing.T, s *engine.Server) map[string]map[string]int {
	t.Helper()
	counts := map[string]map[string]int{}
	rows := s.Exec(t, "SELECT lower(hex(trace_id)), lower(hex(substring(ids, 1, 8))) AS span, count() "+
		"FROM tracing.payload GROUP BY trace_id, span")
	for row := range strings.Lines(rows) {
		var trace, span string
		var n int
		if _, err := fmt.Sscan(row, &trace, &span, &n); err != nil {
			t.Fatal(err)
		}
		if counts[trace] == nil {
			counts[trace] = map[string]int{}
		}
		counts[trace][span] = n
	}
	return counts
}
