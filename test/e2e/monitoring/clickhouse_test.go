package monitoring_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
	"github.com/tracing-backend/tracing/test/harness"
)

// aboutClickHouse reports whether a query needs a process that stores spans in ClickHouse.
func aboutClickHouse(expr string) bool { return strings.Contains(expr, "tracing_clickhouse_") }

// Every dashboard query about ClickHouse returns data of a collector whose server was down for a
// while. Meanwhile the alert for failing inserts is pending.
func TestClickHouseDashboardHasData(t *testing.T) {
	clickhouse := engine.Start(t, engine.Options{})
	path := requirePrometheus(t)
	p := harness.Run(t, harness.PresetArgs("collector-clickhouse", t.TempDir(),
		harness.SetArgs("exporters::clickhouse::endpoints=["+clickhouse.NativeAddr()+"]")...)...)
	p.AwaitReady()
	prometheus := startPrometheus(t, path, map[string]string{"tracing-collector": p.Address("admin", "http")})
	queries := dashboardQueries(t)
	maps.DeleteFunc(queries, func(_, expr string) bool { return !aboutClickHouse(expr) })
	if len(queries) < 3 {
		t.Fatalf("only %d queries found", len(queries))
	}
	stop := repeat(func() {
		try(http.MethodPost, "http://"+p.OTLPHTTP()+"/v1/traces", harness.JSONSpan(newTraceID(), "checkout", "pay", time.Now(), time.Second))
	})
	defer stop()
	harness.Poll(t, "inserted spans", func() bool { return prometheus.has(`tracing_clickhouse_inserted_rows_total > 0`) })
	clickhouse.Stop()
	harness.Poll(t, "alert for failing inserts", func() bool { return prometheus.has(`ALERTS{alertname="TracingClickHouseInsertsFail"}`) })
	clickhouse.Restart(t)
	checkQueries(t, prometheus, queries)
}
