package conformance_test

import (
	"fmt"
	"testing"

	grpcexporter "github.com/tracing-backend/tracing/exporters/grpc"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

// grpcExporter writes to a store that does not implement the service for capabilities.
func grpcExporter(t *testing.T) {
	pipelinetest.Exporter(t, grpcexporter.Factory(), pipelinetest.ExporterOptions{
		Config: func(tb testing.TB, next pipeline.Consumer) string {
			return fmt.Sprintf("{endpoint: %q, tls: {insecure: true}, protocol: v2, %s}", startHop(tb, next), patient)
		},
	})
}
