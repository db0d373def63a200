package lines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
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
		Config:         "endpoint: localhost:0",
		PartialSuccess: true,
		Normalize:      transported,
		Send: func(ctx context.Context, addr string, spans ptrace.Traces) error {
			return send(ctx, addr, written(spans))
		},
	})
}

// transported leaves what a line transports: service, name and duration in milliseconds.
func transported(spans ptrace.Traces) {
	rest := ptrace.NewTraces()
	for service, span := range each(spans) {
		to := rest.ResourceSpans().AppendEmpty()
		to.Resource().Attributes().PutStr("service.name", service)
		short := to.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		short.SetName(span.Name())
		short.SetEndTimestamp((span.EndTimestamp() - span.StartTimestamp()) / 1e6)
	}
	rest.MoveTo(spans)
}

// each returns the spans with their services.
func each(td ptrace.Traces) iter.Seq2[string, ptrace.Span] {
	return func(yield func(string, ptrace.Span) bool) {
		for _, rs := range td.ResourceSpans().All() {
			service, _ := rs.Resource().Attributes().Get("service.name")
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					if !yield(service.Str(), span) {
						return
					}
				}
			}
		}
	}
}

// written returns the lines for spans.
func written(td ptrace.Traces) string {
	var b strings.Builder
	for service, span := range each(td) {
		fmt.Fprintf(&b, "%s %s %d\n", service, span.Name(), (span.EndTimestamp()-span.StartTimestamp())/1e6)
	}
	return b.String()
}

// send sends lines and returns the outcome as a client sees it.
func send(ctx context.Context, addr, lines string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr, strings.NewReader(lines))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	answer := strings.TrimSpace(string(body))
	rejected := 0
	switch _, err := fmt.Sscanf(answer, "%d items rejected", &rejected); {
	case resp.StatusCode == http.StatusOK && err == nil:
		return &pipeline.Partial{Rejected: rejected, Err: errors.New(answer)}
	case resp.StatusCode == http.StatusOK:
		return nil
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= http.StatusInternalServerError:
		return errors.New(answer)
	}
	return pipeline.Permanent(errors.New(answer))
}

// sink accepts spans of all services but two.
type sink struct{}

func (sink) Consume(_ context.Context, b *otlpdata.Batch) error {
	switch b.Services()[0].Service {
	case "busy":
		return pipeline.Overloaded(errors.New("too much at once"), 7*time.Second)
	case "unwanted":
		return &pipeline.Partial{Rejected: 1, Err: errors.New("not wanted")}
	}
	return nil
}

// start runs a program with the receiver and a sink, and returns the URL of the receiver.
func start(t *testing.T, config string) string {
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
	return "http://" + a.Addr(pipeline.ID{Type: "lines"}, "http")
}

func TestAnswers(t *testing.T) {
	url := start(t, "{endpoint: localhost:0, max_duration: 1m, max_request_body_size: 100}")
	for _, c := range []struct {
		lines  string
		code   int
		answer string
	}{
		{"backup copy 5300", 200, "ok"},
		{" shop  pay\t20\r\n\nshop pay 60000\n", 200, "ok"},
		{"backup copy 1\nbackup copy\n", 400, "line 2: 2 words; " + formatHint},
		{"shop pay -1\n", 400, "line 1: duration is not a whole number of milliseconds; " + formatHint},
		{"shop pay 60001\n", 400, "line 1: duration exceeds max_duration (1m0s)"},
		{"busy pay 20\n", 429, "too much at once"},
		{"unwanted pay 20\n", 200, "1 items rejected: not wanted"},
		{"shop " + strings.Repeat("y", 200) + " 20\n", 413, ""},
	} {
		resp, err := http.Post(url, "text/plain", strings.NewReader(c.lines))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.TrimSpace(string(body))
		if resp.StatusCode != c.code || c.answer != "" && got != c.answer {
			t.Errorf("%q: answer %d %q, want %d %q", c.lines, resp.StatusCode, got, c.code, c.answer)
		}
		if after := resp.Header.Get("Retry-After"); (after == "7") != (c.code == 429) {
			t.Errorf("%q: Retry-After %q", c.lines, after)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestSpan(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l, err := parseLine("backup copy 5300")
	if err != nil {
		t.Fatal(err)
	}
	rs := traces([]line{l}, now, func() uint64 { return 7 }).ResourceSpans().At(0)
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
