package kafka

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/internal/translate/zipkin"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func decoderOf(tb testing.TB, encoding string) *Decoder {
	tb.Helper()
	d, err := NewDecoder(encoding, otlpdata.DefaultLimits())
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// requestOf returns spans of two services as OTLP objects.
func requestOf(spans int) ptrace.Traces {
	td := ptrace.NewTraces()
	for service := range 2 {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", fmt.Sprint("service-", service))
		ss := rs.ScopeSpans().AppendEmpty()
		for i := range spans {
			s := ss.Spans().AppendEmpty()
			s.SetName(fmt.Sprint("span-", i))
			s.SetTraceID([16]byte{1, 15: byte(i + 1)})
			s.SetSpanID([8]byte{byte(service + 1), 7: byte(i + 1)})
			s.SetStartTimestamp(1_700_000_000_000_000_000)
			s.SetEndTimestamp(1_700_000_000_000_001_000)
			s.Attributes().PutStr("http.method", "GET")
			s.Events().AppendEmpty().SetName("event")
		}
	}
	return td
}

// recordsOf returns records with the spans of requestOf(3) in an encoding: one or several.
func recordsOf(tb testing.TB, encoding string) (values [][]byte) {
	tb.Helper()
	td := requestOf(3)
	b := otlpdata.FromTraces(td, otlpdata.Meta{})
	var value []byte
	var err error
	switch encoding {
	case OTLPProto:
		value, err = ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	case OTLPJSON:
		value, err = ptraceotlp.NewExportRequestFromTraces(td).MarshalJSON()
	case ZipkinProto:
		value, _, err = zipkin.ToV2Proto(b, "none")
	case ZipkinJSON:
		value, _, err = zipkin.ToV2JSON(b, "none")
	case zipkinThrift:
		value = []byte("\x0c\x00\x00\x00\x01\x0a\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x0b\x00\x03\x00\x00\x00\x01a" +
			"\x0a\x00\x04\x00\x00\x00\x00\x00\x00\x00\x02\x00")
	case JaegerProto, JaegerJSON:
		chunks := native.NewChunks(native.ChunkLimits{Spans: 1, Bytes: 1 << 20}, func(chunk []byte) error {
			var c api_v2.SpansResponseChunk
			if err := proto.Unmarshal(chunk, &c); err != nil {
				return err
			}
			value, err := proto.Marshal(c.Spans[0])
			if encoding == JaegerJSON {
				value, err = protojson.Marshal(c.Spans[0])
			}
			values = append(values, value)
			return err
		})
		if err := errors.Join(b.Walk(chunks), chunks.Finish()); err != nil {
			tb.Fatal(err)
		}
		return values
	}
	if err != nil {
		tb.Fatal(err)
	}
	return [][]byte{value}
}

func noGrowth(int64) error { return nil }

// Records are joined to one batch, in their order. Unusable ones make the batch invalid.
func TestDecode(t *testing.T) {
	for _, encoding := range decodable() {
		t.Run(encoding, func(t *testing.T) {
			d := decoderOf(t, encoding)
			values := recordsOf(t, encoding)
			m := otlpdata.Meta{Tenant: "t", Transport: "kafka", Received: time.Unix(1_700_000_000, 0)}
			one, err := d.Decode(values, m, noGrowth)
			if err != nil {
				t.Fatal(err)
			}
			want := 6
			if encoding == zipkinThrift {
				want = 1
			}
			m.Format = d.Format
			if one.Len() != want || one.Meta() != m || d.Format == "" {
				t.Errorf("%d spans, %+v", one.Len(), one.Meta())
			}
			two, err := d.Decode(slices.Concat(values, values), m, noGrowth)
			if err != nil || two.Len() != 2*want {
				t.Errorf("%d spans, %v", two.Len(), err)
			}
			if _, err := d.Decode(append(values, []byte("{[garbage")), m, noGrowth); err == nil || !pipeline.IsPermanent(err) {
				t.Errorf("garbage: %v", err)
			}
			if none, err := d.Decode(nil, m, noGrowth); err != nil || none.Len() != 0 {
				t.Errorf("no records: %v, %v", none, err)
			}
			checkMemory(t, d, slices.Repeat(values, 100))
		})
	}
}

// checkMemory checks that a decoder allocates no more than it says; garbage counts.
func checkMemory(t *testing.T, d *Decoder, values [][]byte) {
	t.Helper()
	total := d.Memory(values)
	grow := func(n int64) error { total = max(total, n); return nil }
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b, err := d.Decode(values, otlpdata.Meta{}, grow)
	runtime.ReadMemStats(&after)
	if err != nil {
		return
	}
	total += d.Held(b)
	const perValue, fixed = 1024, 256 << 10
	if allocated := int64(after.TotalAlloc - before.TotalAlloc); allocated > total+perValue*int64(len(values))+fixed {
		t.Errorf("%d bytes allocated, declared %d for %d values", allocated, total, len(values))
	}
}

