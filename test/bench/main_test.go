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
	goleak.VerifyTestMain(m, goleak.Cleanup(harness.Cleanup))
}

// decodeServer, as an environment variable, makes the test program a gRPC server that decodes requests into pdata and forgets them: the
// floor that servers of the field stand on.
const decodeServer = "TRACING_TEST_DECODE_SERVER"

func runDecodeServer() {
	ln, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		panic(err)
	}
	s := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
	ptraceotlp.RegisterGRPCServer(s, &forgetful{})
	fmt.Println(ln.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // the end of the input ends the program
		s.GracefulStop()
	}()
	if err := s.Serve(ln); err != nil {
		panic(err)
	}
}

type forgetful struct {
	*ptraceotlp.UnimplementedGRPCServer
}

func (*forgetful) Export(context.Context, ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	return ptraceotlp.NewExportResponse(), nil
}
