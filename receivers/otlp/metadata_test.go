package otlp

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// With include_metadata, batches have the headers of their requests, over both protocols.
func TestIncludeMetadata(t *testing.T) {
	for _, include := range []bool{true, false} {
		s := &pipelinetest.Sink{}
		f := start(t, testConfig(func(g *server.GRPCConfig, h *httpConfig) { g.IncludeMetadata, h.IncludeMetadata = include, include }), 0, s)
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-org", "a", "x-org", "b")
		if _, err := ptraceotlp.NewGRPCClient(f.dial(t)).Export(ctx, ptraceotlp.NewExportRequestFromTraces(traces(1))); err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.tracesURL(), bytes.NewReader(request(1)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/x-protobuf"}, "X-Org": {"a", "b"}}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		batches := s.Batches()
		if len(batches) != 2 {
			t.Fatalf("%d batches", len(batches))
		}
		for _, b := range batches {
			headers := maps.Collect(b.Meta().Metadata.All())
			if include && !slices.Equal(headers["x-org"], []string{"a", "b"}) || !include && len(headers) > 0 {
				t.Errorf("include_metadata %t, %s: %q", include, b.Meta().Transport, headers)
			}
			if b.Meta().Transport == "http" && include && len(headers["host"]) != 1 {
				t.Errorf("no host in %q", headers)
			}
		}
	}
}
