package thriftio_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/internal/wire/agentthrift"
	"github.com/tracing-backend/tracing/internal/wire/nativethrift"
	"github.com/tracing-backend/tracing/internal/wire/zipkincore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// protocols are the two encodings that are in use.
var protocols = map[string]func(*thrift.TMemoryBuffer) thrift.TProtocol{
	"compact": func(b *thrift.TMemoryBuffer) thrift.TProtocol { return thrift.NewTCompactProtocolConf(b, nil) },
	"binary":  func(b *thrift.TMemoryBuffer) thrift.TProtocol { return thrift.NewTBinaryProtocolConf(b, nil) },
}

func encode(t testing.TB, protocol string, x thrift.TStruct) []byte {
	t.Helper()
	buf := thrift.NewTMemoryBuffer()
	if err := x.Write(context.Background(), protocols[protocol](buf)); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// decode returns what is left of b too.
func decode(protocol string, b []byte, x thrift.TStruct) ([]byte, error) {
	buf := &thrift.TMemoryBuffer{Buffer: bytes.NewBuffer(b)}
	err := x.Read(context.Background(), protocols[protocol](buf))
	return buf.Bytes(), err
}

func ptr[T any](v T) *T { return &v }

func nativeBatch() *nativethrift.Batch {
	return &nativethrift.Batch{
		Process: nativethrift.Process{ServiceName: "frontend", Tags: []nativethrift.Tag{
			{Key: "s", VType: nativethrift.TagTypeString, VStr: ptr("x")},
			{Key: "d", VType: nativethrift.TagTypeDouble, VDouble: ptr(math.Pi)},
			{Key: "b", VType: nativethrift.TagTypeBool, VBool: ptr(false)},
			{Key: "l", VType: nativethrift.TagTypeLong, VLong: ptr(int64(math.MinInt64))},
			{Key: "bin", VType: nativethrift.TagTypeBinary, VBinary: []byte{}},
			{Key: "no name for the type", VType: 99},
		}},
		Spans: []nativethrift.Span{
			{TraceIDLow: -1, TraceIDHigh: 2, SpanID: 3, ParentSpanID: 4, OperationName: "op",
				References: []nativethrift.SpanRef{
					{RefType: nativethrift.SpanRefTypeFollowsFrom, TraceIDLow: 5, TraceIDHigh: 6, SpanID: 7}},
				Flags: 3, StartTime: 1_700_000_000_000_000, Duration: 250, Tags: []nativethrift.Tag{},
				Logs: []nativethrift.Log{{Timestamp: 8, Fields: []nativethrift.Tag{{Key: "event", VStr: ptr("")}}}}},
			{},
		},
		SeqNo: ptr(int64(9)),
		Stats: &nativethrift.ClientStats{FullQueueDroppedSpans: 1, TooLargeDroppedSpans: 2, FailedToEmitSpans: 3},
	}
}

func zipkinSpans() *agentthrift.EmitZipkinBatchArgs {
	host := &zipkincore.Endpoint{Ipv4: -0x3f57fffe, Port: -1, ServiceName: "frontend", Ipv6: bytes.Repeat([]byte{1}, 16)}
	return &agentthrift.EmitZipkinBatchArgs{Spans: []zipkincore.Span{
		{TraceID: 1, Name: "get", ID: 2, ParentID: ptr(int64(3)), Debug: true,
			Timestamp: ptr(int64(4)), Duration: ptr(int64(5)), TraceIDHigh: ptr(int64(6)),
			Annotations: []zipkincore.Annotation{{Timestamp: 7, Value: zipkincore.ServerRecv, Host: host}, {Value: "no host"}},
			BinaryAnnotations: []zipkincore.BinaryAnnotation{
				{Key: "k", Value: []byte{0, 1}, AnnotationType: zipkincore.AnnotationTypeI16, Host: host}}},
		{Annotations: []zipkincore.Annotation{}, BinaryAnnotations: []zipkincore.BinaryAnnotation{}},
	}}
}

// What is written is read again as it was, nil and empty apart.
func TestRoundTrip(t *testing.T) {
	for protocol := range protocols {
		for _, x := range []thrift.TStruct{nativeBatch(), zipkinSpans(), &agentthrift.EmitBatchArgs{Batch: *nativeBatch()}} {
			got := reflect.New(reflect.TypeOf(x).Elem()).Interface().(thrift.TStruct)
			rest, err := decode(protocol, append(encode(t, protocol, x), 1, 2, 3), got)
			if err != nil || !reflect.DeepEqual(got, x) {
				t.Errorf("%s: got %+v, %v\nwant %+v", protocol, got, err, x)
			}
			if len(rest) != 3 {
				t.Errorf("%s: %d bytes behind the struct, want 3", protocol, len(rest))
			}
		}
	}
}

// The bytes were put down by hand from the specification of the two protocols.
func TestBytes(t *testing.T) {
	batch := &nativethrift.Batch{
		Process: nativethrift.Process{ServiceName: "s", Tags: []nativethrift.Tag{{Key: "k", VType: nativethrift.TagTypeBool, VBool: ptr(true)}}},
		Spans:   []nativethrift.Span{{TraceIDLow: 1, SpanID: -1, OperationName: "o", Flags: 1, StartTime: 64, Duration: 2}},
	}
	for protocol, want := range map[string]string{
		"compact": "1c" + "180173" + "191c" + "18016b" + "1504" + "31" + "00" + "00" + // process, its tag
			"191c" + "1602" + "1600" + "1601" + "1600" + "18016f" + "2502" + "168001" + "1604" + "00" + "00",
		"binary": "0c0001" + "0b00010000000173" + "0f00020c00000001" + "0b0001000000016b" + "08000200000002" + "02000501" + "00" + "00" +
			"0f00020c00000001" + "0a00010000000000000001" + "0a00020000000000000000" + "0a0003ffffffffffffffff" + "0a00040000000000000000" +
			"0b0005000000016f" + "08000700000001" + "0a00080000000000000040" + "0a00090000000000000002" + "00" + "00",
	} {
		if got := hex.EncodeToString(encode(t, protocol, batch)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", protocol, got, want)
		}
	}
}

// Fields that are unknown, or of another type than expected, are passed over; so a required one of another type is missing.
func TestUnknownFields(t *testing.T) {
	const name, unknown = "0b00010000000173", "0c0063" + "0f0001" + "0b" + "00000001" + "00000002" + "6869" + "00"
	for in, want := range map[string]string{
		name + "00":                              "",
		unknown + name + unknown + "00":          "",
		name + "0800020000000900":                "", // tags are no list
		"00":                                     "Required field serviceName is not set",
		"0800010000000900":                       "Required field serviceName is not set",
		"02ffff01" + name + "00":                 "", // a negative number
		name:                                     "EOF",
		name + "1f000100":                        "Unknown data type 31",
		name + "0f00020800000001":                "only 0 remaining",
		name + "0f0002080000000100000000" + "00": "a list of structs was expected, not of I32",
	} {
		b, _ := hex.DecodeString(in)
		var p nativethrift.Process
		_, err := decode("binary", b, &p)
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %q", in, err, want)
		case want == "" && (err != nil || p.ServiceName != "s" || p.Tags != nil):
			t.Errorf("%s: got %+v, %v", in, p, err)
		}
	}
}

