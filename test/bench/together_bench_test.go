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

// togetherTime is how long each phase of BenchmarkTogether lasts.
const togetherTime = 10 * time.Second

// queryRate is how many queries a second are asked, whether earlier ones have been answered or not.
const queryRate = 50

// BenchmarkTogether asks queries of a server while it stores spans. Its phases: as many spans as the machine takes (the maximum), queries
// alone, spans alone at 60 % of the maximum, and both together; sender and client share the machine. Reported are the rate of spans that
// was kept in the last phase, as a share of what was sent, and the CPU time of a query: alone, and together with spans, of which the CPU
// time is subtracted.
func BenchmarkTogether(b *testing.B) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		b.Skip("the CPU time of a process that runs is read from /proc: ", err)
	}
	for b.Loop() {
		newTogether(b).measure()
	}
	b.ReportMetric(0, "ns/op")
}

// together is a server under both kinds of load.
type together struct {
	*testing.B
	p      *harness.Process
	data   *bench.Dataset
	send   string // address for spans
	ask    string // URL for queries
	stored int    // traces of data that are stored
	next   func() (bench.Request, bool)
}

func newTogether(b *testing.B) *together {
	file := filepath.Join(b.TempDir(), "bench.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, benchTogetherConfig, b.TempDir()), 0o600); err != nil {
		b.Fatal(err)
	}
	t := &together{B: b, p: harness.Run(b, "--config", file), data: bench.New(1, time.Now().Add(-10*time.Minute))}
	t.send, t.ask = t.p.Address("otlp", "protocols.grpc"), "http://"+t.p.Address("query", "http")
	next, stop := iter.Pull(t.data.Requests(1<<40, 512))
	t.next = next
	b.Cleanup(stop)
	return t
}

func (t *together) measure() {
	const warmUp = 2_000_000
	t.spans(warmUp, 0)
	t.stored = t.data.Traces(warmUp / 2) // those that certainly came whole

	start := time.Now()
	n := t.spans(warmUp, 0)
	most := float64(n) / time.Since(start).Seconds()
	t.settle()

	alone := t.queries()
	t.settle()

	rate := 0.6 * most
	before := t.cpu()
	n = t.spans(int(rate*togetherTime.Seconds()), rate)
	perSpan := (t.cpu() - before).Seconds() / float64(n)

	before, start = t.cpu(), time.Now()
	var both answers
	var asking sync.WaitGroup
	asking.Go(func() { both = t.queries() })
	n = t.spans(int(rate*togetherTime.Seconds()), rate)
	kept := float64(n) / time.Since(start).Seconds() / rate
	asking.Wait()
	perQuery := ((t.cpu() - before).Seconds() - perSpan*float64(n)) / float64(both.n)

	t.ReportMetric(most, "max-spans/s")
	t.ReportMetric(kept, "kept/sent")
	t.ReportMetric(1e3*alone.cpu.Seconds()/float64(alone.n), "alone-CPU-ms/query")
	t.ReportMetric(1e3*perQuery, "together-CPU-ms/query")
	t.ReportMetric(perQuery/(alone.cpu.Seconds()/float64(alone.n)), "together/alone")
	t.ReportMetric(1e3*alone.median.Seconds(), "alone-p50-ms")
	t.ReportMetric(1e3*both.median.Seconds(), "together-p50-ms")
}

// spans sends that many spans, at a rate (0: as fast as possible), and returns how many were acknowledged.
func (t *together) spans(n int, rate float64) int {
	t.Helper()
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
	r, err := load.Run(t.Context(), load.Options{Target: t.send, Connections: 4, InFlight: 2, Retry: time.Minute}, paced)
	if err != nil || r.Acked != r.Spans {
		t.Fatalf("%+v %v", r, err)
	}
	return r.Acked
}

// answers are what queries came to.
type answers struct {
	n      int
	cpu    time.Duration // of the server meanwhile
	median time.Duration // from the time at which a query was due
}

// queries asks for togetherTime: traces by id and searches by service with full traces, in turns.
func (t *together) queries() answers {
	random := rand.New(rand.NewPCG(1, 2))
	services := t.data.Services()
	var mu sync.Mutex
	var took []time.Duration
	var asked sync.WaitGroup
	before, start := t.cpu(), time.Now()
	for i := range int(togetherTime.Seconds() * queryRate) {
		due := start.Add(time.Duration(i) * time.Second / queryRate)
		url := t.ask + "/api/traces?limit=20&lookback=1h&service=" + services[random.IntN(len(services))]
		if i%2 == 0 {
			url = fmt.Sprintf("%s/api/traces/%s", t.ask, t.data.Trace(random.IntN(t.stored))[0].TraceID)
		}
		time.Sleep(time.Until(due))
		asked.Go(func() {
			if err := get(url); err != nil {
				t.Error(err)
			}
			mu.Lock()
			took = append(took, time.Since(due))
			mu.Unlock()
		})
	}
	asked.Wait()
	slices.Sort(took)
	return answers{len(took), t.cpu() - before, took[len(took)/2]}
}

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

// settle waits until the server is idle: it uses less than a tenth of a processor.
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
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", t.p.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	const user, system, tick = 11, 12, 10 * time.Millisecond // fields behind the name; the unit is the same on all Linux systems
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	u, err1 := strconv.Atoi(fields[user])
	s, err2 := strconv.Atoi(fields[system])
	if err := cmp.Or(err1, err2); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u+s) * tick
}
