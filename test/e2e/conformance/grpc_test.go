package conformance_test

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"

	grpcexporter "github.com/tracing-backend/tracing/exporters/grpc"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

// grpcExporter writes to a store of the field, which does not know the question for capabilities.
func grpcExporter(t *testing.T) {
	pipelinetest.Exporter(t, grpcexporter.Factory(), pipelinetest.ExporterOptions{
		Config: func(tb testing.TB, next pipeline.Consumer) string {
			ln, err := net.Listen("tcp", "localhost:0")
			if err != nil {
				tb.Fatal(err)
			}
			srv := grpc.NewServer()
			ptraceotlp.RegisterGRPCServer(srv, &hop{next: next})
			served := make(chan error)
			go func() { served <- srv.Serve(ln) }()
			tb.Cleanup(func() {
				srv.Stop()
				if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // stopped before it served
					tb.Error(err)
				}
			})
			return fmt.Sprintf("{endpoint: %q, tls: {insecure: true}, protocol: v2}", ln.Addr())
		},
	})
}
