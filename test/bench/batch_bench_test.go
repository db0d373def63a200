package bench_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"

	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

const batchBenchConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
processors: {batch: {%s}}
exporters: {otlp: {endpoint: %q, tls: {insecure: true}, compression: none}}
service: {pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [otlp]}}}
`

// slowHop is a next hop that answers each request after hopLatency and counts requests and spans.
type slowHop struct {
	ptraceotlp.UnimplementedGRPCServer
	requests, spans atomic.Int64
}

const hopLatency = 5 * time.Millisecond

func (h *slowHop) Export(_ context.Context, r ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	h.requests.Add(1)
	h.spans.Add(int64(r.Traces().SpanCount()))
	time.Sleep(hopLatency)
	return ptraceotlp.NewExportResponse(), nil
}

// BenchmarkBatch measures what waiting clients and the next hop see of the settings of the
// processor batch. Each client sends its next request of 100 spans when the last one was answered.
func BenchmarkBatch(b *testing.B) {
	const spans = 100
	perClient := 100
	if testing.Short() {
		perClient = 5
	}
	for _, settings := range []string{"", "timeout: 200ms", "timeout: 10s", "min_interval: 200ms"} {
		for _, clients := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%s/clients=%d", strings.ReplaceAll(settings, ": ", "="), clients), func(b *testing.B) {
				hop, target := startSlowHop(b)
				requests := slices.Collect(bench.New(1, time.Now()).Requests(perClient*clients*spans, spans))
				var cpu, took time.Duration
				sent := 0
				for b.Loop() {
					p := harness.RunYAML(b, fmt.Sprintf(batchBenchConfig, settings, target))
					start := time.Now()
					r, err := load.Run(b.Context(), load.Options{Target: p.OTLPGRPC(), Connections: clients, InFlight: 1, Retry: time.Minute},
						slices.Values(requests))
					took += time.Since(start)
					if err != nil || r.Acked == 0 {
						b.Fatalf("%+v %v", r, err)
					}
					sent += len(requests)
					p.Terminate()
					cpu += p.Cmd.ProcessState.UserTime() + p.Cmd.ProcessState.SystemTime()
				}
				b.ReportMetric(float64(hop.spans.Load())/float64(hop.requests.Load()), "spans/batch")
				b.ReportMetric(float64(cpu.Microseconds())/float64(sent), "CPU-us/request")
				b.ReportMetric(took.Seconds()*1000*float64(clients)/float64(sent), "ms/answer")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func startSlowHop(b *testing.B) (*slowHop, string) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		b.Fatal(err)
	}
	hop, server := &slowHop{}, grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(server, hop)
	go server.Serve(l) //nolint:errcheck // ends with Stop
	b.Cleanup(server.Stop)
	return hop, l.Addr().String()
}
