package bench

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// benchmarkSpans is the number of different spans that a benchmark reads repeatedly. They take 8
// MB, so that requests are no longer in the L1 and L2 caches when they are reread.
const benchmarkSpans = 20_000

// workload is a kind of request.
type workload struct {
	name       string // encoder and number of spans
	perRequest int
	collector  bool // encoded by pdata, with fields in descending order
}

func workloads() []workload {
	return []workload{{"sdk/512", 512, false}, {"sdk/100", 100, false}, {"collector/512", 512, true}}
}

// requests returns requests with exactly perRequest spans each.
func (w workload) requests(b *testing.B) []Request {
	b.Helper()
	d := New(7, time.Unix(1_800_000_000, 0))
	var out []Request
	for r := range d.Requests(10*benchmarkSpans, w.perRequest) {
		if len(out) == benchmarkSpans/w.perRequest {
			break
		}
		if r.Spans < w.perRequest {
			continue
		}
		if w.collector {
			r.Body = reencode(b, r.Body)
		}
		out = append(out, r)
	}
	return out
}

// reencode encodes a request with pdata.
func reencode(b *testing.B, body []byte) []byte {
	b.Helper()
	req := ptraceotlp.NewExportRequest()
	if err := req.UnmarshalProto(body); err != nil {
		b.Fatal(err)
	}
	out, err := req.MarshalProto()
	if err != nil {
		b.Fatal(err)
	}
	return out
}

func decodePdata(body []byte) error {
	req := ptraceotlp.NewExportRequest()
	return req.UnmarshalProto(body)
}

func decodeWalk(body []byte) error {
	_, err := otlpdata.FromOTLP(body, otlpdata.Meta{}, otlpdata.Limits{})
	return err
}

// BenchmarkDecode measures pdata and the walk with each kind of request.
func BenchmarkDecode(b *testing.B) {
	for _, w := range workloads() {
		requests := w.requests(b)
		b.Run("pdata/"+w.name, func(b *testing.B) { benchmarkDecode(b, requests, decodePdata) })
		b.Run("walk/"+w.name, func(b *testing.B) { benchmarkDecode(b, requests, decodeWalk) })
	}
}

func benchmarkDecode(b *testing.B, requests []Request, decode func([]byte) error) {
	spans, i := 0, 0
	allocations := testing.AllocsPerRun(1, func() {
		if err := decode(requests[0].Body); err != nil {
			b.Fatal(err)
		}
	})
	for b.Loop() {
		r := requests[i%len(requests)]
		if err := decode(r.Body); err != nil {
			b.Fatal(err)
		}
		spans, i = spans+r.Spans, i+1
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(spans), "ns/span")
	b.ReportMetric(allocations/float64(requests[0].Spans), "allocs/span")
}
