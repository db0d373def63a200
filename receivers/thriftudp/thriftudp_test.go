package thriftudp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server/udp"
)

// Every port accepts both methods.
func TestBothMethodsOnAllPorts(t *testing.T) {
	f := start(t, testConfig(), 64<<20, &pipelinetest.Sink{})
	var want []string
	for port, enc := range map[string]native.Encoding{"compact": native.Compact, "binary": native.Binary, "zipkin": native.Compact} {
		f.send(port, message(t, enc, "emitBatch", batch(port+" 1", port+" 2")), message(t, enc, "emitZipkinBatch", zipkinBatch(port+" 3")))
		want = append(want, "udp tracing cart "+port+" 1", "udp tracing cart "+port+" 2", "udp zipkin cart "+port+" 3")
	}
	f.stop()
	slices.Sort(want)
	if got := names(t, f.sink); !slices.Equal(got, want) {
		t.Errorf("spans: %q", got)
	}
	size := float64(len(message(t, native.Binary, "emitZipkinBatch", zipkinBatch("binary 3"))))
	f.expect(map[string]float64{
		"tracing_agent_thrift_udp_server_packets_processed tracing compact":   2,
		"tracing_agent_thrift_udp_server_packets_processed tracing binary":    2,
		"tracing_agent_thrift_udp_server_packets_processed zipkin compact":    2,
		"tracing_agent_thrift_udp_server_packets_dropped zipkin compact":      0,
		"tracing_agent_thrift_udp_server_read_errors tracing compact":         0,
		"tracing_agent_thrift_udp_server_kernel_drops tracing compact":        0,
		"tracing_agent_thrift_udp_server_queue_size tracing compact":          0,
		"tracing_agent_thrift_udp_server_packet_size tracing binary":          size,
		"tracing_agent_thrift_udp_t_processor_handler_errors tracing compact": 0,
	})
	if used := f.budget.Used(); used != 0 || f.budget.Peak() == 0 {
		t.Errorf("budget: %d bytes used at the end, peak %d", used, f.budget.Peak())
	}
}

// Invalid datagrams are counted by reason and do not affect valid ones.
func TestBadDatagrams(t *testing.T) {
	f := start(t, testConfig(), 64<<20, &pipelinetest.Sink{})
	good := message(t, native.Compact, "emitBatch", batch("good"))
	f.send("compact", good, []byte("not thrift"), good[:len(good)-3], nil, bytes.Repeat([]byte{0x82}, 65_100),
		message(t, native.Compact, "nosuch", batch("x")), message(t, native.Compact, "emitBatch", batch()), good)
	f.stop()
	if got := names(t, f.sink); len(got) != 2 {
		t.Errorf("spans: %q", got)
	}
	f.expect(map[string]float64{
		"tracing_server_received_datagrams_total compact":                     8,
		"tracing_server_handled_datagrams_total compact":                      3,
		"tracing_server_refused_requests_total compact undecodable":           2,
		"tracing_server_refused_requests_total compact empty":                 1,
		"tracing_server_refused_requests_total compact too_large":             1,
		"tracing_server_refused_requests_total compact method":                1,
		"tracing_agent_thrift_udp_server_packets_processed tracing compact":   8,
		"tracing_agent_thrift_udp_t_processor_handler_errors tracing compact": 5,
	})
	var text []string
	for _, e := range f.Logs.FilterMessage("Processor failed").All() {
		text = append(text, fmt.Sprint(e.ContextMap()["error"]))
		if sender := fmt.Sprint(e.ContextMap()["sender"]); !strings.HasPrefix(sender, "127.0.0.1:") {
			t.Errorf("sender: %q", sender)
		}
	}
	if len(text) != 5 || !strings.Contains(strings.Join(text, "; "), `Unknown function "nosuch"`) {
		t.Errorf("errors: %q", text)
	}
}

// Waiting datagrams are joined to one batch per format.
func TestDatagramsAreJoined(t *testing.T) {
	gate, entered := make(chan struct{}), make(chan struct{}, 100)
	s := &pipelinetest.Sink{Answer: func(context.Context, *otlpdata.Batch) error {
		entered <- struct{}{}
		<-gate
		return nil
	}}
	c := testConfig()
	one := udp.DefaultConfig("127.0.0.1:0")
	one.Workers = 1
	c.Compact = pipeline.Present(one)
	f := start(t, c, 64<<20, s)
	f.send("compact", message(t, native.Compact, "emitBatch", batch("first")))
	<-entered
	const n = 100 // fits into a small receive buffer
	for i := range n {
		f.send("compact", message(t, native.Compact, "emitBatch", batch(fmt.Sprint(i))),
			message(t, native.Compact, "emitZipkinBatch", zipkinBatch("z")))
	}
	f.await(func() bool { return f.Listeners["compact"].(*udp.Server).Stats().Waiting == 2*n })
	close(gate)
	f.stop()
	if got := len(names(t, s)); got != 1+2*n || len(s.Batches()) != 3 {
		t.Errorf("%d spans in %d batches", got, len(s.Batches()))
	}
}

