package bench_test

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

const benchTogetherConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
processors: {batch: }
exporters: {disk: {reserve: 0}}
extensions: {query: {storage: disk, http: {endpoint: "localhost:0"}}}
service:
  data_dir: %q
  extensions: [query]
  pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [disk]}}
`

// phaseTime is the duration of each phase of BenchmarkTogether.
const phaseTime = 10 * time.Second

// queryRate is the number of queries per second. Queries do not wait for earlier answers.
const queryRate = 50

// BenchmarkTogether sends spans and queries to a server at the same time. Its phases are: spans as
// fast as possible, queries alone, spans alone at 60 % of the maximum rate, and both together. The
// sender and the clients share the machine with the server. The benchmark reports the achieved rate
// of the last phase as a share of the requested one, and the CPU time per query, alone and together
// with spans. The CPU time of the spans is subtracted.
func BenchmarkTogether(b *testing.B) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		b.Skip("needs /proc to read the CPU time of a running process: ", err)
	}
	for b.Loop() {
		newTogether(b).measure()
	}
	b.ReportMetric(0, "ns/op")
}

// together is a server that receives spans and queries.
type together struct {
	b      *testing.B
	p      *harness.Process
	data   *bench.Dataset
	send   string                       // address of the OTLP receiver
	query  string                       // URL of the query API
	stored int                          // number of complete traces in the store
	next   func() (bench.Request, bool) // returns the next request of data
}

func newTogether(b *testing.B) *together {
	file := filepath.Join(b.TempDir(), "bench.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, benchTogetherConfig, b.TempDir()), 0o600); err != nil {
		b.Fatal(err)
	}
	t := &together{b: b, p: harness.Run(b, "--config", file), data: bench.New(1, time.Now().Add(-10*time.Minute))}
	t.send, t.query = t.p.OTLPGRPC(), t.p.QueryURL()
	next, stop := iter.Pull(t.data.Requests(1<<40, 512))
	t.next = next
	b.Cleanup(stop)
	return t
}

func (t *together) measure() {
	const warmUp = 2_000_000
	t.spans(warmUp, 0)
	t.stored = t.data.Traces(warmUp / 2) // the other traces may be incomplete

	start := time.Now()
	n := t.spans(warmUp, 0)
	maximum := float64(n) / time.Since(start).Seconds()
	t.settle()

	alone := t.queries()
	t.settle()

	rate := 0.6 * maximum
	before := t.cpu()
	n = t.spans(int(rate*phaseTime.Seconds()), rate)
	perSpan := (t.cpu() - before).Seconds() / float64(n)

	before, start = t.cpu(), time.Now()
	var both queryResult
	var querying sync.WaitGroup
	querying.Go(func() { both = t.queries() })
	n = t.spans(int(rate*phaseTime.Seconds()), rate)
	kept := float64(n) / time.Since(start).Seconds() / rate
	querying.Wait()
	perQuery := ((t.cpu() - before).Seconds() - perSpan*float64(n)) / float64(both.n)

	t.b.ReportMetric(maximum, "max-spans/s")
	t.b.ReportMetric(kept, "kept/sent")
	t.b.ReportMetric(1e3*alone.cpu.Seconds()/float64(alone.n), "alone-CPU-ms/query")
	t.b.ReportMetric(1e3*perQuery, "together-CPU-ms/query")
	t.b.ReportMetric(perQuery/(alone.cpu.Seconds()/float64(alone.n)), "together/alone")
	t.b.ReportMetric(1e3*alone.median.Seconds(), "alone-p50-ms")
	t.b.ReportMetric(1e3*both.median.Seconds(), "together-p50-ms")
}

// spans sends at least n spans at a rate in spans per second, or as fast as possible if the rate is
// 0. It returns the number of acknowledged spans.
func (t *together) spans(n int, rate float64) int {
	t.b.Helper()
	start := time.Now()
	paced := func(yield func(bench.Request) bool) {
		for sent := 0; sent < n; {
			r, _ := t.next()
			if rate > 0 {
				time.Sleep(time.Until(start.Add(time.Duration(float64(sent) / rate * float64(time.Second)))))
			}
			sent += r.Spans
			if !yield(r) {
				return
			}
		}
	}
	r, err := load.Run(t.b.Context(), load.Options{Target: t.send, Connections: 4, InFlight: 2, Retry: time.Minute}, paced)
	if err != nil || r.Acked != r.Spans {
		t.b.Fatalf("%+v %v", r, err)
	}
	return r.Acked
}

// queryResult is the result of a phase with queries.
type queryResult struct {
	n      int
	cpu    time.Duration // of the server in this phase
	median time.Duration // latency, from the scheduled time of a query
}

// queries sends queries for phaseTime: alternately a trace by id and a search by service.
func (t *together) queries() queryResult {
	random := rand.New(rand.NewPCG(1, 2))
	services := t.data.Services()
	var mu sync.Mutex
	var took []time.Duration
	var sent sync.WaitGroup
	before, start := t.cpu(), time.Now()
	for i := range int(phaseTime.Seconds() * queryRate) {
		due := start.Add(time.Duration(i) * time.Second / queryRate)
		url := t.query + "/api/traces?limit=20&lookback=1h&service=" + services[random.IntN(len(services))]
		if i%2 == 0 {
			url = fmt.Sprintf("%s/api/traces/%s", t.query, t.data.Trace(random.IntN(t.stored))[0].TraceID)
		}
		time.Sleep(time.Until(due))
		sent.Go(func() {
			if err := get(url); err != nil {
				t.b.Error(err)
			}
			mu.Lock()
			took = append(took, time.Since(due))
			mu.Unlock()
		})
	}
	sent.Wait()
	slices.Sort(took)
	return queryResult{len(took), t.cpu() - before, took[len(took)/2]}
}

// get sends a GET request and returns an error unless the response has status 200 and a body.
func get(url string) error {
	r, err := http.Get(url)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	n, err := io.Copy(io.Discard, r.Body)
	if err == nil && (r.StatusCode != http.StatusOK || n == 0) {
		err = fmt.Errorf("%s: %s, %d bytes", url, r.Status, n)
	}
	return err
}

// settle waits until the server uses less than a tenth of a processor.
func (t *together) settle() {
	for before := t.cpu(); ; {
		time.Sleep(time.Second)
		now := t.cpu()
		if now-before < time.Second/10 {
			return
		}
		before = now
	}
}

// cpu returns the CPU time that the server has used.
func (t *together) cpu() time.Duration {
	t.b.Helper()
	return cpuOf(t.b, t.p)
}

// cpuOf returns the CPU time that a process has used.
func cpuOf(b *testing.B, p *harness.Process) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	const user, system, tick = 11, 12, 10 * time.Millisecond // indexes of fields after the name; unit of Linux
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	u, err1 := strconv.Atoi(fields[user])
	s, err2 := strconv.Atoi(fields[system])
	if err := cmp.Or(err1, err2); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u+s) * tick
}
