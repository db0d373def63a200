package monitoring_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/test/harness"
)

// Every query of every dashboard returns data of a real installation under traffic, which has lost
// its collector for a while. The alerts notice that. [TestClickHouseDashboardHasData] checks the
// queries about ClickHouse, [TestKafkaDashboardHasData] those about Kafka.
func TestDashboardsHaveData(t *testing.T) {
	harness.SkipIfShort(t)
	path := requirePrometheus(t)
	in := install(t)
	prometheus := startPrometheus(t, path, in.targets())
	stop := in.sendTraffic()
	defer stop()
	harness.Poll(t, "stored spans", func() bool { return prometheus.has(`tracing_disk_segment_spans > 0`) })
	checkNoAlerts(t, prometheus)
	in.collector.Kill()
	for _, symptom := range []string{`ALERTS{alertname="TracingDown",job="tracing-collector"}`,
		`ALERTS{alertname="TracingCanaryWritesFail"}`, `ALERTS{alertname="TracingDiskFull",job="tracing-full"}`,
		`ALERTS{alertname="TracingNotReady",job="tracing-full"}`, `ALERTS{alertname="TracingSpansRefused",job="tracing-full"}`,
		`tracing_queue_oldest_seconds{job="tracing-agent"} > 3`,
		`tracing_queue_usage_ratio{job="tracing-gateway"} > 0`} {
		harness.Poll(t, symptom, func() bool { return prometheus.has(symptom) })
	}
	in.startCollector()
	harness.Poll(t, "the end of the alert", func() bool { return !prometheus.has(`ALERTS{alertname="TracingDown"}`) })
	queries := dashboardQueries(t)
	all := len(queries)
	maps.DeleteFunc(queries, func(name, expr string) bool {
		if aboutClickHouse(expr) {
			t.Logf("%s: not checked here, because it needs a ClickHouse server", name)
		}
		return aboutClickHouse(expr) || aboutKafka(expr)
	})
	t.Logf("%d queries, %d of them checked", all, len(queries))
	metrics := alertMetrics(t)
	maps.DeleteFunc(metrics, func(_, metric string) bool { return aboutKafka(metric) })
	maps.Copy(queries, metrics)
	checkQueries(t, prometheus, queries)
}

// checkNoAlerts waits until no alert is pending for the processes that work: a slow scrape makes
// one pending for a while. One is expected, because the traffic has requests to the wrong port.
func checkNoAlerts(t *testing.T, prometheus *server) {
	t.Helper()
	var alerts []sample
	defer func() {
		for _, alert := range alerts {
			t.Errorf("alert without a symptom: %v", alert.Metric)
		}
	}()
	harness.Poll(t, "no alerts", func() bool {
		alerts = prometheus.query(`ALERTS{job!="tracing-full",alertname!="TracingRequestsRefused"}`)
		return len(alerts) == 0
	})
}

var metricName = regexp.MustCompile(`\btracing_[a-z_]+[a-z]\b`)

// alertMetrics returns a query for each metric that alerts and runbooks name.
func alertMetrics(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, file := range append(deployed(t, "alerts.yaml"), runbooks(t)...) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, metric := range metricName.FindAllString(string(content), -1) {
			if !aboutClickHouse(metric) {
				out[filepath.Base(file)+", "+metric] = metric
			}
		}
	}
	if len(out) < 40 {
		t.Fatalf("only %d metrics found", len(out))
	}
	return out
}

// checkQueries waits until every query has returned data.
func checkQueries(t *testing.T, prometheus *server, queries map[string]string) {
	t.Helper()
	t.Cleanup(func() {
		for name, expr := range queries {
			t.Errorf("%s: no data for %s", name, expr)
		}
	})
	harness.Poll(t, "data for every query", func() bool {
		maps.DeleteFunc(queries, func(_, expr string) bool { return prometheus.has(expr) })
		return len(queries) == 0
	})
}

// dashboardQueries returns all queries by dashboard, panel and letter, with the variables of
// Grafana replaced.
func dashboardQueries(t *testing.T) map[string]string {
	t.Helper()
	variables := strings.NewReplacer("$job", ".+", "$instance", ".+", "$__rate_interval", "20s")
	out := map[string]string{}
	for _, file := range deployed(t, "dashboards/*.json") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Panels []struct {
				Title, Type string
				Targets     []struct{ RefID, Expr string }
			}
		}
		if err := json.Unmarshal(content, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, p := range d.Panels {
			if len(p.Targets) == 0 && p.Type != "row" {
				t.Errorf("%s: %s has no query", file, p.Title)
			}
			for _, target := range p.Targets {
				out[fmt.Sprintf("%s, %s, %s", filepath.Base(file), p.Title, target.RefID)] = variables.Replace(target.Expr)
			}
		}
	}
	if len(out) < 50 {
		t.Fatalf("only %d queries found", len(out))
	}
	return out
}

// clients knows the addresses that applications and users call. They stay the same when the
// collector is restarted.
type clients struct {
	t          *testing.T
	http       []string // OTLP over HTTP
	logs       string   // the same, for logs
	grpc       string   // OTLP over gRPC
	datagrams  string
	strategies string
	query      string
}

// sendTraffic sends spans of all kinds, wrong requests and queries until stop is called.
func (in *installation) sendTraffic() (stop func()) {
	c := clients{t: in.t, grpc: in.collector.OTLPGRPC(), datagrams: in.agent.Address("thriftudp", "compact"),
		http:       []string{in.gateway.OTLPHTTP(), in.collector.OTLPHTTP(), in.full.OTLPHTTP()},
		logs:       in.gateway.OTLPHTTP(),
		strategies: in.agent.Address("sampling", "http"), query: in.query.QueryURL()}
	return repeat(c.sendOnce)
}

// repeat calls send 20 times a second until stop is called.
func repeat(send func()) (stop func()) {
	done, ended := make(chan struct{}), sync.WaitGroup{}
	ended.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				send()
			}
		}
	})
	return sync.OnceFunc(func() { close(done); ended.Wait() })
}

// sendOnce sends a request of each kind. Processes that are down at the moment do not answer.
func (c *clients) sendOnce() {
	id := newTraceID()
	body := harness.JSONSpan(id, "checkout", "pay", time.Now(), time.Second)
	for _, address := range c.http {
		try(http.MethodPost, "http://"+address+"/v1/traces", body)
	}
	try(http.MethodPost, "http://"+c.logs+"/v1/logs", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{}]}]}]}`)
	c.sendDatagram()
	try(http.MethodPost, "http://"+c.grpc+"/v1/traces", body) // the wrong port
	try(http.MethodGet, "http://"+c.strategies+"/sampling?service=checkout", "")
	for _, path := range []string{"/api/services", "/api/services/checkout/operations", "/api/traces?service=checkout", "/api/traces/" + id} {
		try(http.MethodGet, c.query+path, "")
	}
}

func newTraceID() string { return fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()) }

// try sends a request and ignores the response.
func try(method, url, body string) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
	}
}

// sendDatagram sends a span to the agent.
func (c *clients) sendDatagram() {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "datagrams")
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	var id [16]byte
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	span.SetTraceID(id)
	span.SetSpanID([8]byte(id[8:]))
	span.SetName("send")
	conn, err := net.Dial("udp", c.datagrams)
	if err != nil {
		return
	}
	defer conn.Close()
	conn.Write(harness.Datagram(c.t, harness.JaegerBatch(td))) //nolint:errcheck // datagrams may be lost
}
