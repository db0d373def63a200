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

// reloads is how often TestReload exchanges the configuration.
const reloads = 100

// reloadedConfig returns the i-th configuration: processors and exporters come, go and change, the store itself now and then; the receiver, the
// query service and admin stay.
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

// A hundred configurations under load, by SIGHUP: no connection is refused, and every span that was acknowledged is found. A file with a mistake
// changes nothing, and says so.
func TestReload(t *testing.T) {
	harness.SkipShort(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "tracing.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(reloadedConfig(0, dir))
	p := harness.Run(t, "--config", file)
	p.Await("msg", "Health Check state change", "status", "ready")
	admin := "http://" + p.Address("admin", "http")

	l := harness.NewLedger()
	steady := harness.StartPacedLoad(t, p.Address("otlp", "protocols.grpc"), 1, l)
	callers := startCallers(t, "http://"+p.Address("otlp", "protocols.http")+"/v1/traces", l)
	began := time.Now()
	for i := 1; i <= reloads; i++ {
		write(reloadedConfig(i, dir))
		hangUp(p, admin, i)
		if i == reloads/2 {
			write("receivers: {otlp: }\nexporters: {disc: }\n")
			hangUp(p, admin, i)
			if s := configurationOf(t, admin); !strings.Contains(s.Problem, file+`:2:13: exporters: unknown exporter type "disc"`) {
				t.Errorf("status %+v", s)
			}
		}
	}
	took := time.Since(began)
	steady.End()
	requests := callers()
	if steady.Err != nil || steady.Result.Refused > 0 {
		t.Errorf("gRPC: %v, %d spans were refused: %v", steady.Err, steady.Result.Refused, steady.Result.Failures)
	}
	if s := configurationOf(t, admin); s.Reloads != reloads || s.Problem != "" {
		t.Errorf("status %+v", s)
	}
	hangUp(p, admin, reloads) // nothing has changed
	acked, found := l.Check(t, "http://"+p.LatestAddress("query", "http"))
	p.Terminate()
	if line := p.Await("msg", "final accounting of spans"); line["balanced"] != true {
		t.Errorf("%v", line)
	}
	t.Logf("%d reloads in %v, over %d requests on connections of their own and %.0f spans/s: %d spans acknowledged, %d found", reloads,
		took.Round(time.Millisecond), requests, steady.Rate(), acked, found)
	http.DefaultClient.CloseIdleConnections()
}

// hangUp sends a SIGHUP and returns when the process has done what follows from it.
func hangUp(p *harness.Process, admin string, reloads int) {
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
	if err := p.Signal(syscall.SIGHUP); err != nil {
		p.T.Fatal(err)
	}
	for loads() == before {
		time.Sleep(5 * time.Millisecond)
	}
	if s := configurationOf(p.T, admin); s.Reloads != reloads {
		p.T.Fatalf("reload %d: %+v", reloads, s)
	}
}

func configurationOf(t testing.TB, admin string) status.Reload {
	t.Helper()
	resp, err := http.Get(admin + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var s status.Report
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s.Configuration
}

// startCallers posts requests, each on a connection of its own, until the returned function is called, which returns how many there were. Each
// must be taken.
func startCallers(t *testing.T, url string, l *harness.Ledger) (end func() int64) {
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
				l.Note(t, r.Body, false)
				if err := post(client, url, r.Body); err != nil {
					t.Error(err)
					continue
				}
				l.Note(t, r.Body, true)
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

// With service.watch a changed file is enough.
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
	p.Await("msg", "Health Check state change", "status", "ready")
	for i, text := range [][]byte{config(11), []byte("receivers: ["), config(12)} {
		if err := os.WriteFile(file+".new", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
		for n := 0; n <= i; {
			time.Sleep(5 * time.Millisecond)
			n = int(harness.Metrics(t, "http://"+p.Address("admin", "http"))[`tracing_config_reloads_total{result="applied"}`] +
				harness.Metrics(t, "http://"+p.Address("admin", "http"))[`tracing_config_reloads_total{result="refused"}`])
		}
	}
	p.Terminate()
	http.DefaultClient.CloseIdleConnections()
}
