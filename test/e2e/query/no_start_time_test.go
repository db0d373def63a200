package query_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	neturl "net/url"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// A Zipkin span without a timestamp sets neither the start of its trace nor a warning about clocks,
// in memory and on disk, and before and after a restart.
func TestSpanWithoutStartTime(t *testing.T) {
	const trace = "0000000000000000000000000000002a"
	begin := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	micros := begin.UnixMicro()
	zipkin := fmt.Sprintf(`[
		{"traceId":%[1]q,"id":"1","name":"root","timestamp":%[2]d,"duration":306000000,"localEndpoint":{"serviceName":"shop","ipv4":"10.0.0.1"}},
		{"traceId":%[1]q,"id":"2","parentId":"1","name":"none","duration":7,"localEndpoint":{"serviceName":"bank","ipv4":"10.0.0.2"}},
		{"traceId":%[1]q,"id":"3","parentId":"2","name":"leaf","timestamp":%[2]d,"duration":5,"localEndpoint":{"serviceName":"rent","ipv4":"10.0.0.3"}}]`,
		trace, micros)
	check := func(t *testing.T, url string) {
		t.Helper()
		window := fmt.Sprintf("query.startTimeMin=%s&query.startTimeMax=%s", begin.Add(-time.Hour).UTC().Format(time.RFC3339),
			begin.Add(time.Hour).UTC().Format(time.RFC3339))
		_, body := harness.Fetch(t, url+"/api/v3/trace-summaries?query.serviceName=shop&"+window)
		var found struct {
			Summaries []struct {
				Root       string `json:"rootOperationName"`
				Start, End string
				Min        string `json:"minStartTimeUnixNano"`
				Max        string `json:"maxEndTimeUnixNano"`
				Spans      int    `json:"spanCount"`
			}
		}
		if err := json.Unmarshal(body, &found); err != nil || len(found.Summaries) != 1 {
			t.Fatalf("%v: %s", err, body)
		}
		s := found.Summaries[0]
		if want := fmt.Sprint(begin.UnixNano(), begin.Add(306*time.Second).UnixNano()); fmt.Sprint(s.Min+" "+s.Max) != want ||
			s.Spans != 3 || s.Root != "root" {
			t.Errorf("%+v, want %s", s, want)
		}
		_, body = harness.Fetch(t, url+"/api/traces/"+trace)
		if text := string(body); strings.Contains(text, "calculated delta") || strings.Count(text, "span has no start time") != 1 ||
			!strings.Contains(text, `"startTime":0,`) {
			t.Errorf("trace: %s", text)
		}
		_, body = harness.Fetch(t, url+"/api/ui/v1/outline/"+trace)
		if want := fmt.Sprintf(`"start":"%d","duration":%d,`, begin.UnixNano(), 306*time.Second); !strings.Contains(string(body), want) {
			t.Errorf("outline: %s, want %s", body, want)
		}
		search := neturl.Values{"q": {"{ trace.duration > 5m && trace.duration < 6m }"},
			"start": {fmt.Sprint(micros - 1)}, "end": {fmt.Sprint(micros + 1)}}
		if _, body = harness.Fetch(t, url+"/api/traces?"+search.Encode()); strings.Count(string(body), `"spanID"`) < 3 {
			t.Errorf("search by duration: %s", body)
		}
	}
	for _, store := range []string{"memory", "disk"} {
		t.Run(store, func(t *testing.T) {
			dir := t.TempDir()
			start := func() *inprocess.Program {
				return inprocess.StartYAML(t, fmt.Sprintf(`
receivers: {zipkin: {endpoint: "localhost:0"}}
exporters: {%[1]s: }
extensions: {query: {storage: %[1]s, http: {endpoint: "localhost:0"}}}
service: {data_dir: %[2]q, extensions: [query], pipelines: {traces: {receivers: [zipkin], exporters: [%[1]s]}}}
`, store, dir))
			}
			p := start()
			url := "http://" + p.Addr("zipkin", "http") + "/api/v2/spans"
			if code, answer := harness.Request(t, http.MethodPost, url, zipkin); code != http.StatusAccepted {
				t.Fatalf("%d %s", code, answer)
			}
			check(t, p.QueryURL())
			if store == "disk" { // in a segment
				if err := p.Stop(); err != nil {
					t.Fatal(err)
				}
				check(t, start().QueryURL())
			}
		})
	}
}
