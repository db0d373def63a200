package rows

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// usual returns a batch of spans as instrumented services send them.
func usual(tb testing.TB, spans int) *otlpdata.Batch {
	tb.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	var b otlpdata.Builder
	for i := range spans {
		if i%20 == 0 {
			b.Resource([]otlpdata.KeyValue{
				{Key: "service.name", Value: otlpdata.StringValue(fmt.Sprint("service-", r.IntN(30)))},
				{Key: "host.name", Value: otlpdata.StringValue(fmt.Sprint("host-", r.IntN(100)))},
				{Key: "telemetry.sdk.language", Value: otlpdata.StringValue("go")},
			})
			b.Scope("go.opentelemetry.io/contrib/net/http", "0.60.0", nil)
		}
		s := otlpdata.Span{Name: fmt.Sprint("GET /route/", r.IntN(50)), Kind: otlpdata.KindServer,
			Start: uint64(arrived.UnixNano()) + r.Uint64N(1e12), Flags: 0x101, Attributes: []otlpdata.KeyValue{
				{Key: "http.request.method", Value: otlpdata.StringValue("GET")},
				{Key: "http.route", Value: otlpdata.StringValue("/route/{id}")},
				{Key: "url.path", Value: otlpdata.StringValue(fmt.Sprint("/route/", r.IntN(100_000)))},
				{Key: "http.response.status_code", Value: otlpdata.IntValue(200)},
				{Key: "enduser.id", Value: otlpdata.StringValue(fmt.Sprint("user-", r.IntN(10_000)))},
				{Key: "cached", Value: otlpdata.BoolValue(false)},
			}}
		s.End = s.Start + r.Uint64N(1e9)
		for j := range s.TraceID {
			s.TraceID[j] = byte(r.Uint32())
		}
		copy(s.SpanID[:], s.TraceID[4:])
		b.Span(&s)
	}
	batch, err := otlpdata.FromOTLP(b.Bytes(), otlpdata.Meta{Tenant: "acme"}, otlpdata.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return batch
}

// BenchmarkEncode encodes batches of 10,000 spans, without and with filling the blocks of the
// client.
func BenchmarkEncode(b *testing.B) {
	const spans = 10_000
	batch, o := usual(b, spans), options()
	o.MaxRows, o.MaxBytes = 100_000, 64<<20
	for _, fill := range []bool{false, true} {
		b.Run(fmt.Sprint("fill=", fill), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := Encode(batch, o, func(block *Block) error {
					if fill {
						transfer(b, block.Payload, true)
						transfer(b, block.Spans, true)
					}
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(spans)*float64(b.N)/b.Elapsed().Seconds(), "spans/s")
		})
	}
}
