package kafka

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/bench"
)

// content is a visitor that lists every span with its resource and scope as text.
type content struct {
	resource, scope string
	spans           []string
	ids             []otlpdata.TraceID
}

func (c *content) Resource(r *otlpdata.Resource) error {
	c.resource = fmt.Sprint(r.Attributes, r.DroppedAttributes, r.SchemaURL)
	return nil
}

func (c *content) Scope(s *otlpdata.Scope) error {
	c.scope = fmt.Sprint(s.Name, s.Version, s.Attributes, s.DroppedAttributes, s.SchemaURL)
	return nil
}

func (c *content) Span(s *otlpdata.Span) error {
	c.spans = append(c.spans, fmt.Sprintf("%s|%s|%q", c.resource, c.scope, s.Raw))
	c.ids = append(c.ids, s.TraceID)
	return nil
}

func contentOf(t testing.TB, b *otlpdata.Batch) []string {
	t.Helper()
	var c content
	if err := b.Walk(&c); err != nil {
		t.Fatal(err)
	}
	slices.Sort(c.spans)
	return c.spans
}

func fromOTLP(t testing.TB, request []byte) *otlpdata.Batch {
	t.Helper()
	b, err := otlpdata.FromOTLP(request, otlpdata.Meta{Tenant: "acme"}, otlpdata.Limits{})
	if err != nil {
		t.Fatalf("record is not valid: %v", err)
	}
	return b
}

// spansOf returns the number of spans in the value of a record, which the decoder reads.
func spansOf(t testing.TB, encoding string, value []byte) int {
	t.Helper()
	b, err := decoderOf(t, encoding).Decode([][]byte{value}, otlpdata.Meta{}, func(int64) error { return nil })
	if err != nil {
		t.Fatalf("%s: %v: %q", encoding, err, value)
	}
	return b.Len()
}

// used has the memory of records that were checked.
var used Buffers

// checkEncode encodes a batch in every way and checks that every span is accounted for.
func checkEncode(t testing.TB, b *otlpdata.Batch, partitions, maxBytes int) {
	t.Helper()
	for _, encoding := range Encodings() {
		for _, key := range []string{KeyTraceID, KeyService, KeyNone} {
			checkEncoding(t, b, EncodeOptions{Encoding: encoding, Key: key, Partitions: partitions, MaxBytes: maxBytes, Buffers: &used,
				Grow: func(n int) error {
					if n < 0 {
						t.Errorf("grew by %d", n)
					}
					return nil
				}})
		}
	}
}

func checkEncoding(t testing.TB, b *otlpdata.Batch, o EncodeOptions) {
	t.Helper()
	records, err := Encode(b, o)
	if err != nil {
		t.Fatal(err)
	}
	spans := 0
	for i, r := range records.List {
		if len(r.Key)+len(r.Value) > o.MaxBytes || r.Spans == 0 {
			t.Fatalf("%s %s: record %d has %d bytes and %d spans", o.Encoding, o.Key, i, len(r.Key)+len(r.Value), r.Spans)
		}
		if (o.Key == KeyNone) != (r.Partition == AnyPartition) || r.Key != nil && r.Partition != PartitionOf(r.Key, o.Partitions) {
			t.Fatalf("%s %s: record %d with key %q is in partition %d", o.Encoding, o.Key, i, r.Key, r.Partition)
		}
		if got := spansOf(t, o.Encoding, r.Value); got != r.Spans {
			t.Fatalf("%s %s: record %d has %d spans, want %d", o.Encoding, o.Key, i, got, r.Spans)
		}
		spans += r.Spans
	}
	if spans+records.TooLarge+records.NoIDs != b.Len() || len(records.assigned) != b.Len() {
		t.Fatalf("%s %s: %d spans in records, %d too large, %d without ids; want %d", o.Encoding, o.Key, spans, records.TooLarge,
			records.NoIDs, b.Len())
	}
	checkRemaining(t, b, records)
	if o.Encoding == OTLPProto {
		checkRequests(t, b, records, o)
	}
	reuse(records)
}

// reuse overwrites memory that is reused, so that a batch that shares it becomes invalid.
func reuse(records *Records) {
	values := slices.Clone(records.List)
	records.Reuse()
	for i, r := range records.List {
		if r.Value == nil {
			for at := range values[i].Value {
				values[i].Value[at] = 0xff
			}
		}
	}
}

