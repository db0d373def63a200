package clickhouse_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestPresets sends spans to the preset collector-clickhouse while the server is down, starts the
// server, and reads every trace through the preset query-clickhouse. Without the server, the
// collector is ready, because its queue takes spans, and the query service is not.
func TestPresets(t *testing.T) {
	s := engine.Start(t, engine.Options{})
	endpoint := "exporters::clickhouse::endpoints=[" + s.NativeAddr() + "]"
	s.Stop()
	collector := inprocess.StartPreset(t, "collector-clickhouse", endpoint)
	set := bench.New(3, time.Now().Add(-10*time.Minute))
	const spans = 3000
	result, err := load.Run(t.Context(), load.Options{Target: collector.OTLPGRPC(), InFlight: 4}, set.Requests(spans, 200))
	if err != nil || result.Acked != result.Spans {
		t.Fatalf("%+v, %v", result, err)
	}
	query := inprocess.StartPreset(t, "query-clickhouse", endpoint)
	wantReadiness(t, query, http.StatusServiceUnavailable)
	wantReadiness(t, collector, http.StatusOK)
	s.Restart(t)
	harness.Poll(t, "all spans are stored", func() bool {
		out, err := s.Query("SELECT count(), (SELECT sum(spans) FROM tracing.minutes) FROM tracing.spans")
		return err == nil && out == fmt.Sprintf("%d\t%d\n", result.Acked, result.Acked)
	})
	wantReadiness(t, query, http.StatusOK)
	for i := range set.Traces(spans) {
		want := set.Trace(i)
		if got := spansOf(t, query.QueryURL(), want[0].TraceID.String()); got != len(want) {
			t.Errorf("trace %s has %d spans, want %d", want[0].TraceID, got, len(want))
		}
	}
	var services struct{ Data []string }
	get(t, query.QueryURL()+"/api/services", &services)
	want := set.Services()
	slices.Sort(want)
	if slices.Sort(services.Data); !slices.Equal(services.Data, want) {
		t.Errorf("services %q, want %q", services.Data, want)
	}
	s.Stop()
	if status, body := harness.Fetch(t, query.QueryURL()+"/api/services"); status == http.StatusOK {
		t.Errorf("services without a server: %s", body)
	}
	wantReadiness(t, query, http.StatusServiceUnavailable)
}

// wantReadiness waits until a readiness probe of a process gets a status.
func wantReadiness(t *testing.T, p *inprocess.Program, want int) {
	t.Helper()
	harness.Poll(t, fmt.Sprintf("readiness %d", want), func() bool {
		status, _ := harness.Fetch(t, p.AdminURL()+"/readyz")
		return status == want
	})
}

// spansOf returns the number of spans of a trace, or 0 if it does not exist.
func spansOf(t *testing.T, url, id string) (n int) {
	t.Helper()
	var answer struct {
		Data []struct{ Spans []struct{} }
	}
	get(t, url+"/api/traces/"+id, &answer)
	for _, trace := range answer.Data {
		n += len(trace.Spans)
	}
	return n
}

// get decodes the JSON at a URL, or reports an error.
func get(t *testing.T, url string, into any) {
	t.Helper()
	status, body := harness.Fetch(t, url)
	if status != http.StatusOK {
		t.Errorf("%s: status %d: %s", url, status, body)
		return
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Errorf("%s: %v", url, err)
	}
}
