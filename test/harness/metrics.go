package harness

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// metrics returns the samples of /metrics by name and labels as they are written.
func Metrics(t testing.TB, adminURL string) map[string]float64 {
	t.Helper()
	status, body := Fetch(t, adminURL+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("/metrics: %d %s", status, body)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		var v float64
		if _, err := fmt.Sscan(line[i+1:], &v); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out[line[:i]] = v
	}
	return out
}

// checkAccounting checks the law: receivers received = accepted + refused, exporters in = sent + refused; and that nothing is in flight.
func CheckAccounting(t *testing.T, m map[string]float64) {
	t.Helper()
	sums := map[string]float64{}
	for k, v := range m {
		for _, o := range []string{"received", "accepted", "in", "sent", "refused"} {
			for _, kind := range []string{"receiver", "exporter"} {
				if strings.HasPrefix(k, "tracing_pipeline_spans_total{") && strings.Contains(k, `kind="`+kind+`"`) && strings.Contains(k, `outcome="`+o+`"`) {
					sums[kind+" "+o] += v
				}
			}
		}
	}
	if sums["receiver received"] != sums["receiver accepted"]+sums["receiver refused"] {
		t.Errorf("receivers do not balance: %v", sums)
	}
	if sums["exporter in"] != sums["exporter sent"]+sums["exporter refused"] {
		t.Errorf("exporters do not balance: %v", sums)
	}
	if m["tracing_inflight_bytes"] != 0 {
		t.Errorf("%v bytes are still in flight", m["tracing_inflight_bytes"])
	}
}
