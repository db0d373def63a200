package harness

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Metrics returns the samples of /metrics by name and labels, written as in the response.
func Metrics(tb testing.TB, adminURL string) map[string]float64 {
	tb.Helper()
	status, body := Fetch(tb, adminURL+"/metrics")
	if status != http.StatusOK {
		tb.Fatalf("/metrics: %d %s", status, body)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		var v float64
		if _, err := fmt.Sscan(line[i+1:], &v); err != nil {
			tb.Fatalf("%q: %v", line, err)
		}
		out[line[:i]] = v
	}
	return out
}

// CheckAccounting waits until nothing is in flight (a client can have its response before the
// server releases the memory of the request), checks that the metrics account for every span, and
// returns them. For receivers, received = accepted + refused. For exporters, in = sent + refused.
func CheckAccounting(tb testing.TB, adminURL string) map[string]float64 {
	tb.Helper()
	var metrics map[string]float64
	Poll(tb, "memory of requests is released", func() bool {
		metrics = Metrics(tb, adminURL)
		return metrics["tracing_inflight_bytes"] == 0
	})
	sums := map[string]float64{}
	for sample, v := range metrics {
		if !strings.HasPrefix(sample, "tracing_pipeline_spans_total{") {
			continue
		}
		for _, outcome := range []string{"received", "accepted", "in", "sent", "refused"} {
			for _, kind := range []string{"receiver", "exporter"} {
				if strings.Contains(sample, `kind="`+kind+`"`) && strings.Contains(sample, `outcome="`+outcome+`"`) {
					sums[kind+" "+outcome] += v
				}
			}
		}
	}
	if sums["receiver received"] != sums["receiver accepted"]+sums["receiver refused"] {
		tb.Errorf("receivers do not balance: %v", sums)
	}
	if sums["exporter in"] != sums["exporter sent"]+sums["exporter refused"] {
		tb.Errorf("exporters do not balance: %v", sums)
	}
	return metrics
}

// Queued returns the number of spans in the sending queue of a process that has one.
func Queued(tb testing.TB, p *Process) float64 {
	tb.Helper()
	for sample, v := range Metrics(tb, p.AdminURL()) {
		if strings.HasPrefix(sample, "tracing_queue_spans{") {
			return v
		}
	}
	tb.Fatal("no metric tracing_queue_spans")
	return 0
}

// AwaitQueue waits until the sending queue of a process holds at most the given number of spans.
func AwaitQueue(tb testing.TB, p *Process, spans float64) {
	tb.Helper()
	Poll(tb, fmt.Sprintf("at most %v spans in the queue", spans), func() bool { return Queued(tb, p) <= spans })
}
