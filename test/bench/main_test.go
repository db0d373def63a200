package bench_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/tracing-backend/tracing/test/harness"
)

func TestMain(m *testing.M) {
	if os.Getenv(decodeServer) != "" {
		runDecodeServer()
		return
	}
	if os.Getenv(kafkaServer) != "" {
		runKafkaServer()
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(harness.Cleanup))
}

// decodeServer is an environment variable. If it is set, the test program is a gRPC server that
// decodes OTLP requests into pdata and discards them. Its CPU time is the lower bound for servers
// that use pdata.
const decodeServer = "TRACING_TEST_DECODE_SERVER"

func runDecodeServer() {
	ln, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		panic(err)
	}
	s := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
	ptraceotlp.RegisterGRPCServer(s, &discarder{})
	fmt.Println(ln.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // the server stops at the end of the input
		s.GracefulStop()
	}()
	if err := s.Serve(ln); err != nil {
		panic(err)
	}
}

// discarder accepts requests and discards them.
type discarder struct {
	*ptraceotlp.UnimplementedGRPCServer
}

func (*discarder) Export(context.Context, ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	return ptraceotlp.NewExportResponse(), nil
}
