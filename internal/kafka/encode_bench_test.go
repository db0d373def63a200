package kafka

import (
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
)

// BenchmarkEncode encodes batches of 512 spans for twelve partitions.
func BenchmarkEncode(b *testing.B) {
	var batches []*otlpdata.Batch
	for r := range bench.New(1, time.Now()).Requests(20_000, 512) {
		batch, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		batches = append(batches, batch)
	}
	for _, encoding := range Encodings() {
		for _, key := range []string{KeyTraceID, KeyNone} {
			b.Run(encoding+"/"+key, func(b *testing.B) {
				b.ReportAllocs()
				spans := 0
				var buffers Buffers
				for i := 0; b.Loop(); i++ {
					batch := batches[i%len(batches)]
					records, err := Encode(batch, EncodeOptions{Encoding: encoding, Key: key, Partitions: 12, MaxBytes: 1_000_000,
						Grow: func(int) error { return nil }, Buffers: &buffers})
					if err != nil {
						b.Fatal(err)
					}
					records.Reuse()
					spans += batch.Len()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(spans), "ns/span")
			})
		}
	}
}