// checkRemaining divides the records in two halves, which together have all spans but those that
// were rejected.
func checkRemaining(t testing.TB, b *otlpdata.Batch, records *Records) {
	t.Helper()
	got := 0
	for half := range 2 {
		want := 0
		for i, r := range records.List {
			if i%2 == half {
				want += r.Spans
			}
		}
		rest, err := records.Remaining(b, func(i int) bool { return i%2 == half })
		if err != nil {
			t.Fatal(err)
		}
		if rest == nil {
			rest = otlpdata.FromStored(nil, b.Meta())
		}
		if rest.Len() != want || rest.Meta() != b.Meta() || len(contentOf(t, rest)) != want {
			t.Fatalf("rest has %d spans, want %d", rest.Len(), want)
		}
		got += rest.Len()
	}
	if got+records.TooLarge+records.NoIDs != b.Len() {
		t.Fatalf("rests have %d spans of %d", got, b.Len())
	}
}

// checkRequests compares the spans of records in otlp_proto with the spans of the batch.
func checkRequests(t testing.TB, b *otlpdata.Batch, records *Records, o EncodeOptions) {
	t.Helper()
	var got []string
	where := map[otlpdata.TraceID]int32{}
	for _, r := range records.List {
		request := fromOTLP(t, r.Value)
		got = append(got, contentOf(t, request)...)
		var c content
		if err := request.Walk(&c); err != nil {
			t.Fatal(err)
		}
		for _, id := range c.ids {
			if before, seen := where[id]; seen && before != r.Partition && o.Key == KeyTraceID {
				t.Fatalf("trace %s is in partitions %d and %d", id, before, r.Partition)
			}
			where[id] = r.Partition
		}
	}
	slices.Sort(got)
	want := contentOf(t, b)
	if records.TooLarge == 0 && !slices.Equal(got, want) {
		t.Fatalf("%s: records have\n%q\nwant\n%q", o.Key, got, want)
	}
}

func TestEncode(t *testing.T) {
	soak.SkipIfRaced(t)
	var chunks []*otlpdata.Batch
	for r := range bench.New(1, time.Unix(1_700_000_000, 0)).Requests(600, 100) {
		chunks = append(chunks, fromOTLP(t, r.Body))
	}
	joined, err := otlpdata.Concat(chunks...)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range append(chunks[:2:2], joined, fromOTLP(t, nil)) {
		for _, partitions := range []int{1, 12} {
			for _, maxBytes := range []int{512, 2 << 10, 20 << 10, 1_000_000} {
				checkEncode(t, b, partitions, maxBytes)
			}
		}
	}
}

// A resource and a scope in many pieces are not copied for each piece.
func TestRepeatedResource(t *testing.T) {
	const pieces = 100_000
	var scope, resource []byte
	for range pieces {
		scope = protoenc.AppendBytes(scope, 1, protoenc.AppendUint(nil, 4, 1))       // dropped attributes
		resource = protoenc.AppendBytes(resource, 1, protoenc.AppendUint(nil, 2, 1)) // dropped attributes
	}
	id := bytes.Repeat([]byte{1}, 16)
	scope = protoenc.AppendBytes(scope, 2, protoenc.AppendBytes(protoenc.AppendBytes(nil, 1, id), 2, id[:8]))
	resource = protoenc.AppendBytes(resource, 2, scope)
	b := fromOTLP(t, protoenc.AppendBytes(nil, 1, resource))
	o := EncodeOptions{Encoding: OTLPProto, Key: KeyTraceID, Partitions: 2, MaxBytes: 1_000_000, Grow: func(int) error { return nil }}
	checkEncoding(t, b, o)
	allocations := testing.AllocsPerRun(1, func() {
		if _, err := Encode(b, o); err != nil {
			t.Error(err)
		}
	})
	if allocations > 1000 {
		t.Errorf("%v allocations for %d pieces", allocations, pieces)
	}
}

func liveMemory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A resource that is repeated in the records of many partitions counts before all of them are
// written, whether it has one attribute or many.
func TestOpenRecordsAreInTheBudget(t *testing.T) {
	const partitions, resourceSize, limit = 500, 100_000, 1 << 20
	var scope []byte
	id := make([]byte, 16)
	for n := range partitions {
		binary.BigEndian.PutUint64(id, uint64(n)+1)
		scope = protoenc.AppendBytes(scope, 2, protoenc.AppendBytes(protoenc.AppendBytes(nil, 1, id), 2, id[:8]))
	}
	full := errors.New("full")
	for _, valueSize := range []int{1, resourceSize} {
		var attributes []byte
		for n := 0; len(attributes) < resourceSize; n++ {
			value := protoenc.AppendBytes(nil, 1, bytes.Repeat([]byte{'v'}, valueSize))
			attribute := protoenc.AppendBytes(protoenc.AppendString(nil, 1, strconv.Itoa(n)), 2, value)
			attributes = protoenc.AppendBytes(attributes, 1, attribute)
		}
		b := fromOTLP(t, protoenc.AppendBytes(nil, 1, protoenc.AppendBytes(protoenc.AppendBytes(nil, 1, attributes), 2, scope)))
		for _, encoding := range []string{OTLPProto, OTLPJSON, ZipkinProto, ZipkinJSON} {
			before, after, grown := liveMemory(), int64(0), 0
			_, err := Encode(b, EncodeOptions{Encoding: encoding, Key: KeyTraceID, Partitions: partitions, MaxBytes: 1_000_000,
				Grow: func(n int) error {
					if grown += n; grown > limit {
						after = liveMemory()
						return full
					}
					return nil
				}})
			if held := after - before; err != full || held > 4*limit {
				t.Errorf("%s, attributes of %d bytes: error %v with %d bytes in use", encoding, valueSize, err, held)
			}
		}
	}
}

