package tracing_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/internal/wire/agentthrift"
	"github.com/tracing-backend/tracing/internal/wire/nativethrift"
	"github.com/tracing-backend/tracing/pipeline"
)

const udpLoadFile = `
receivers: {thriftudp: {compact: {endpoint: "localhost:0"}}}
processors: {batch: }
exporters: {disk: }
service: {telemetry: {logs: {level: warn}}, pipelines: {traces: {receivers: [thriftudp], processors: [batch], exporters: [disk]}}}`

// What 50,000 datagrams within about a second become is accounted for, in datagrams and in spans, whether the machine keeps up or not.
func TestUDPLoad(t *testing.T) {
	const packets, perMillisecond = 50_000, 50
	dir, err := pipeline.ParseSet("service::data_dir=" + t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := pipeline.Load(pipeline.LoadOptions{Factories: tracing.Components(), Files: []string{"udp.yaml"}, Overrides: []pipeline.Override{dir},
		ReadFile: func(string) ([]byte, error) { return []byte(udpLoadFile), nil }})
	if err != nil {
		t.Fatal(err)
	}
	p := startConfig(t, cfg)
	conn, err := net.Dial("udp", p.app.Addr(pipeline.ID{Type: "thriftudp"}, "compact"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	datagrams := make([][]byte, packets)
	for i := range datagrams {
		datagrams[i] = oneSpan(t, i)
	}
	begin := time.Now()
	for i, d := range datagrams {
		if i%perMillisecond == 0 {
			time.Sleep(time.Until(begin.Add(time.Duration(i/perMillisecond) * time.Millisecond)))
		}
		if _, err := conn.Write(d); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(begin)
	if err := p.stop(); err != nil {
		t.Error(err)
	}

	received, kernel := p.sum(t, "tracing_server_received_datagrams_total"), p.sum(t, "tracing_server_kernel_dropped_datagrams_total")
	handled, refused := p.sum(t, "tracing_server_handled_datagrams_total"), p.sum(t, "tracing_server_refused_requests_total")
	full := p.sum(t, "tracing_server_refused_requests_total", "reason=queue_full")
	t.Logf("%d datagrams in %s: %v received, %v dropped by the system, %v by the queue", packets, took.Round(time.Millisecond), received, kernel, full)
	if received+kernel != packets || handled+refused != received || refused != full {
		t.Errorf("of %d datagrams %v were received and %v dropped by the system; %v handled, %v refused, %v of them by the queue",
			packets, received, kernel, handled, refused, full)
	}
	const spans = "tracing_pipeline_spans_total"
	if in := p.sum(t, spans, "outcome=received"); in != handled || p.sum(t, spans, "outcome=accepted")+p.sum(t, spans, "kind=receiver", "outcome=refused") != in {
		t.Errorf("%v spans were received in %v datagrams of one span", in, handled)
	}
	if in := p.sum(t, spans, "outcome=in"); in != handled || p.sum(t, spans, "outcome=sent")+p.sum(t, spans, "kind=exporter", "outcome=refused") != in {
		t.Errorf("of %v spans %v came to the store", handled, in)
	}
}

// sum adds up the samples of a metric that have all these labels, written name=value.
func (p *program) sum(t *testing.T, name string, with ...string) (sum float64) {
	t.Helper()
	families, err := p.app.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := " "
			for _, l := range m.GetLabel() {
				labels += l.GetName() + "=" + l.GetValue() + " "
			}
			match := true
			for _, w := range with {
				match = match && strings.Contains(labels, " "+w+" ")
			}
			if match {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// oneSpan is a datagram as applications send it, with the span number i.
func oneSpan(t *testing.T, i int) []byte {
	t.Helper()
	path := fmt.Sprintf("/cart/%d", i%100)
	return udpDatagram(t, nativethrift.Batch{
		Process: nativethrift.Process{ServiceName: "cart"},
		Spans: []nativethrift.Span{{TraceIDLow: int64(i/10 + 1), SpanID: int64(i + 1), OperationName: "GET /cart/{id}", Flags: 1,
			StartTime: time.Now().UnixMicro(), Duration: 1000, Tags: []nativethrift.Tag{{Key: "url.path", VStr: &path}}}},
	})
}

// udpDatagram is the datagram of one batch, in the compact protocol.
func udpDatagram(t *testing.T, b nativethrift.Batch) []byte {
	t.Helper()
	ctx, buf, args := context.Background(), thrift.NewTMemoryBuffer(), agentthrift.EmitBatchArgs{Batch: b}
	out := thrift.NewTCompactProtocolConf(buf, nil)
	for _, err := range []error{out.WriteMessageBegin(ctx, "emitBatch", thrift.ONEWAY, 0), args.Write(ctx, out), out.Flush(ctx)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return buf.Bytes()
}
