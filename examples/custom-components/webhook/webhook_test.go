package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The exporter passes the conformance suite.
func TestExporterConformance(t *testing.T) {
	pipelinetest.Exporter(t, ExporterFactory(), pipelinetest.ExporterOptions{
		Config: func(tb testing.TB, next pipeline.Consumer) string {
			return fmt.Sprintf("{endpoint: %q, compression: none}", startFarEnd(tb, next))
		},
	})
}

// startFarEnd starts a web server that passes all that it receives to next and answers with the
// outcome. It returns its URL.
func startFarEnd(tb testing.TB, next pipeline.Consumer) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		b, err := otlpdata.FromOTLP(body, otlpdata.Meta{Tenant: req.Header.Get("X-Tenant")}, otlpdata.Limits{})
		if err == nil {
			err = next.Consume(req.Context(), b)
		}
		reply(w, err)
	}))
	tb.Cleanup(srv.Close)
	return srv.URL
}

// The receiver passes the conformance suite.
func TestReceiverConformance(t *testing.T) {
	pipelinetest.Receiver(t, ReceiverFactory(), pipelinetest.ReceiverOptions{
		Config:         "endpoint: localhost:0",
		PartialSuccess: true,
		Send:           send,
	})
}

// send sends spans and returns the outcome as a client sees it.
func send(ctx context.Context, addr string, spans ptrace.Traces) error {
	body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(spans)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var a answer
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return err
	}
	switch {
	case resp.StatusCode == http.StatusOK && a.Rejected > 0:
		return &pipeline.Partial{Rejected: int(a.Rejected), Err: errors.New(a.Error)}
	case resp.StatusCode == http.StatusOK:
		return nil
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= http.StatusInternalServerError:
		return errors.New(a.Error)
	}
	return pipeline.Permanent(errors.New(a.Error))
}

// TestPartialOverHTTP shows the response to a request with two rejected spans.
func TestPartialOverHTTP(t *testing.T) {
	for _, c := range []struct {
		err        error
		code       int
		body       string
		retryAfter string
	}{
		{nil, 200, `{"rejected":0}`, ""},
		{&pipeline.Partial{Rejected: 2, Err: errors.New("no name")}, 200, `{"rejected":2,"error":"2 items rejected: no name"}`, ""},
		{pipeline.Permanent(errors.New("no name")), 400, `{"rejected":0,"error":"no name"}`, ""},
		{pipeline.Overloaded(errors.New("busy"), 1), 429, `{"rejected":0,"error":"busy"}`, "1"},
	} {
		w := httptest.NewRecorder()
		reply(w, c.err)
		if got := strings.TrimSpace(w.Body.String()); w.Code != c.code || got != c.body || w.Header().Get("Retry-After") != c.retryAfter {
			t.Errorf("%v: %d %s, want %d %s", c.err, w.Code, got, c.code, c.body)
		}
	}
}
