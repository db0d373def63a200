package otlp

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
	collogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

// logHop is an OTLP server for logs.
type logHop struct {
	collogs.UnimplementedLogsServiceServer
	mu      sync.Mutex
	got     *collogs.ExportLogsServiceRequest
	partial *collogs.ExportLogsPartialSuccess
}

// Export records the request and responds.
func (h *logHop) Export(_ context.Context, req *collogs.ExportLogsServiceRequest) (*collogs.ExportLogsServiceResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got = req
	return &collogs.ExportLogsServiceResponse{PartialSuccess: h.partial}, nil
}

// Log records are sent to the logs service of the next hop, which can reject some.
func TestLogs(t *testing.T) {
	hop := &logHop{}
	addr := pipelinetest.StartHop(t, "localhost:0", func(srv *grpc.Server) { collogs.RegisterLogsServiceServer(srv, hop) }).Addr
	e, _ := start(t, addr, nil)
	ld := plog.NewLogs()
	r := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	r.Body().SetStr("text")
	r.SetSpanID([8]byte{1})
	b, err := otlpdata.FromLogs(ld, otlpdata.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Consume(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	var want collogs.ExportLogsServiceRequest
	enc, err := b.Encoded()
	if err != nil || proto.Unmarshal(enc, &want) != nil || !proto.Equal(hop.got, &want) {
		t.Errorf("%v arrived, %v", hop.got, err)
	}
	hop.partial = &collogs.ExportLogsPartialSuccess{RejectedLogRecords: 1, ErrorMessage: "too old"}
	var partial *pipeline.Partial
	if err := e.Consume(t.Context(), b); !errors.As(err, &partial) || partial.Rejected != 1 || !strings.Contains(err.Error(), "too old") {
		t.Errorf("%v", err)
	}
}
