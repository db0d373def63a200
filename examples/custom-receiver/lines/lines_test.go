package lines

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The receiver passes the conformance suite.
func TestConformance(t *testing.T) {
	pipelinetest.Receiver(t, Factory(), pipelinetest.ReceiverOptions{
		Config:    "endpoint: localhost:0",
		Spans:     1, // per message: each line has its own answer
		Normalize: transported,
		Send: func(ctx context.Context, addr string, spans ptrace.Traces) error {
			return send(ctx, addr, written(spans))
		},
	})
}

// transported leaves what a line transports: service, name and duration in milliseconds.
func transported(spans ptrace.Traces) {
	rest := ptrace.NewTraces()
	for _, from := range spans.ResourceSpans().All() {
		to := rest.ResourceSpans().AppendEmpty()
		service, _ := from.Resource().Attributes().Get("service.name")
		to.Resource().Attributes().PutStr("service.name", service.Str())
		span, short := from.ScopeSpans().At(0).Spans().At(0), to.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		short.SetName(span.Name())
		short.SetEndTimestamp((span.EndTimestamp() - span.StartTimestamp()) / 1e6)
	}
	rest.MoveTo(spans)
}

// written returns the line for a span.
func written(td ptrace.Traces) string {
	rs := td.ResourceSpans().At(0)
	service, _ := rs.Resource().Attributes().Get("service.name")
	span := rs.ScopeSpans().At(0).Spans().At(0)
	return fmt.Sprintf("%s %s %d\n", service.Str(), span.Name(), (span.EndTimestamp()-span.StartTimestamp())/1e6)
}

// send sends a line and returns the outcome as a client sees it.
func send(ctx context.Context, addr, line string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, line); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	switch {
	case err != nil:
		return err
	case answer == "ok\n":
		return nil
	case strings.HasPrefix(answer, "refused: "):
		return pipeline.Permanent(errors.New(answer))
	}
	return errors.New(answer)
}

// sink accepts spans of all services but two.
type sink struct{}

func (sink) Consume(_ context.Context, b *otlpdata.Batch) error {
	switch b.Services()[0].Service {
	case "busy":
		return pipeline.Overloaded(errors.New("too much\nat once"), 7*time.Second)
	case "unwanted":
		return &pipeline.Partial{Rejected: 1, Err: errors.New("not wanted")}
	}
	return nil
}

// start runs a program with the receiver and a sink, and returns a connection to the receiver.
func start(t *testing.T, config string) net.Conn {
	t.Helper()
	file := fmt.Sprintf(`
receivers: {lines: %s}
exporters: {sink: }
service: {limits: {inflight: 1MiB}, pipelines: {traces: {receivers: [lines], exporters: [sink]}}}`, config)
	none := func() struct{} { return struct{}{} }
	newSink := func(pipeline.Settings, struct{}) (sink, error) { return sink{}, nil }
	cfg, err := app.Load(app.LoadOptions{
		Factories: []pipeline.Factory{Factory(), pipeline.Exporter("sink", none, newSink)},
		Files:     []string{"test.yaml"},
		ReadFile:  func(string) ([]byte, error) { return []byte(file), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(cfg, app.Options{Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	conn, err := net.Dial("tcp", a.Addr(pipeline.ID{Type: "lines"}, "tcp"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestAnswers(t *testing.T) {
	conn := start(t, "{endpoint: localhost:0, max_duration: 1m, max_message_size: 100}")
	answers := bufio.NewReader(conn)
	for _, c := range []struct{ line, answer string }{
		{"backup copy 5300\n", "ok\n"},
		{" shop  pay\t20\r\n", "ok\n"},
		{"backup copy\n", "refused: 2 words; " + formatHint + "\n"},
		{"\n", "refused: 0 words; " + formatHint + "\n"},
		{"shop pay -1\n", "refused: duration is not a whole number of milliseconds; " + formatHint + "\n"},
		{"shop pay 60000\n", "ok\n"},
		{"shop pay 60001\n", "refused: duration exceeds max_duration (1m0s)\n"},
		{"busy pay 20\n", "retry after 7s: too much at once\n"},
		{"unwanted pay 20\n", "refused: 1 spans rejected: not wanted\n"},
		{"shop " + strings.Repeat("y", 200) + " 20\n", "refused: message exceeds max_message_size of 100 bytes\n"},
	} {
		if _, err := io.WriteString(conn, c.line); err != nil {
			t.Fatal(err)
		}
		if got, err := answers.ReadString('\n'); err != nil || got != c.answer {
			t.Errorf("%q: answer %q %v, want %q", c.line, got, err, c.answer)
		}
	}
	if rest, err := io.ReadAll(answers); err != nil || len(rest) > 0 {
		t.Errorf("more data after a line that is too long: %q %v", rest, err)
	}
}

func TestSpan(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l, err := parseLine("backup copy 5300")
	if err != nil {
		t.Fatal(err)
	}
	rs := l.traces(now, func() uint64 { return 7 }).ResourceSpans().At(0)
	service, _ := rs.Resource().Attributes().Get("service.name")
	span := rs.ScopeSpans().At(0).Spans().At(0)
	if service.Str() != "backup" || span.Name() != "copy" || span.TraceID().IsEmpty() || span.SpanID().IsEmpty() {
		t.Errorf("service %q, span %q, trace %v, id %v", service.Str(), span.Name(), span.TraceID(), span.SpanID())
	}
	if start, end := span.StartTimestamp().AsTime(), span.EndTimestamp().AsTime(); !end.Equal(now) || end.Sub(start) != 5300*time.Millisecond {
		t.Errorf("from %v to %v", start, end)
	}
}

func TestConfig(t *testing.T) {
	c := defaults()
	if err := c.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	c.MaxDuration = 0
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "must be above 0") {
		t.Errorf("max_duration 0: %v", err)
	}
}

// FuzzParseLine checks that a parsed line is the same when it is written and parsed again.
func FuzzParseLine(f *testing.F) {
	for _, s := range []string{"backup copy 5300", "", "a b", "a b 4294967296", "\xff \x00 0", "a\u00a0b c 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := parseLine(s)
		if err != nil {
			return
		}
		again, err := parseLine(fmt.Sprintf("%s %s %d", l.service, l.operation, l.duration.Milliseconds()))
		if err != nil || again != l {
			t.Errorf("%q is %+v; written and parsed again %+v, %v", s, l, again, err)
		}
	})
}
