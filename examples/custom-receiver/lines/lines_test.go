package lines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The receiver keeps every promise that the framework's users rely on.
func TestConformance(t *testing.T) {
	pipelinetest.Receiver(t, Factory(), pipelinetest.ReceiverOptions{
		Config: "endpoint: localhost:0",
		Send: func(ctx context.Context, addr string, spans ptrace.Traces) error {
			return send(ctx, addr, written(spans))
		},
	})
}

// written is how a script would write spans.
func written(td ptrace.Traces) string {
	var b strings.Builder
	for _, rs := range td.ResourceSpans().All() {
		service, _ := rs.Resource().Attributes().Get("service.name")
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			ms := (s.EndTimestamp() - s.StartTimestamp()) / 1e6
			fmt.Fprintf(&b, "%s %s %d\n", service.Str(), s.Name(), ms)
		}
	}
	return b.String()
}

// send posts lines and returns what a client makes of the answer.
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
	problem := strings.TrimSpace(strings.ReplaceAll(string(body), okAnswer, ""))
	switch {
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= http.StatusInternalServerError:
		return errors.New(problem)
	case problem != "":
		return pipeline.Permanent(errors.New(problem))
	}
	return nil
}

func TestAnswers(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	random := func() uint64 { return 7 }
	td, answers := parse([]byte("backup copy 5300\nbackup copy\n\n shop  pay\t20\r\nshop pay -1"), now, random)
	want := "ok\nline 2: 2 words; " + formatHint + "\nline 3: 0 words; " + formatHint + "\nok\n" +
		"line 5: the duration is not a whole number of milliseconds; " + formatHint + "\n"
	if answers != want {
		t.Errorf("answers\n%swant\n%s", answers, want)
	}
	if td.SpanCount() != 2 {
		t.Fatalf("%d spans, want 2", td.SpanCount())
	}
	first := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	if first.Name() != "copy" || first.EndTimestamp().AsTime().Sub(first.StartTimestamp().AsTime()) != 5300*time.Millisecond {
		t.Errorf("the first span is %q from %v to %v", first.Name(), first.StartTimestamp(), first.EndTimestamp())
	}
}

// start runs the receiver in a program, in front of nothing, and returns its address.
func start(t *testing.T, config string) (addr string) {
	t.Helper()
	file := fmt.Sprintf(`
receivers: {lines: %s}
exporters: {nop: }
service: {limits: {inflight: 1MiB}, pipelines: {traces: {receivers: [lines], exporters: [nop]}}}`, config)
	cfg, err := pipeline.Load(pipeline.LoadOptions{Factories: append(tracing.Components(), Factory()), Files: []string{"test.yaml"},
		ReadFile: func(string) ([]byte, error) { return []byte(file), nil }})
	if err != nil {
		t.Fatal(err)
	}
	app, err := pipeline.New(cfg, pipeline.AppOptions{Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := app.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return app.Addr(pipeline.ID{Type: "lines"}, "http")
}

func request(t *testing.T, method, addr, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestStatuses(t *testing.T) {
	addr := start(t, "{endpoint: localhost:0, max_lines: 1000}")
	for _, c := range []struct {
		method, body string
		status       int
		answer       string // a part of it
	}{
		{http.MethodPost, "backup copy 1\nbackup\n", http.StatusOK, "ok\nline 2: 1 words"},
		{http.MethodPost, "backup\n", http.StatusBadRequest, "line 1: 1 words"},
		{http.MethodPost, "", http.StatusBadRequest, "no lines"},
		{http.MethodPost, strings.Repeat("a b 1\n", 100), http.StatusOK, "ok\nok\n"},
		{http.MethodPost, strings.Repeat("a b 1\n", 1001), http.StatusRequestEntityTooLarge, "lines in one request"},
		{http.MethodPost, strings.Repeat("a b 1\n", 1000), http.StatusTooManyRequests, "too many bytes in flight"}, // of 1 MiB
		{http.MethodGet, "", http.StatusMethodNotAllowed, "send lines with POST"},
	} {
		status, answer := request(t, c.method, addr, c.body)
		if status != c.status || !strings.Contains(answer, c.answer) {
			t.Errorf("%s of %d bytes: %d %q, want %d %q", c.method, len(c.body), status, answer, c.status, c.answer)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, n := range []int{0, -1} {
		c := defaults()
		c.MaxLines = n
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "must be from 1") {
			t.Errorf("max_lines %d: %v", n, err)
		}
	}
}

// FuzzParseLine: a line that is read says what was written, whatever it is.
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
			t.Errorf("%q is %+v, and written again %+v, %v", s, l, again, err)
		}
	})
}