// goldenRequest is an OTLP request with two services and two traces.
const goldenRequest = `{"resourceSpans": [
  {"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}},
    {"key": "host.name", "value": {"stringValue": "a"}}]},
   "schemaUrl": "https://example.com/1",
   "scopeSpans": [{"scope": {"name": "http", "version": "1.2"}, "spans": [
    {"traceId": "000102030405060708090a0b0c0d0e0f", "spanId": "0102030405060708", "name": "GET /", "kind": 2, "traceState": "a=b",
     "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000001500000",
     "attributes": [{"key": "http.status_code", "value": {"intValue": "500"}}, {"key": "ratio", "value": {"doubleValue": 0.5}},
      {"key": "cached", "value": {"boolValue": true}}, {"key": "tags", "value": {"arrayValue": {"values": [{"stringValue": "x"}]}}}],
     "events": [{"timeUnixNano": "1700000000000100000", "name": "retry", "attributes": [{"key": "n", "value": {"intValue": "1"}}]}],
     "links": [{"traceId": "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", "spanId": "f0f1f2f3f4f5f6f7"}],
     "status": {"code": 2, "message": "boom"}},
    {"traceId": "0000000000000000ffeeddccbbaa9988", "spanId": "1111111111111111", "name": "poll", "kind": 1,
     "startTimeUnixNano": "1700000001000000000", "endTimeUnixNano": "1700000001000002000"}]}]},
  {"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "payment"}}]},
   "scopeSpans": [{"spans": [
    {"traceId": "000102030405060708090a0b0c0d0e0f", "spanId": "2122232425262728", "parentSpanId": "0102030405060708",
     "name": "charge", "kind": 3, "startTimeUnixNano": "1700000000000200000", "endTimeUnixNano": "1700000000000900000"}]}]}]}`

// Records keep the bytes that other programs and older versions read.
func TestRecordsOfEncodings(t *testing.T) {
	traces, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces([]byte(goldenRequest))
	if err != nil {
		t.Fatal(err)
	}
	request, err := new(ptrace.ProtoMarshaler).MarshalTraces(traces)
	if err != nil {
		t.Fatal(err)
	}
	for _, encoding := range Encodings() {
		var out []byte
		for _, key := range []string{KeyTraceID, KeyService, KeyNone} {
			records, err := Encode(fromOTLP(t, request), EncodeOptions{Encoding: encoding, Key: key, Partitions: 12, MaxBytes: 1_000_000,
				Grow: func(int) error { return nil }})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records.List {
				out = fmt.Appendf(out, "key: %s, %d spans, partition %d, key of the record %q\n", key, r.Spans, r.Partition, r.Key)
				if strings.HasSuffix(encoding, "_json") {
					out = fmt.Appendf(out, "%s\n\n", r.Value)
				} else {
					out = fmt.Appendf(out, "%q\n\n", r.Value)
				}
			}
		}
		golden.Check(t, filepath.Join("testdata", "records", encoding+".golden"), out)
	}
}

// FuzzEncode encodes any valid request.
func FuzzEncode(f *testing.F) {
	for r := range bench.New(1, time.Unix(1_700_000_000, 0)).Requests(20, 5) {
		f.Add(r.Body, uint8(3), uint16(4000))
	}
	f.Fuzz(func(t *testing.T, request []byte, partitions uint8, maxBytes uint16) {
		b, err := otlpdata.FromOTLP(request, otlpdata.Meta{Tenant: "acme"}, otlpdata.Limits{})
		if err != nil || b.Len() > 100 {
			t.Skip("not a valid request, or a large one")
		}
		joined, err := otlpdata.Concat(b, b)
		if err != nil {
			t.Fatal(err)
		}
		checkEncode(t, b, int(partitions)+1, int(maxBytes)+1)
		checkEncode(t, joined, int(partitions)+1, int(maxBytes)+1)
	})
}
