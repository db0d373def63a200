package delivery_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/status"
	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/harness"
)

// reloadedConfig returns the i-th configuration. Processors and exporters are added, removed and
// changed, sometimes also the store. The receiver, the query extension and the admin extension
// stay.
func reloadedConfig(i int, dir string) string {
	processors := []string{"", "batch", "batch/joined", "resource_tags, batch", "batch/joined, resource_tags"}[i%5]
	exporters := []string{"disk", "disk, nop", "disk, memory", "disk, debug"}[i%4]
	return fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}, http: {endpoint: "localhost:0"}}}}
processors: {batch: {concurrency: %d}, batch/joined: {timeout: 20ms}, resource_tags: {tags: {round: "%d"}}}
exporters: {disk: {reserve: 0, cache: %dMiB}, nop: , memory: {max_bytes: %dMiB}, debug: }
extensions: {query: {storage: disk, http: {endpoint: "localhost:0"}}, admin: {endpoint: "localhost:0"}}
service:
  data_dir: %q
  extensions: [query, admin]
  pipelines: {traces: {receivers: [otlp], processors: [%s], exporters: [%s]}}
`, 1+i%3, i%7, 8+i/10, 10+i, dir, processors, exporters)
}

// TestReload reloads changing configurations by SIGHUP under load. No request is refused, and every
// acknowledged span is found. An invalid file changes nothing and is reported.
func TestReload(t *testing.T) {
	harness.SkipIfShort(t)
	const reloads = 60 // every combination of processors and exporters
	dir := t.TempDir()
	file := filepath.Join(dir, "tracing.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(reloadedConfig(0, dir))
	p := harness.Run(t, "--config", file)
	p.AwaitReady()
	admin := p.AdminURL()

	l := harness.NewSentSpans()
	steady := harness.StartSteadyLoad(t, p.OTLPGRPC(), 1, l)
	callers := startCallers(t, "http://"+p.OTLPHTTP()+"/v1/traces", l)
	for i := 1; i <= reloads; i++ {
		write(reloadedConfig(i, dir))
		reload(p, admin, i)
		if i == reloads/2 {
			write("receivers: {otlp: }\nexporters: {disc: }\n")
			reload(p, admin, i)
			if s := configurationOf(t, admin); !strings.Contains(s.Problem, file+`:2:13: exporters: unknown exporter type "disc"`) {
				t.Errorf("status %+v", s)
			}
		}
	}
	result := steady.End()
	requests := callers()
	if result.Refused > 0 {
		t.Errorf("gRPC: %d spans were refused: %v", result.Refused, result.Failures)
	}
	if s := configurationOf(t, admin); s.Reloads != reloads || s.Problem != "" {
		t.Errorf("status %+v", s)
	}
	reload(p, admin, reloads) // the configuration is the same
	acked, found := l.Check(t, "http://"+p.LatestAddress("query", "http"))
	p.Terminate()
	p.Accounting()
	t.Logf("%d reloads, %d requests over HTTP, %d spans acknowledged, %d found", reloads, requests, acked, found)
	http.DefaultClient.CloseIdleConnections()
}

// reload sends SIGHUP, waits until the process has reloaded its configuration or failed to, and
// checks the number of successful reloads.
func reload(p *harness.Process, admin string, reloads int) {
	p.T.Helper()
	loads := func() (sum float64) {
		for name, value := range harness.Metrics(p.T, admin) {
			if strings.HasPrefix(name, "tracing_config_reloads_total") {
				sum += value
			}
		}
		return sum
	}
	before := loads()
	p.Signal(syscall.SIGHUP)
	harness.Poll(p.T, "a reload after SIGHUP", func() bool { return loads() > before })
	if s := configurationOf(p.T, admin); s.Reloads != reloads {
		p.T.Fatalf("reload %d: %+v", reloads, s)
	}
}

func configurationOf(tb testing.TB, admin string) status.Reload {
	tb.Helper()
	_, body := harness.Fetch(tb, admin+"/status")
	var s status.Report
	if err := json.Unmarshal(body, &s); err != nil {
		tb.Fatal(err)
	}
	return s.Configuration
}

// startCallers sends requests over HTTP, each on a new connection, until the returned function is
// called, which returns their number. Every request must be accepted.
func startCallers(t *testing.T, url string, l *harness.SentSpans) (end func() int64) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	var requests atomic.Int64
	var callers sync.WaitGroup
	stop := make(chan struct{})
	for i := range 2 {
		callers.Go(func() {
			for r := range bench.New(uint64(100+i), time.Now()).Requests(50_000, 10) {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
				}
				l.Record(t, r.Body, false)
				if err := post(client, url, r.Body); err != nil {
					t.Error(err)
					continue
				}
				l.Record(t, r.Body, true)
				requests.Add(1)
			}
		})
	}
	return func() int64 {
		close(stop)
		callers.Wait()
		return requests.Load()
	}
}

func post(client *http.Client, url string, body []byte) error {
	resp, err := client.Post(url, "application/x-protobuf", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s %w", resp.Status, text, err)
	}
	return nil
}

// TestWatch checks that service.watch reloads a changed file.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tracing.yaml")
	config := func(size int) []byte {
		return fmt.Appendf(nil, "receivers: {otlp: {protocols: {http: {endpoint: 'localhost:0'}}}}\nexporters: {memory: {max_bytes: %dMiB}}\n"+
			"extensions: {admin: {endpoint: 'localhost:0'}}\nservice: {extensions: [admin], watch: true, watch_interval: 20ms,\n"+
			"  pipelines: {traces: {receivers: [otlp], exporters: [memory]}}}\n", size)
	}
	if err := os.WriteFile(file, config(10), 0o600); err != nil {
		t.Fatal(err)
	}
	p := harness.Run(t, "--config", file)
	p.AwaitReady()
	for i, text := range [][]byte{config(11), []byte("receivers: ["), config(12)} {
		if err := os.WriteFile(file+".new", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
		harness.Poll(t, "a reload of the changed file", func() bool {
			m := harness.Metrics(t, p.AdminURL())
			return m[`tracing_config_reloads_total{result="applied"}`]+m[`tracing_config_reloads_total{result="refused"}`] > float64(i)
		})
	}
	p.Terminate()
	http.DefaultClient.CloseIdleConnections()
}
