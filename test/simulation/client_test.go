package simulation_test

import (
	"bytes"
	"context"
	bin "encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/simulation/simnet"
)

// sentSpans records all spans that were sent. Their numbers are 1 to last.
type sentSpans struct {
	mu    sync.Mutex
	last  uint64
	acked map[uint64]processRange // acknowledged spans, and the processes that may have acknowledged them
}

// more returns the numbers of new spans.
func (l *sentSpans) more(n int) []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	numbers := make([]uint64, n)
	for i := range numbers {
		l.last++
		numbers[i] = l.last
	}
	return numbers
}

func (l *sentSpans) ack(numbers []uint64, by processRange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range numbers {
		l.acked[n] = by
	}
}

// sender is an application. It sends spans to one agent over gRPC, HTTP or UDP, and records which
// spans were acknowledged.
type sender struct {
	w     *world
	rng   *rand.Rand
	host  *simnet.Host
	conn  *grpc.ClientConn // nil for other protocols
	http  *http.Client     // nil for other protocols
	udp   net.PacketConn   // nil for other protocols
	agent *node
	addr  string // of the agent
}

func newSender(w *world, i int) *sender {
	agent := w.agents[i%w.plan.agents]
	c := &sender{w: w, rng: rand.New(rand.NewPCG(w.plan.seed, uint64(i)+1)), host: w.net.Host(clientAddr(i)),
		agent: agent, addr: agent.addr}
	var err error
	switch c.rng.IntN(5) {
	case 0:
		if c.udp, err = c.host.ListenPacket(context.Background(), "udp", ":0"); err != nil {
			w.t.Fatal(err)
		}
		return c
	case 1, 2:
		c.http = &http.Client{Transport: &http.Transport{DialContext: c.host.Dial}}
		return c
	}
	delays := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.5, MaxDelay: 2 * time.Second}
	c.conn, err = grpc.NewClient("passthrough:///"+c.addr+":4317", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: delays}),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return c.host.Dial(ctx, "tcp", addr) }))
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// run sends all requests at random times. Requests may overlap.
func (c *sender) run() {
	var sends sync.WaitGroup
	for range c.w.plan.requests {
		time.Sleep(between(c.rng, 0, 2*c.w.plan.length/time.Duration(c.w.plan.requests)))
		numbers := c.w.sent.more(1 + c.rng.IntN(8))
		retries := c.rng.IntN(8)
		sends.Go(func() { c.deliver(numbers, retries) })
	}
	sends.Wait()
}

// deliver sends spans until they are acknowledged, with at most the given number of retries.
func (c *sender) deliver(numbers []uint64, retries int) {
	spans := numberedSpans(c.w.began, numbers)
	if c.udp != nil {
		c.sendDatagram(spans)
		return
	}
	request := ptraceotlp.NewExportRequestFromTraces(spans)
	for range 1 + retries {
		first := c.agent.latest()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := c.send(ctx, request)
		cancel()
		if err == nil {
			c.w.sent.ack(numbers, processRange{c.agent, first, c.agent.latest()})
			return
		}
		if c.w.plan.reloadsOnly {
			c.w.t.Errorf("%s refused spans in a scenario with reloads only: %v", c.agent.name, err)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// sendDatagram sends spans in a datagram, which is not acknowledged.
func (c *sender) sendDatagram(td ptrace.Traces) {
	b := harness.JaegerBatch(td)
	for i := range b.Spans {
		b.Spans[i].Tags = []*jaeger.Tag{{Key: "number", VType: jaeger.TagType_LONG, VLong: &b.Spans[i].SpanId}}
	}
	if _, err := c.udp.WriteTo(harness.Datagram(c.w.t, b), &net.UDPAddr{IP: net.ParseIP(c.addr), Port: 6831}); err != nil {
		c.w.t.Errorf("sending a datagram: %v", err)
	}
}

func (c *sender) send(ctx context.Context, request ptraceotlp.ExportRequest) error {
	if c.conn != nil {
		answer, err := ptraceotlp.NewGRPCClient(c.conn).Export(ctx, request)
		if err != nil {
			return err
		}
		return rejected(answer)
	}
	body, err := request.MarshalProto()
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.addr+":4318/v1/traces", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	answer := ptraceotlp.NewExportResponse()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %q", resp.Status, text)
	}
	if err := answer.UnmarshalProto(text); err != nil {
		return err
	}
	return rejected(answer)
}

// rejected returns an error unless the response accepts all spans.
func rejected(answer ptraceotlp.ExportResponse) error {
	if p := answer.PartialSuccess(); p.RejectedSpans() > 0 {
		return fmt.Errorf("%d spans rejected: %s", p.RejectedSpans(), p.ErrorMessage())
	}
	return nil
}

func (c *sender) close() {
	var err error
	switch {
	case c.http != nil:
		c.http.CloseIdleConnections()
	case c.udp != nil:
		err = c.udp.Close()
	default:
		err = c.conn.Close()
	}
	if err != nil {
		c.w.t.Errorf("closing a client: %v", err)
	}
}

// simulatedService is the name of the service of all spans.
const simulatedService = "simulated"

// spansPerTrace is the maximum number of spans of a trace. A request has up to eight spans.
const spansPerTrace = 3

// numberedSpans returns traces with spans whose ids are their numbers.
func numberedSpans(at time.Time, numbers []uint64) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", simulatedService)
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for i, n := range numbers {
		var trace pcommon.TraceID
		bin.BigEndian.PutUint64(trace[8:], numbers[i-i%spansPerTrace])
		s := spans.AppendEmpty()
		var id pcommon.SpanID
		bin.BigEndian.PutUint64(id[:], n)
		s.SetTraceID(trace)
		s.SetSpanID(id)
		s.SetName(fmt.Sprint("op", n%7))
		s.Attributes().PutInt("number", int64(n))
		start := at.Add(time.Duration(n) * time.Millisecond)
		s.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
		s.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(time.Millisecond)))
	}
	return td
}
