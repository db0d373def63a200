package thriftudp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server/udp"
)

type discard struct{}

func (discard) Consume(context.Context, *otlpdata.Batch) error { return nil }

// datagram returns a datagram with one typical span.
func datagram(t testing.TB) []byte {
	args := batch("GET /cart/{id}")
	for i := range 6 {
		text := fmt.Sprintf("some value of ordinary size %d", i)
		args.Batch.Spans[0].Tags = append(args.Batch.Spans[0].Tags, &jaeger.Tag{Key: fmt.Sprintf("http.some.key.%d", i), VStr: &text})
	}
	return message(t, native.Compact, "emitBatch", args)
}

// BenchmarkTranslate measures the work of a worker per datagram with one span.
func BenchmarkTranslate(b *testing.B) {
	l := &listener{port: port{encoding: native.Compact}, clients: newTestClients(b, 1), next: discard{}}
	data := datagram(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	const joined = 500 // datagrams
	for b.Loop() {
		j := joiner{budget: pipeline.NewBudget(0)}
		for range joined {
			if err := errors.Join(j.reserveFor(data), l.translate(data, &j)); err != nil {
				b.Fatal(err)
			}
		}
		pipeline.ConsumeJoined(b.Context(), l.next, j.native, func(_ []*otlpdata.Batch, err error) {
			if err != nil {
				b.Fatal(err)
			}
		})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*joined), "ns/datagram")
}

// BenchmarkUDP measures the complete path, including the system call of the client.
func BenchmarkUDP(b *testing.B) {
	s := &pipelinetest.Sink{Answer: func(context.Context, *otlpdata.Batch) error { return context.Canceled }}
	f := start(b, testConfig(), 64<<20, s)
	conn, err := net.Dial("udp", f.Addr("compact"))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	data := datagram(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	sent := int64(0)
	for b.Loop() {
		if _, err := conn.Write(data); err != nil {
			b.Fatal(err)
		}
		if sent++; sent%1000 == 0 {
			stats := f.Listeners["compact"].(*udp.Server).Stats
			for st := stats(); st.Processed+st.Dropped+st.KernelDrops < sent-1000; st = stats() {
				time.Sleep(50 * time.Microsecond)
			}
		}
	}
}
