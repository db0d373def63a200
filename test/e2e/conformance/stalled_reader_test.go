package conformance_test

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/test/harness"
)

const stalledConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0", write_timeout: 500ms}}}}
exporters: {nop: }
extensions: {admin: {endpoint: "localhost:0"}}
service:
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], exporters: [nop]}}
`

// TestStalledReader asks for many responses and reads none of them. The connection is closed.
func TestStalledReader(t *testing.T) {
	p := harness.RunYAML(t, stalledConfig)
	p.AwaitReady()
	conn, err := grpc.NewClient(p.OTLPGRPC(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(64<<10)) // it does not grow
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test
	stream, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		if err := stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
			MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}}); err != nil {
			break // the connection is closed
		}
	}
	const metric = `tracing_server_stalled_connections_total{component="otlp",kind="receiver",listener="protocols.grpc"}`
	harness.Poll(t, "a closed connection", func() bool { return harness.Metrics(t, p.AdminURL())[metric] == 1 })
	for err = nil; err == nil; {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("%v", err)
	}
}
