package native

import (
	"net"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/tracing-backend/tracing/pipeline/server"
)

// BenchmarkConsume sends batches of 512 spans to a server that does not decode them. See ns/span
// for the result.
func BenchmarkConsume(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	sink := grpc.NewServer(grpc.ForceServerCodecV2(server.RawCodec()), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		var req server.Raw
		if err := s.RecvMsg(&req); err != nil {
			return err
		}
		return s.SendMsg(&server.Raw{})
	}))
	done := make(chan error, 1)
	go func() { done <- sink.Serve(ln) }()
	b.Cleanup(func() {
		sink.Stop()
		if err := <-done; err != nil {
			b.Errorf("Serve: %v", err)
		}
	})
	const spans = 512
	data := batch(b, "", spans)
	for _, compression := range []string{"none", "zstd", "gzip"} {
		b.Run(compression, func(b *testing.B) {
			e := newFixture().start(b, ln.Addr().String(), func(c *config) { c.Compression = compression })
			e.set.Logger = zap.NewNop()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := e.Consume(b.Context(), data); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/spans, "ns/span")
		})
	}
}
