package conformance_test

import (
	"context"
	"encoding/json"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

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

// postZipkin sends spans as a Zipkin client does.
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
	return post(ctx, "http://"+addr+"/api/v2/spans", "application/json", body)
}