// Errors of the pipeline are logged and counted.
func TestConsumeError(t *testing.T) {
	f := start(t, testConfig(), 64<<20, &pipelinetest.Sink{Answer: func(context.Context, *otlpdata.Batch) error {
		return pipeline.Overloaded(errors.New("queue is full"), time.Second)
	}})
	f.send("binary", message(t, native.Binary, "emitBatch", batch("a")))
	f.stop()
	f.expect(map[string]float64{
		"tracing_server_handled_datagrams_total binary":                      1,
		"tracing_agent_thrift_udp_t_processor_handler_errors tracing binary": 1,
	})
	lines := f.Logs.FilterMessage("Processor failed").All()
	if len(lines) != 1 || lines[0].ContextMap()["error"] != "queue is full" || lines[0].ContextMap()["datagrams"] != int64(1) {
		t.Errorf("log: %v", lines)
	}
}

// A permanent error for one datagram affects only its own spans, not those joined with it.
func TestPermanentErrorForOneDatagram(t *testing.T) {
	gate, entered := make(chan struct{}), make(chan struct{}, 100)
	s := &pipelinetest.Sink{Answer: func(_ context.Context, b *otlpdata.Batch) error {
		entered <- struct{}{}
		<-gate
		if td, err := b.Traces(); err != nil || strings.Contains(jsonOf(t, td), "invalid") {
			return pipeline.Permanent(errors.New("invalid span"))
		}
		return nil
	}}
	c := testConfig()
	one := udp.DefaultConfig("127.0.0.1:0")
	one.Workers = 1
	c.Compact = pipeline.Present(one)
	f := start(t, c, 64<<20, s)
	f.send("compact", message(t, native.Compact, "emitBatch", batch("first")))
	<-entered
	const n = 40
	for i := range n {
		name := fmt.Sprint(i)
		if i == 11 {
			name = "invalid"
		}
		f.send("compact", message(t, native.Compact, "emitBatch", batch(name)))
	}
	f.await(func() bool { return f.Listeners["compact"].(*udp.Server).Stats().Waiting == n })
	close(gate)
	f.stop()
	if got := names(t, f.sink); len(got) != n || slices.Contains(got, "udp tracing cart invalid") {
		t.Errorf("%d spans: %q", len(got), got)
	}
	f.expect(map[string]float64{
		"tracing_server_handled_datagrams_total compact":                      n + 1,
		"tracing_agent_thrift_udp_t_processor_handler_errors tracing compact": 1,
	})
}

func jsonOf(t *testing.T, td ptrace.Traces) string {
	t.Helper()
	text, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestOverBudget(t *testing.T) {
	f := start(t, testConfig(), 2000, &pipelinetest.Sink{})
	f.send("compact", message(t, native.Compact, "emitBatch", batch(strings.Repeat("long", 100))),
		message(t, native.Compact, "emitBatch", batch("short")))
	f.stop()
	if got := names(t, f.sink); !slices.Equal(got, []string{"udp tracing cart short"}) {
		t.Errorf("spans: %q", got)
	}
	f.expect(map[string]float64{"tracing_server_refused_requests_total compact over_budget": 1})
}

func TestConfig(t *testing.T) {
	c := defaults()
	c.MaxClients, c.Tenant = -1, " a"
	text := fmt.Sprint(c.Validate())
	for _, want := range []string{"must have compact, binary or zipkin", "must be from 0 to 1000000, not -1", `" a" is not a valid tenant name`} {
		if !strings.Contains(text, want) {
			t.Errorf("error %q does not contain %q", text, want)
		}
	}
	good := testConfig()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if held := start(t, good, 0, &pipelinetest.Sink{}).MaxMemory(); held < 3*16<<20 || held > 256<<20 {
		t.Errorf("MaxMemory: %d bytes", held)
	}
}

// All spans have the tenant of the receiver.
func TestTenant(t *testing.T) {
	c := testConfig()
	c.Tenant = "acme"
	f := start(t, c, 64<<20, &pipelinetest.Sink{})
	f.send("compact", message(t, native.Compact, "emitBatch", batch("a")), message(t, native.Compact, "emitZipkinBatch", zipkinBatch("b")))
	f.stop()
	for _, b := range f.sink.Batches() {
		if b.Meta().Tenant != "acme" {
			t.Errorf("tenant %q", b.Meta().Tenant)
		}
	}
	if f.sink.Spans() != 2 {
		t.Errorf("%d spans", f.sink.Spans())
	}
}

// FuzzDatagram checks that every datagram yields spans or an error with a reason.
func FuzzDatagram(f *testing.F) {
	for _, enc := range []native.Encoding{native.Compact, native.Binary} {
		f.Add(message(f, enc, "emitBatch", batch("a", "b")), enc == native.Binary)
		f.Add(message(f, enc, "emitZipkinBatch", zipkinBatch("a", "b")), enc == native.Binary)
	}
	f.Add([]byte("\x82\x81\x00\x09emitBatch"), false)
	f.Fuzz(func(t *testing.T, b []byte, binary bool) {
		l := &listener{port: port{encoding: native.Compact}, clients: newTestClients(t, 1)}
		if binary {
			l.port.encoding = native.Binary
		}
		j := joiner{budget: pipeline.NewBudget(0)}
		err := l.translate(b, &j)
		if err != nil && (reasonOf(err) == "" || len(j.native)+len(j.zipkin) > 0) {
			t.Errorf("refused as %q with error %v but added to a batch", reasonOf(err), err)
		}
		for _, p := range slices.Concat(j.native, j.zipkin) {
			if p.Len() == 0 {
				t.Error("batch without spans")
			}
		}
	})
}
