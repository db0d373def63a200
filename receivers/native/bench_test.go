package native

import (
	"testing"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

// BenchmarkTranslate measures the translation of a request with 512 spans to a batch, and
// separately the estimation of its memory.
func BenchmarkTranslate(b *testing.B) {
	const spans = 512
	f := build(b, testConfig(), 256<<20, &pipelinetest.Sink{})
	for name, c := range map[string]struct {
		format wireFormat
		body   []byte
	}{"protobuf": {postSpans, protoRequest(spans)}, "Thrift": {thriftBatch, thriftRequest(spans)}} {
		perSpan := func(b *testing.B) { b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/spans, "ns/span") }
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				batch, err := f.translate(b.Context(), c.body, c.format)
				if err != nil {
					b.Fatal(err)
				}
				batch.Release()
			}
			perSpan(b)
		})
		b.Run(name+" memory", func(b *testing.B) {
			for b.Loop() {
				c.format.memory(c.body, native.TypicalGrowth)
			}
			perSpan(b)
		})
	}
}