// Every field that is marked as required is: the zero value of everything else is written, one field at a time is renumbered.
func TestRequiredFields(t *testing.T) {
	for _, x := range []thrift.TStruct{
		new(nativethrift.Span), new(nativethrift.SpanRef), new(nativethrift.ClientStats), new(nativethrift.Log),
		new(nativethrift.Batch), new(nativethrift.Tag), new(nativethrift.Process),
	} {
		required := 0
		for id := byte(1); id <= 11; id++ {
			b := encode(t, "binary", x)
			if !renumber(b, id) {
				continue
			}
			required++
			_, err := decode("binary", b, x)
			var invalid thrift.TProtocolException
			if !errors.As(err, &invalid) || invalid.TypeId() != thrift.INVALID_DATA || !strings.Contains(err.Error(), "Required field") {
				t.Errorf("%T without field %d: %v", x, id, err)
			}
		}
		if required == 0 {
			t.Errorf("%T: no field was written", x)
		}
	}
}

// renumber makes the field id of an encoded struct an unknown one. The values of all fields are zero, so that only the header of a field
// has a type that is not.
func renumber(b []byte, id byte) bool {
	for i := 0; i+2 < len(b); i++ {
		if b[i] != 0 && b[i+1] == 0 && b[i+2] == id {
			b[i+1] = 0x7f
			return true
		}
	}
	return false
}

// A count is a promise that costs nothing to make.
func TestCountsAreNotTrusted(t *testing.T) {
	for _, count := range []uint32{1 << 10, 1 << 20, math.MaxInt32, 1 << 31, math.MaxUint32} {
		header, _ := hex.DecodeString(fmt.Sprintf("0f00020c%08x", count))
		b := append(header, make([]byte, 100)...)
		var batch nativethrift.Batch
		if _, err := decode("binary", b, &batch); err == nil || cap(batch.Spans) > 100 {
			t.Errorf("%d spans: room for %d, %v", count, cap(batch.Spans), err)
		}
	}
}

// Structs within structs that nobody knows are skipped only so deep.
func TestNestingIsBounded(t *testing.T) {
	for protocol, open := range map[string]string{"binary": "\x0c\x00\x63", "compact": "\xfc"} {
		var p nativethrift.Process
		_, err := decode(protocol, []byte(strings.Repeat(open, 1<<20)), &p)
		if err == nil || !strings.Contains(err.Error(), "Depth limit exceeded") {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

// Whatever is read can be written, and is then read as the same.
func FuzzRead(f *testing.F) {
	for protocol := range protocols {
		f.Add(protocol == "compact", false, encode(f, protocol, &agentthrift.EmitBatchArgs{Batch: *nativeBatch()}))
		f.Add(protocol == "compact", true, encode(f, protocol, zipkinSpans()))
	}
	f.Fuzz(func(t *testing.T, compact, zipkin bool, b []byte) {
		protocol := "binary"
		if compact {
			protocol = "compact"
		}
		fresh := func() thrift.TStruct {
			if zipkin {
				return new(agentthrift.EmitZipkinBatchArgs)
			}
			return new(agentthrift.EmitBatchArgs)
		}
		x, again := fresh(), fresh()
		if _, err := decode(protocol, b, x); err != nil {
			return
		}
		written := encode(t, protocol, x)
		if _, err := decode(protocol, written, again); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if !bytes.Equal(encode(t, protocol, again), written) {
			t.Fatalf("%+v was written, %+v read", x, again)
		}
	})
}
