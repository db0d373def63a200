package zipkin

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/internal/translate/native"
)

// benchSpan returns a span as sent by instrumented HTTP clients: two core annotations, an event and
// seven binary annotations on one host.
func benchSpan() *zSpan {
	host := &zHost{ServiceName: "frontend", Ipv4: 10<<24 | 1, Port: 8080}
	s := span1(func(s *zSpan) {
		s.ParentID = at(77)
		s.Annotations = zNotes{note(1500000000000001, "cs", host), note(1500000000000003, "ws", host), note(1500000000000008, "cr", host)}
		s.BinaryAnnotations = zTags{
			zString("http.method", "GET"), zString("http.path", "/api/carts/42"), zString("http.status_code", "200"), zString("lc", "okhttp"),
			zString("http.url", "http://carts:8080/api/carts/42?expand=items"), typed("retries", 3, "\x00\x00\x00\x01"),
			hosted("sa", &zHost{ServiceName: "carts", Ipv4: 10<<24 | 2, Port: 8080}),
		}
	})
	for i := range s.BinaryAnnotations[:6] {
		s.BinaryAnnotations[i].Host = host
	}
	return s
}

const benchHost = `"endpoint":{"serviceName":"frontend","ipv4":"10.0.0.1","port":8080}`

// benchJSON is the same span in JSON.
const benchJSON = `{"traceId":"00000000000000a1","id":"fffffffffffffffe","parentId":"000000000000004d","name":"n",
	"timestamp":1500000000000001,"duration":7,"annotations":[
	{"timestamp":1500000000000001,"value":"cs",` + benchHost + `},
	{"timestamp":1500000000000003,"value":"ws",` + benchHost + `},
	{"timestamp":1500000000000008,"value":"cr",` + benchHost + `}],
	"binaryAnnotations":[{"key":"http.method","value":"GET",` + benchHost + `},{"key":"http.path","value":"/api/carts/42",` + benchHost + `},
	{"key":"http.status_code","value":"200",` + benchHost + `},{"key":"lc","value":"okhttp",` + benchHost + `},
	{"key":"http.url","value":"http://carts:8080/api/carts/42?expand=items",` + benchHost + `},
	{"key":"retries","value":1,` + benchHost + `},
	{"key":"sa","value":true,"endpoint":{"serviceName":"carts","ipv4":"10.0.0.2","port":8080}}]}`

// pdataTime returns the time in nanoseconds in which pdata decodes a request.
func pdataTime(b *testing.B, request []byte) float64 {
	const rounds = 50
	began := time.Now()
	for range rounds {
		if err := ptraceotlp.NewExportRequest().UnmarshalProto(request); err != nil {
			b.Fatal(err)
		}
	}
	return float64(time.Since(began).Nanoseconds()) / rounds
}

// BenchmarkV1 translates 500 spans. The metric x/pdata is the time relative to decoding the result
// with pdata in the same run.
func BenchmarkV1(b *testing.B) {
	const n = 500
	spans := slices.Repeat([]*zSpan{benchSpan()}, n)
	list, args := encodeList(b, spans), encodeArguments(b, native.Compact, spans)
	doc := []byte("[" + strings.Repeat(benchJSON+",", n-1) + benchJSON + "]")
	for name, translate := range map[string]func() ([]byte, error){
		"json":   func() ([]byte, error) { return FromV1JSON(doc, Options{}) },
		"thrift": func() ([]byte, error) { return FromV1Thrift(list, Options{}) },
		"udp":    func() ([]byte, error) { return FromEmitZipkinBatch(args, native.Compact) },
	} {
		out, err := translate()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := translate(); err != nil {
					b.Fatal(err)
				}
			}
			ours := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			b.ReportMetric(ours/n, "ns/span")
			b.ReportMetric(ours/pdataTime(b, out), "x/pdata")
		})
	}
}
