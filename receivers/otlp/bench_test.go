package otlp

import (
	"context"
	"net"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
)

const benchSpans = 512

type nop struct{}

func (nop) Consume(context.Context, *otlpdata.Batch) error { return nil }

// BenchmarkExport measures requests with 512 spans over gRPC whose spans are discarded, and
// compares with a plain pdata server.
func BenchmarkExport(b *testing.B) {
	b.Run("receiver", func(b *testing.B) {
		f := start(b, testConfig(), 256<<20, &pipelinetest.Sink{})
		f.receiver.next = nop{}
		export(b, f.Addr("grpc"))
	})
	b.Run("bare pdata server", func(b *testing.B) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		s := grpc.NewServer()
		ptraceotlp.RegisterGRPCServer(s, &pdataServer{})
		done := make(chan error)
		go func() { done <- s.Serve(ln) }()
		export(b, ln.Addr().String())
		s.Stop()
		<-done
	})
}

type pdataServer struct {
	ptraceotlp.UnimplementedGRPCServer
}

func (*pdataServer) Export(context.Context, ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	return ptraceotlp.NewExportResponse(), nil
}

func export(b *testing.B, addr string) {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(server.RawCodec())))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	req := server.Raw(request(benchSpans))
	b.SetBytes(int64(len(req)))
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if err := conn.Invoke(context.Background(), exportMethod, &req, new(server.Raw)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchSpans, "ns/span")
}
