package conformance_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// udpLoadFile is a configuration with a data directory and an exporter to be filled in.
const udpLoadFile = `
receivers: {thriftudp: {compact: {endpoint: "localhost:0"}}}
processors: {batch: }
exporters: {%s}
service: {data_dir: %s, telemetry: {logs: {level: error}}, pipelines: {traces: {receivers: [thriftudp], processors: [batch], exporters: [%s]}}}`

// TestUDPLoad sends 50,000 datagrams in about a second. Every datagram and every span is accounted
// for, whether or not the machine keeps up.
func TestUDPLoad(t *testing.T) {
	const packets = 50_000
	p, addr := startUDP(t, "disk", "disk: ")
	floodUDP(t, addr, packets, nil)
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	received, kernel := p.Sum("tracing_server_received_datagrams_total"), p.Sum("tracing_server_kernel_dropped_datagrams_total")
	full := p.Sum("tracing_server_refused_requests_total", "reason=queue_full")
	t.Logf("%d datagrams: %v received, %v dropped by the kernel, %v by the queue", packets, received, kernel, full)
	if received+kernel != packets {
		t.Errorf("%d datagrams: %v received, %v dropped by the kernel", packets, received, kernel)
	}
	if refused := p.Sum("tracing_server_refused_requests_total"); refused != full {
		t.Errorf("%v datagrams were refused, %v of them by the queue", refused, full)
	}
	checkUDPAccounting(p)
}

// TestUDPLoadWithoutNextHop checks the accounting when the program is stopped while datagrams
// arrive, when the next hop is down, and when the queue overflows.
func TestUDPLoadWithoutNextHop(t *testing.T) {
	const down = `endpoint: "localhost:1", tls: {insecure: true}, retry_on_failure: {enabled: `
	for name, exporter := range map[string]string{
		"stopped": "memory: ",
		"refused": "native: {" + down + "false}, sending_queue: {enabled: false}}",
		"overflow": "native: {" + down + "true, initial_interval: 300ms, max_elapsed_time: 1s}, " +
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
			failed := func() bool { return p.Sum("tracing_agent_thrift_udp_t_processor_handler_errors") > 0 }
			harness.Poll(t, "10,000 spans received", func() bool {
				return p.Sum("tracing_pipeline_spans_total", "outcome=received") >= 10_000 && (name == "stopped" || failed())
			})
			if err := p.Stop(); err != nil {
				t.Error(err)
			}
			close(stopped)
			<-done
			checkUDPAccounting(p)
			if failed() != (name != "stopped") {
				t.Errorf("datagrams refused by the exporter: %t", failed())
			}
		})
	}
}

// startUDP runs a pipeline from a UDP listener to an exporter, and returns the address of the
// listener.
func startUDP(t *testing.T, id, exporter string) (*inprocess.Program, string) {
	t.Helper()
	p := inprocess.StartYAML(t, fmt.Sprintf(udpLoadFile, exporter, t.TempDir(), id))
	return p, p.Addr("thriftudp", "compact")
}

// floodUDP sends n datagrams of one span, 50 per millisecond, until stopped is closed.
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

// checkUDPAccounting checks the metrics of a stopped program: datagrams, which hold one span each,
// and spans at each component.
func checkUDPAccounting(p *inprocess.Program) {
	t := p.T
	t.Helper()
	received, handled := p.Sum("tracing_server_received_datagrams_total"), p.Sum("tracing_server_handled_datagrams_total")
	if refused := p.Sum("tracing_server_refused_requests_total", "component=thriftudp"); handled+refused != received {
		t.Errorf("%v datagrams received: %v handled, %v refused", received, handled, refused)
	}
	processed, dropped := p.Sum("tracing_agent_thrift_udp_server_packets_processed"), p.Sum("tracing_agent_thrift_udp_server_packets_dropped")
	if processed+dropped != received {
		t.Errorf("%v datagrams received: %v processed, %v dropped", received, processed, dropped)
	}
	spans := func(with ...string) float64 { return p.Sum("tracing_pipeline_spans_total", with...) }
	in, accepted := spans("outcome=received"), spans("outcome=accepted")
	if refused := spans("kind=receiver", "outcome=refused"); in != handled || accepted+refused != in {
		t.Errorf("%v datagrams: %v spans received, %v accepted, %v refused", handled, in, accepted, refused)
	}
	exported := func(outcome string) float64 { return spans("kind=exporter", "outcome="+outcome) }
	sent, refused, gone := exported("sent"), exported("refused"), exported("dropped")
	if in := exported("in"); sent+refused+gone != in || sent+gone != accepted {
		t.Errorf("%v spans passed to the exporter: %v sent, %v refused, %v dropped; %v were accepted", in, sent, refused, gone, accepted)
	}
}

// oneSpan returns a datagram with the i-th span.
func oneSpan(t *testing.T, i int) []byte {
	t.Helper()
	path := fmt.Sprintf("/cart/%d", i%100)
	return harness.Datagram(t, &jaeger.Batch{
		Process: &jaeger.Process{ServiceName: "cart"},
		Spans: []*jaeger.Span{{TraceIdLow: int64(i/10 + 1), SpanId: int64(i + 1), OperationName: "GET /cart/{id}", Flags: 1,
			StartTime: time.Now().UnixMicro(), Duration: 1000, Tags: []*jaeger.Tag{{Key: "url.path", VStr: &path}}}},
	})
}
