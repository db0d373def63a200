package intake_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/test/harness"
)

// udpLoadFile has a place for an exporter.
const udpLoadFile = `
receivers: {thriftudp: {compact: {endpoint: "localhost:0"}}}
processors: {batch: }
exporters: {%s}
service: {telemetry: {logs: {level: error}}, pipelines: {traces: {receivers: [thriftudp], processors: [batch], exporters: [%s]}}}`

// What 50,000 datagrams within about a second become is accounted for, in datagrams and in spans, whether the machine keeps up or not.
func TestUDPLoad(t *testing.T) {
	const packets = 50_000
	p, addr := startUDP(t, "disk", "disk: ")
	begin := time.Now()
	floodUDP(t, addr, packets, nil)
	took := time.Since(begin)
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	received, kernel := p.Sum(t, "tracing_server_received_datagrams_total"), p.Sum(t, "tracing_server_kernel_dropped_datagrams_total")
	full := p.Sum(t, "tracing_server_refused_requests_total", "reason=queue_full")
	t.Logf("%d datagrams in %s: %v received, %v dropped by the system, %v by the queue", packets, took.Round(time.Millisecond), received, kernel, full)
	if received+kernel != packets {
		t.Errorf("of %d datagrams %v were received and %v dropped by the system", packets, received, kernel)
	}
	if refused := p.Sum(t, "tracing_server_refused_requests_total"); refused != full {
		t.Errorf("%v datagrams were refused, %v of them by the queue", refused, full)
	}
	checkUDPLaw(p, t)
}

// The accounts add up as well when the process is stopped while datagrams come, when the next hop is away, and when it cannot be sent to in time.
func TestUDPLoadThatIsNotTaken(t *testing.T) {
	const away = `endpoint: "localhost:1", tls: {insecure: true}, retry_on_failure: {enabled: `
	for name, exporter := range map[string]string{
		"stopped": "memory: ",
		"refused": "native: {" + away + "false}, sending_queue: {enabled: false}}",
		"overflow": "native: {" + away + "true, initial_interval: 300ms, max_elapsed_time: 1s}, " +
			"sending_queue: {sizer: bytes, queue_size: 20000, num_consumers: 50, block_on_overflow: false}}",
	} {
		t.Run(name, func(t *testing.T) {
			id, _, _ := strings.Cut(exporter, ":")
			p, addr := startUDP(t, id, exporter)
			stopped, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				floodUDP(t, addr, 200_000, stopped)
			}()
			failed := func() bool { return p.Sum(t, "tracing_agent_thrift_udp_t_processor_handler_errors") > 0 }
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if p.Sum(t, "tracing_pipeline_spans_total", "outcome=received") >= 10_000 && (name == "stopped" || failed()) {
					break
				}
			}
			if err := p.Stop(); err != nil {
				t.Error(err)
			}
			close(stopped)
			<-done
			checkUDPLaw(p, t)
			if failed() != (name != "stopped") {
				t.Error("datagrams were not taken by a store, or were by nobody")
			}
		})
	}
}

// startUDP runs a pipeline from a UDP listener to an exporter, and returns the listener's address.
func startUDP(t *testing.T, id, exporter string) (*harness.Program, string) {
	t.Helper()
	dir, err := app.ParseSet("service::data_dir=" + t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := app.Load(app.LoadOptions{Factories: tracing.Components(), Files: []string{"udp.yaml"}, Overrides: []app.Override{dir},
		ReadFile: func(string) ([]byte, error) { return fmt.Appendf(nil, udpLoadFile, exporter, id), nil }})
	if err != nil {
		t.Fatal(err)
	}
	p := harness.StartConfig(t, cfg)
	return p, p.App.Addr(pipeline.ID{Type: "thriftudp"}, "compact")
}

// floodUDP sends n datagrams of one span, 50 each millisecond, or less when it is stopped.
func floodUDP(t *testing.T, addr string, n int, stopped <-chan struct{}) {
	t.Helper()
	const kinds, perMillisecond = 10_000, 50
	conn, err := net.Dial("udp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	datagrams := make([][]byte, min(n, kinds))
	for i := range datagrams {
		datagrams[i] = oneSpan(t, i)
	}
	begin := time.Now()
	for i := range n {
		if i%perMillisecond == 0 {
			time.Sleep(time.Until(begin.Add(time.Duration(i/perMillisecond) * time.Millisecond)))
		}
		select {
		case <-stopped:
			return
		default:
		}
		if _, err := conn.Write(datagrams[i%kinds]); err != nil && stopped == nil {
			t.Error(err)
			return
		}
	}
}

// checkUDPLaw checks, of a program that has stopped, that everything is accounted for in datagrams of one span, in spans, and at each edge.
func checkUDPLaw(p *harness.Program, t *testing.T) {
	t.Helper()
	received, handled := p.Sum(t, "tracing_server_received_datagrams_total"), p.Sum(t, "tracing_server_handled_datagrams_total")
	if refused := p.Sum(t, "tracing_server_refused_requests_total", "component=thriftudp"); handled+refused != received {
		t.Errorf("of %v datagrams %v were handled, %v refused", received, handled, refused)
	}
	processed, dropped := p.Sum(t, "tracing_agent_thrift_udp_server_packets_processed"), p.Sum(t, "tracing_agent_thrift_udp_server_packets_dropped")
	if processed+dropped != received {
		t.Errorf("of %v datagrams %v were processed, %v dropped", received, processed, dropped)
	}
	spans := func(with ...string) float64 { return p.Sum(t, "tracing_pipeline_spans_total", with...) }
	in, accepted := spans("outcome=received"), spans("outcome=accepted")
	if refused := spans("kind=receiver", "outcome=refused"); in != handled || accepted+refused != in {
		t.Errorf("%v datagrams of one span: %v spans received, %v accepted, %v refused", handled, in, accepted, refused)
	}
	sent, refused, gone := spans("outcome=sent"), spans("kind=exporter", "outcome=refused"), spans("outcome=dropped")
	if in := spans("outcome=in"); sent+refused+gone != in || sent+gone != accepted {
		t.Errorf("%v spans came to the exporter: %v sent, %v refused, %v dropped; %v were accepted", in, sent, refused, gone, accepted)
	}
}

// oneSpan is a datagram as applications send it, with the span number i.
func oneSpan(t *testing.T, i int) []byte {
	t.Helper()
	path := fmt.Sprintf("/cart/%d", i%100)
	return harness.Datagram(t, &jaeger.Batch{
		Process: &jaeger.Process{ServiceName: "cart"},
		Spans: []*jaeger.Span{{TraceIdLow: int64(i/10 + 1), SpanId: int64(i + 1), OperationName: "GET /cart/{id}", Flags: 1,
			StartTime: time.Now().UnixMicro(), Duration: 1000, Tags: []*jaeger.Tag{{Key: "url.path", VStr: &path}}}},
	})
}
