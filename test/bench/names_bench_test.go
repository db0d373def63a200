package bench_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/test/harness"
)

const benchNamesConfig = `
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0", tenancy: {}}}}}
processors: {batch: }
exporters: {disk: {reserve: 0}}
extensions: {query: {storage: disk, http: {endpoint: "localhost:0", tenancy: {}}}}
service:
  data_dir: %q
  extensions: [query]
  pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [disk]}}
`

const (
	namesServices   = "TRACING_BENCH_SERVICES"   // variable with numbers of services, separated by commas
	namesExecutable = "TRACING_BENCH_EXECUTABLE" // variable with the program to measure; default: this one

	operationsPerService = 10
	namesPerRequest      = 500 // services
	namesQueries         = 48  // per client and kind of query
	namesTimeout         = 60 * time.Second
)

// BenchmarkManyServices sends spans of many services, each with ten operations, and then requests
// lists of names with one and with 16 clients, also those of a second tenant with one service. It
// prints the latencies, the CPU time of the server per query, and the peak of its resident memory.
func BenchmarkManyServices(b *testing.B) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		b.Skip("needs /proc to read the memory of a running process: ", err)
	}
	for _, text := range strings.Split(cmp.Or(os.Getenv(namesServices), "10000"), ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				m := newManyNames(b, n)
				m.measure()
				m.restart()
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// manyNames is a server whose first tenant has many services.
type manyNames struct {
	b        *testing.B
	p        *harness.Process
	services int
	start    func() *harness.Process
}

func newManyNames(b *testing.B, services int) *manyNames {
	file := filepath.Join(b.TempDir(), "bench.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, benchNamesConfig, b.TempDir()), 0o600); err != nil {
		b.Fatal(err)
	}
	path := os.Getenv(namesExecutable)
	if path == "" {
		path = harness.Binary(b)
	}
	m := &manyNames{b: b, services: services, start: func() *harness.Process {
		p := harness.RunExecutable(b, path, "--config", file)
		p.WatchMemory()
		p.AwaitReady()
		return p
	}}
	m.p = m.start()
	start := time.Now()
	m.send("small", 0, 1)
	var senders sync.WaitGroup
	const parallel = 2
	for i := range parallel {
		senders.Go(func() {
			for first := i * namesPerRequest; first < services; first += parallel * namesPerRequest {
				m.send("large", first, min(namesPerRequest, services-first))
			}
		})
	}
	senders.Wait()
	fmt.Printf("services %d: %d spans sent in %.1f s, CPU time %.1f s, peak memory %d MiB\n", services, services*operationsPerService,
		time.Since(start).Seconds(), cpuOf(b, m.p).Seconds(), m.p.PeakMemory())
	return m
}

// restart measures a start with the stored spans.
func (m *manyNames) restart() {
	m.p.Terminate()
	start := time.Now()
	m.p = m.start()
	took := time.Since(start)
	fmt.Printf("services %d: restarted in %.2f s, peak memory %d MiB\n", m.services, took.Seconds(), m.p.PeakMemory())
}

// serviceName returns the name of service i. Names are not in the order of their numbers.
func serviceName(i int) string { return fmt.Sprintf("service-%08x", uint32(i)*2654435761) }

// send sends a span of each operation of some services.
func (m *manyNames) send(tenant string, first, services int) {
	td := ptrace.NewTraces()
	now := time.Now()
	for i := first; i < first+services; i++ {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", serviceName(i))
		list := rs.ScopeSpans().AppendEmpty().Spans()
		for j := range operationsPerService {
			s := list.AppendEmpty()
			var id pcommon.TraceID
			binary.BigEndian.PutUint64(id[:], uint64(i)+1)
			s.SetTraceID(id)
			s.SetSpanID(pcommon.SpanID{byte(j + 1)})
			s.SetName(fmt.Sprint("operation-", j))
			s.SetKind(ptrace.SpanKindServer)
			s.SetStartTimestamp(pcommon.NewTimestampFromTime(now))
			s.SetEndTimestamp(pcommon.NewTimestampFromTime(now.Add(time.Millisecond)))
		}
	}
	body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	if err != nil {
		panic(err)
	}
	for {
		r, _ := http.NewRequest(http.MethodPost, "http://"+m.p.OTLPHTTP()+"/v1/traces", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/x-protobuf")
		r.Header.Set("x-tenant", tenant)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			panic(err)
		}
		io.Copy(io.Discard, resp.Body) //nolint:errcheck // of a response without content
		resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusOK:
			return
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			time.Sleep(100 * time.Millisecond)
		default:
			panic(resp.Status)
		}
	}
}

func (m *manyNames) measure() {
	fmt.Printf("%10s %-20s %7s %9s %9s %6s %7s %9s\n", "services", "list", "clients", "p50 ms", "max ms", "failed", "CPU ms", "peak MiB")
	for _, l := range []struct {
		name, tenant string
		path         func() string
	}{
		{"services", "large", func() string { return "/api/services" }},
		{"operations", "large", func() string { return "/api/operations?service=" + serviceName(rand.IntN(m.services)) }},
		{"completion", "large", func() string {
			name := serviceName(rand.IntN(m.services))
			return "/api/ui/v1/values?key=service&prefix=" + url.QueryEscape(name[:len("service-")+rand.IntN(9)])
		}},
		{"second tenant", "small", func() string { return "/api/services" }},
	} {
		for _, clients := range []int{1, 16} {
			m.run(l.name, l.tenant, clients, l.path)
		}
	}
}

// run measures one kind of query. Clients that fail once do not retry, because failures take as
// long as the server or the client waits.
func (m *manyNames) run(name, tenant string, clients int, path func() string) {
	m.p.WatchMemory()
	var mu sync.Mutex
	var took []time.Duration
	failed := 0
	client := &http.Client{Timeout: namesTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	var running sync.WaitGroup
	began, before := time.Now(), cpuOf(m.b, m.p)
	for range clients {
		running.Go(func() {
			for range namesQueries {
				start := time.Now()
				err := getAs(client, tenant, m.p.QueryURL()+path())
				mu.Lock()
				took = append(took, time.Since(start))
				if err != nil {
					failed++
				}
				mu.Unlock()
				if err != nil || time.Since(began) > namesTimeout {
					return
				}
			}
		})
	}
	running.Wait()
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	fmt.Printf("%10d %-20s %7d %9.1f %9.1f %6d %7.1f %9d\n", m.services, name, clients, ms(took[len(took)/2]), ms(took[len(took)-1]),
		failed, ms(cpuOf(m.b, m.p)-before)/float64(len(took)), m.p.PeakMemory())
}

func getAs(c *http.Client, tenant, target string) error {
	r, err := http.NewRequest(http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	r.Header.Set("x-tenant", tenant)
	resp, err := c.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || n == 0) {
		err = fmt.Errorf("%s: %s, %d bytes", target, resp.Status, n)
	}
	return err
}