// A list of many empty strings needs much more memory than its text, before Decode can ask for it.
func TestMemoryOfStrings(t *testing.T) {
	span := []byte(`{"traceId":"AAAAAAAAAAAAAAAAAAAAAQ==","spanId":"AAAAAAAAAAI=","warnings":[""` + strings.Repeat(`,""`, 200_000) + `]}`)
	d := decoderOf(t, JaegerJSON)
	full := pipeline.Overloaded(pipeline.ErrOverBudget, 0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := d.Decode([][]byte{span}, otlpdata.Meta{}, func(int64) error {
		runtime.ReadMemStats(&after)
		return full
	})
	if err != full {
		t.Fatal(err)
	}
	if allocated, declared := int64(after.TotalAlloc-before.TotalAlloc), d.Memory([][]byte{span}); allocated > declared {
		t.Errorf("%d bytes allocated, declared %d", allocated, declared)
	}
}

// Errors of the caller's budget are returned as they are: the bytes are not to blame.
func TestDecodeOverBudget(t *testing.T) {
	d := decoderOf(t, JaegerProto)
	// Many empty tags need much more memory than their bytes.
	span := []byte("\x0a\x10" + strings.Repeat("\x01", 16))
	for range 20_000 {
		span = append(span, "\x42\x00"...)
	}
	full := pipeline.Overloaded(pipeline.ErrOverBudget, 0)
	_, err := d.Decode(slices.Repeat([][]byte{span}, 10), otlpdata.Meta{}, func(int64) error { return full })
	if err != nil && err != full && !pipeline.IsPermanent(err) {
		t.Errorf("error %v", err)
	}
	d = decoderOf(t, JaegerJSON)
	if _, err := d.Decode(recordsOf(t, JaegerJSON), otlpdata.Meta{}, func(int64) error { return full }); err != full {
		t.Errorf("error %v, want %v", err, full)
	}
}

func TestEncodingNames(t *testing.T) {
	if got := strings.Join(decodable(), " "); got != "jaeger_json jaeger_proto otlp_json otlp_proto zipkin_json zipkin_proto zipkin_thrift" {
		t.Errorf("encodings: %s", got)
	}
	for _, name := range []string{"protobuf", "json", "zipkin-thrift"} {
		decoderOf(t, name)
	}
	_, err := NewDecoder("avro", otlpdata.Limits{})
	if err == nil || !strings.Contains(err.Error(), `unknown encoding "avro"; use one of jaeger_json, `) {
		t.Errorf("error %v", err)
	}
}

// The joined records of one process share a resource.
func TestSpansOfOneProcessAreJoined(t *testing.T) {
	b, err := decoderOf(t, JaegerProto).Decode(recordsOf(t, JaegerProto), otlpdata.Meta{}, noGrowth)
	if err != nil {
		t.Fatal(err)
	}
	td, err := b.Traces()
	if err != nil || td.ResourceSpans().Len() != 2 {
		t.Errorf("%d resources, %v", td.ResourceSpans().Len(), err)
	}
}

// FuzzDecode checks that any bytes in any encoding end in spans or in a permanent error.
func FuzzDecode(f *testing.F) {
	all := decodable()
	for i, encoding := range all {
		for _, value := range recordsOf(f, encoding) {
			f.Add(i, value, []byte{})
			f.Add(i, value, value)
		}
		f.Add(i, []byte{}, []byte("garbage"))
	}
	f.Fuzz(func(t *testing.T, encoding int, first, second []byte) {
		d := decoderOf(t, all[uint(encoding)%uint(len(all))])
		values := [][]byte{first, second}
		kept := [][]byte{bytes.Clone(first), bytes.Clone(second)}
		if d.Memory(values) < 0 {
			t.Error("negative memory")
		}
		b, err := d.Decode(values, otlpdata.Meta{Received: time.Unix(1, 0)}, noGrowth)
		if err != nil {
			if !pipeline.IsPermanent(err) {
				t.Errorf("error is not permanent: %v", err)
			}
			return
		}
		if _, err := b.Traces(); err != nil {
			t.Errorf("not OTLP: %v", err)
		}
		if !bytes.Equal(first, kept[0]) || !bytes.Equal(second, kept[1]) {
			t.Error("records were modified")
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, encoding := range []string{OTLPProto, JaegerProto, JaegerJSON, ZipkinProto, ZipkinJSON} {
		b.Run(encoding, func(b *testing.B) {
			d := decoderOf(b, encoding)
			values := recordsOf(b, encoding)
			values = slices.Repeat(values, 600/len(values))
			b.ReportAllocs()
			spans := 0
			for b.Loop() {
				batch, err := d.Decode(values, otlpdata.Meta{}, noGrowth)
				if err != nil {
					b.Fatal(err)
				}
				spans += batch.Len()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(spans), "ns/span")
		})
	}
}
