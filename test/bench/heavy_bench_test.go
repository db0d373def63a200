package bench_test

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

const benchHeavyConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
processors: {batch: }
exporters: {disk: {reserve: 0}}
extensions: {query: {storage: disk, http: {endpoint: "localhost:0"}}}
service:
  data_dir: %q
  limits: {inflight: 128MiB}
  extensions: [query]
  pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [disk]}}
`

// The load of BenchmarkHeavy.
const (
	heavyTrace   = 500_000 // spans of the largest trace
	heavyKeySpan = 25_000  // spans with unique keys, of which each has at least 8
	heavySpans   = 500_000 // other spans
	heavyClients = 36
	heavyRate    = 50_000 // spans per second
	heavyTime    = 30 * time.Second
)

// BenchmarkHeavy queries a store that holds one trace of 500,000 spans and 200,000 distinct keys
// with 36 clients, which send expensive requests to all routes as fast as they are answered, while
// 50,000 spans per second arrive. It reports the peak memory of the server and the soft memory
// limit that the server has announced, the time until requests are refused as overloaded, and the
// rate of acknowledged spans as a share of the rate without queries. All share the machine. The
// answers of each route are written to standard error.
func BenchmarkHeavy(b *testing.B) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		b.Skip("needs /proc to read the memory of a running process: ", err)
	}
	for b.Loop() {
		newHeavy(b).measure()
	}
	b.ReportMetric(0, "ns/op")
}

// heavy is a server with expensive data.
type heavy struct {
	b     *testing.B
	p     *harness.Process
	now   time.Time
	data  *bench.Dataset // in one trace
	send  string         // address of the OTLP receiver
	paths []string
	limit int // soft memory limit in MiB

	mu      sync.Mutex
	answers map[string][]heavyAnswer // by path
}

// heavyAnswer is the outcome of one request.
type heavyAnswer struct {
	status int // 0: the connection failed
	took   time.Duration
	bytes  int64
}

func newHeavy(b *testing.B) *heavy {
	b.Helper()
	file := filepath.Join(b.TempDir(), "bench.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, benchHeavyConfig, b.TempDir()), 0o600); err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	h := &heavy{b: b, now: now, data: bench.New(1, now.Add(-30*time.Minute)), answers: map[string][]heavyAnswer{}}
	if path := os.Getenv("TRACING_BENCH_BINARY"); path != "" { // to compare with another build
		h.p = harness.RunExecutable(b, path, "--config", file)
	} else {
		h.p = harness.Run(b, "--config", file)
	}
	text, _ := h.p.Await("msg", "set soft memory limit")["limit"].(string)
	var limit pipeline.ByteSize
	if err := limit.UnmarshalText([]byte(text)); err != nil {
		b.Fatal(err)
	}
	h.limit, h.send = int(limit>>20), h.p.OTLPGRPC()
	h.paths = heavyPaths(h.data, now)
	return h
}

// heavyPaths returns expensive requests to all routes.
func heavyPaths(data *bench.Dataset, now time.Time) []string {
	id, service := data.Trace(0)[0].TraceID.String(), data.Services()[0]
	small := bench.New(3, now.Add(-20*time.Minute)).Trace(50)[0].TraceID.String()
	window := url.Values{"start": {fmt.Sprint(now.Add(-time.Hour).UnixMicro())}, "end": {fmt.Sprint(now.Add(time.Hour).UnixMicro())}}.Encode()
	v3 := "query.start_time_min=" + now.Add(-time.Hour).UTC().Format(time.RFC3339) +
		"&query.start_time_max=" + now.Add(time.Hour).UTC().Format(time.RFC3339)
	q := func(text string) string { return "q=" + url.QueryEscape(text) }
	return []string{
		"/api/traces/" + id, "/api/traces/" + id + "?prettyPrint=true", "/api/v3/traces/" + id, "/tempo/api/traces/" + id,
		"/api/ui/v1/outline/" + id, "/api/traces/" + small,
		"/api/traces?limit=1500&lookback=1h&service=" + service, "/api/v3/traces?query.search_depth=500&" + v3,
		"/api/v3/trace-summaries?query.search_depth=1000&" + v3,
		"/api/ui/v1/search?limit=1000&" + q(`{ error }`), "/api/ui/v1/search?limit=1000&" + q(`{ root } >> { error }`),
		"/api/ui/v1/search?" + q(`{ duration > 1ms } > { duration > 1h }`),
		"/api/ui/v1/heatmap?columns=500&exemplars=100", "/api/ui/v1/facets", "/api/ui/v1/compare?sel_min=1ms",
		"/api/ui/v1/keys", "/api/ui/v1/values?key=http.route", "/tempo/api/search?limit=500&" + q(`{ status = error }`),
		"/tempo/api/v2/search/tags", "/tempo/api/v2/search/tag/name/values", "/api/services", "/api/operations?service=" + service,
		"/api/dependencies?lookback=3600000&endTs=" + fmt.Sprint(now.Add(time.Minute).UnixMilli()),
		"/api/metrics/latencies?quantile=0.95&groupByOperation=true&service=" + service,
		"/api/metrics/calls?groupByOperation=true&" + window + "&service=" + service,
	}
}

func (h *heavy) measure() {
	h.store()
	settled := h.p.WatchMemory()
	alone := h.ingest()
	ctx, peak := h.b.Context(), 0
	var clients sync.WaitGroup
	end := time.Now().Add(heavyTime)
	for i := range heavyClients {
		clients.Go(func() {
			for r := rand.New(rand.NewPCG(1, uint64(i))); time.Now().Before(end) && ctx.Err() == nil; {
				h.ask(h.paths[r.IntN(len(h.paths))])
			}
		})
	}
	both := h.ingest()
	clients.Wait()
	peak = h.p.PeakMemory()
	h.report()
	h.b.ReportMetric(float64(settled), "MiB-before")
	h.b.ReportMetric(float64(peak), "MiB-peak")
	h.b.ReportMetric(float64(h.limit), "MiB-limit")
	h.b.ReportMetric(alone, "alone-spans/s")
	h.b.ReportMetric(both/alone, "together/alone")
}

// store sends the data that is queried.
func (h *heavy) store() {
	for _, part := range []func(yield func(bench.Request) bool){
		h.data.Hostile(bench.OneTrace, heavyTrace, 512),
		bench.New(2, h.now.Add(-10*time.Minute)).Hostile(bench.AllKeys, heavyKeySpan, 512),
		bench.New(3, h.now.Add(-20*time.Minute)).Requests(heavySpans, 512),
	} {
		r, err := load.Run(h.b.Context(), load.Options{Target: h.send, Connections: 4, InFlight: 2, Retry: time.Minute}, part)
		if err != nil || r.Acked != r.Spans {
			h.b.Fatalf("%+v %v", r, err)
		}
	}
}

// ingest sends spans at heavyRate for heavyTime, and returns the rate of acknowledged spans.
func (h *heavy) ingest() float64 {
	start := time.Now()
	paced := func(yield func(bench.Request) bool) {
		sent := 0
		for r := range bench.New(uint64(start.UnixNano()), start).Requests(1<<40, 512) {
			time.Sleep(time.Until(start.Add(time.Duration(sent) * time.Second / heavyRate)))
			if sent += r.Spans; time.Since(start) > heavyTime || !yield(r) {
				return
			}
		}
	}
	r, err := load.Run(h.b.Context(), load.Options{Target: h.send, Connections: 4, InFlight: 2, Retry: time.Minute}, paced)
	if err != nil || r.Acked != r.Spans {
		h.b.Errorf("%+v %v", r, err)
	}
	return float64(r.Acked) / time.Since(start).Seconds()
}

// ask sends a request and reads the response.
func (h *heavy) ask(path string) {
	start := time.Now()
	var a heavyAnswer
	r, err := http.Get(h.p.QueryURL() + path)
	if err == nil {
		a.status = r.StatusCode
		if a.bytes, err = io.Copy(io.Discard, r.Body); err != nil {
			a.status = 0
		}
		r.Body.Close()
	}
	a.took = time.Since(start)
	h.mu.Lock()
	route, _, _ := strings.Cut(path, "?")
	h.answers[route] = append(h.answers[route], a)
	h.mu.Unlock()
	if a.status == http.StatusTooManyRequests {
		time.Sleep(time.Second / 4)
	}
}

// report logs the responses of each route and reports how long refused requests waited.
func (h *heavy) report() {
	refused, good, bad := []time.Duration{0}, 0, 0
	var log strings.Builder
	for _, route := range slices.Sorted(maps.Keys(h.answers)) {
		count := map[int]int{}
		var slowest heavyAnswer
		refusedAfter := time.Duration(0)
		for _, a := range h.answers[route] {
			count[a.status]++
			slowest = slices.MaxFunc([]heavyAnswer{slowest, a}, func(a, b heavyAnswer) int { return cmp.Compare(a.took, b.took) })
			switch a.status {
			case http.StatusOK:
				good++
			case http.StatusTooManyRequests:
				refused = append(refused, a.took)
				refusedAfter = max(refusedAfter, a.took)
			default:
				bad++
			}
		}
		fmt.Fprintf(&log, "\n%-60s %v, slowest %d in %s with %d bytes, refused within %s", route, count,
			slowest.status, slowest.took.Round(time.Millisecond), slowest.bytes, refusedAfter.Round(time.Millisecond))
	}
	fmt.Fprintln(os.Stderr, log.String()) // the log of a benchmark is cut after ten lines
	slices.Sort(refused)
	h.b.ReportMetric(float64(good), "answers")
	h.b.ReportMetric(float64(len(refused)-1), "refused")
	h.b.ReportMetric(float64(bad), "other")
	h.b.ReportMetric(refused[len(refused)*99/100].Seconds(), "refused-p99-s")
	h.b.ReportMetric(refused[len(refused)-1].Seconds(), "refused-max-s")
}
