package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/receivers/zipkin"
)

func zipkinReceiver(t *testing.T) {
	pipelinetest.Receiver(t, zipkin.Factory(), pipelinetest.ReceiverOptions{
		Config:   `endpoint: "localhost:0"`,
		Listener: "http",
		Send:     postZipkin,
	})
}

// postZipkin sends spans as Zipkin's clients do.
func postZipkin(ctx context.Context, addr string, td ptrace.Traces) error {
	type span struct {
		TraceID string `json:"traceId"`
		ID      string `json:"id"`
		Name    string `json:"name"`
	}
	spans := []span{}
	for _, name := range namesOf(td) {
		spans = append(spans, span{"0000000000000001", "0000000000000001", name})
	}
	body, err := json.Marshal(spans)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/api/v2/spans", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusAccepted:
		return nil
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable:
		return errors.New(string(text))
	}
	return pipeline.Permanent(errors.New(string(text)))
}
