package zipkin

import (
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

const benchSpans = 256

// spansJSON returns n spans of the size that instrumented web services send.
func spansJSON(n int) []byte {
	var b strings.Builder
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"traceId":"5982fe77008310cc80f1da5e10%06x","parentId":"90394f6bcffb5d13","id":"67fae42571%06x","kind":"SERVER","name":"get /api/cart",`+
			`"timestamp":15167817757%05d,"duration":26000,"localEndpoint":{"serviceName":"cart","ipv4":"192.168.99.1","port":8080},`+
			`"remoteEndpoint":{"ipv4":"172.19.0.2","port":58648},"annotations":[{"timestamp":15167817757%05d,"value":"first byte"}],`+
			`"tags":{"http.method":"GET","http.path":"/api/cart/items/%d","http.status_code":"200","mvc.controller.class":"CartController",`+
			`"mvc.controller.method":"items","customer":"c-%d","user_agent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"}}`,
			i, i+1, i, i, i, i*7)
	}
	b.WriteByte(']')
	return []byte(b.String())
}

// BenchmarkV2 compares the translation with decoding the same spans from OTLP into pdata.
func BenchmarkV2(b *testing.B) {
	doc := spansJSON(benchSpans)
	list := toProto(b, doc)
	otlp, err := FromV2JSON(doc, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"json", func() error { _, err := FromV2JSON(doc, Options{}); return err }},
		{"proto", func() error { _, err := FromV2Proto(list, Options{}); return err }},
		{"pdata", func() error { r := ptraceotlp.NewExportRequest(); return r.UnmarshalProto(otlp) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.run(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchSpans, "ns/span")
		})
	}
}

// A request allocates only its result, whatever the number of spans.
func TestV2AllocatesNothingPerSpan(t *testing.T) {
	doc := spansJSON(benchSpans)
	list := toProto(t, doc)
	for name, run := range map[string]func() error{
		"json":  func() error { _, err := FromV2JSON(doc, Options{}); return err },
		"proto": func() error { _, err := FromV2Proto(list, Options{}); return err },
	} {
		const few = benchSpans / 8 // a garbage collection may empty the pool
		if n := testing.AllocsPerRun(20, func() {
			if err := run(); err != nil {
				t.Fatal(err)
			}
		}); n > few {
			t.Errorf("%s: %v allocations for %d spans", name, n, benchSpans)
		}
	}
}
