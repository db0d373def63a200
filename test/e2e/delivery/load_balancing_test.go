package delivery_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/test/harness"
)

const gateway = `
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
processors:
  tail_sampling:
    decision_wait: 1s
    policies: [{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}]
exporters: {disk: {}}
extensions: {query: {storage: disk, http: {endpoint: "localhost:0"}, grpc: {endpoint: "localhost:0"}}}
service:
  data_dir: %q
  extensions: [query]
  pipelines: {traces: {receivers: [otlp], processors: [%s], exporters: [disk]}}
`

const front = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}}}}
exporters:
  load_balancing:
    protocol: {otlp: {tls: {insecure: true}}}
    resolver: {static: {hostnames: [%s, %s]}}
    retry_on_failure: {initial_interval: 50ms, max_interval: 500ms, max_elapsed_time: 0s}
    %s
extensions: {admin: {endpoint: "localhost:0"}}
service:
  data_dir: %q
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], exporters: [load_balancing]}}
`

func startGateway(t *testing.T, endpoint, dir, processors string) *harness.Process {
	t.Helper()
	p := harness.RunYAML(t, fmt.Sprintf(gateway, endpoint, dir, processors))
	p.AwaitReady()
	return p
}

// startFront starts an instance in front of two gateways, which are listed in the given order.
func startFront(t *testing.T, dir, queue string, first, second string) *harness.Process {
	t.Helper()
	p := harness.RunYAML(t, fmt.Sprintf(front, first, second, queue, dir))
	p.AwaitReady()
	return p
}

const (
	gatewayTraces        = 200
	gatewaySpansPerTrace = 5
)

// TestTailSamplingBehindLoadBalancing sends the spans of each trace in different requests through
// two front instances to two gateways that sample by errors. Every sampled trace is complete and at
// one gateway; traces without errors are not stored.
func TestTailSamplingBehindLoadBalancing(t *testing.T) {
	harness.SkipIfShort(t)
	dir := t.TempDir()
	gateways := []*harness.Process{startGateway(t, "localhost:0", filepath.Join(dir, "1"), "tail_sampling"),
		startGateway(t, "localhost:0", filepath.Join(dir, "2"), "tail_sampling")}
	one, two := gateways[0].OTLPGRPC(), gateways[1].OTLPGRPC()
	fronts := []ptraceotlp.GRPCClient{connect(t, startFront(t, filepath.Join(dir, "3"), "", one, two)),
		connect(t, startFront(t, filepath.Join(dir, "4"), "", two, one))}
	for span := range gatewaySpansPerTrace {
		req := ptraceotlp.NewExportRequestFromTraces(spansOf(gatewayTraces, span))
		if _, err := fronts[span%len(fronts)].Export(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	urls := []string{gateways[0].QueryURL(), gateways[1].QueryURL()}
	used := map[string]int{}
	for trace := 0; trace < gatewayTraces; trace += 2 {
		id := fmt.Sprintf("%032x", gatewayTraceID(trace))
		harness.Poll(t, "a complete trace "+id, func() bool {
			for _, url := range urls {
				if len(harness.SpanCounts(t, url, id)) == gatewaySpansPerTrace {
					used[url]++
					return true
				}
			}
			return false
		})
	}
	if len(used) != len(urls) {
		t.Errorf("sampled traces by gateway: %v", used)
	}
	for trace := range gatewayTraces {
		id := fmt.Sprintf("%032x", gatewayTraceID(trace))
		found := 0
		for _, url := range urls {
			found += len(harness.SpanCounts(t, url, id))
		}
		if want := gatewaySpansPerTrace * ((trace + 1) % 2); found != want {
			t.Errorf("trace %d: %d spans stored, want %d", trace, found, want)
		}
	}
	for _, p := range gateways {
		p.Terminate()
		p.Accounting()
	}
	http.DefaultClient.CloseIdleConnections()
}

func connect(t *testing.T, p *harness.Process) ptraceotlp.GRPCClient {
	t.Helper()
	conn, err := grpc.NewClient(p.OTLPGRPC(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return ptraceotlp.NewGRPCClient(conn)
}

func gatewayTraceID(trace int) (id [16]byte) {
	binary.BigEndian.PutUint64(id[:], 1)
	binary.BigEndian.PutUint64(id[8:], uint64(trace)+1)
	return id
}

// spansOf returns one span of each trace. The first span of every other trace has an error.
func spansOf(traces, span int) ptrace.Traces {
	start := pcommon.NewTimestampFromTime(time.Now())
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", fmt.Sprint("service-", span))
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for trace := range traces {
		s := spans.AppendEmpty()
		s.SetTraceID(gatewayTraceID(trace))
		s.SetSpanID([8]byte{byte(span + 1)})
		s.SetName("operation")
		s.SetStartTimestamp(start)
		s.SetEndTimestamp(start)
		if span == 0 && trace%2 == 0 {
			s.Status().SetCode(ptrace.StatusCodeError)
		}
	}
	return td
}

// TestGatewayIsReplaced kills one of two gateways under load and restarts it at its address.
// Nothing that the instance in front had acknowledged is lost, no trace is divided, and while the
// gateway is down, the other one gets its spans.
func TestGatewayIsReplaced(t *testing.T) {
	harness.SkipIfShort(t)
	dir := t.TempDir()
	stays := startGateway(t, "localhost:0", filepath.Join(dir, "1"), "")
	addr := pipelinetest.FixedAddress(t)
	killed := startGateway(t, addr, filepath.Join(dir, "2"), "")
	p := startFront(t, filepath.Join(dir, "3"), "sending_queue: {storage: disk, queue_size: 0, num_consumers: 1000}", stays.OTLPGRPC(), addr)
	sent := harness.NewSentSpans()
	steady := harness.StartSteadyLoad(t, p.OTLPGRPC(), 1, sent)
	steady.Await(20)
	killed.Kill()
	stored := sentTo(t, p, stays.OTLPGRPC())
	harness.Poll(t, "spans at the gateway that stays", func() bool { return sentTo(t, p, stays.OTLPGRPC()) > stored+1000 })
	steady.End()
	waiting := harness.Queued(t, p)
	if waiting == 0 {
		t.Fatal("the queue is empty while a gateway is down")
	}
	replaced := startGateway(t, addr, filepath.Join(dir, "2"), "")
	harness.AwaitQueue(t, p, 0)
	acked, found := sent.Check(t, stays.QueryURL(), replaced.QueryURL())
	p.Terminate()
	p.Accounting()
	t.Logf("%d spans acknowledged, %d found; %v were queued while a gateway was down", acked, found, waiting)
	http.DefaultClient.CloseIdleConnections()
}

// sentTo returns the number of spans that a gateway has accepted.
func sentTo(t *testing.T, p *harness.Process, address string) float64 {
	t.Helper()
	return harness.Metrics(t, p.AdminURL())[fmt.Sprintf(
		`tracing_load_balancing_spans_total{backend=%q,component="load_balancing",kind="exporter",outcome="sent"}`, address)]
}
