package zipkin

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/agent"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/zipkincore"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func protocolOf(enc native.Encoding, b *thrift.TMemoryBuffer) thrift.TProtocol {
	if enc == native.Compact {
		return thrift.NewTCompactProtocolConf(b, &thrift.TConfiguration{})
	}
	return thrift.NewTBinaryProtocolConf(b, &thrift.TConfiguration{})
}

// encodeArguments returns the arguments of emitZipkinBatch, written by the generated code.
func encodeArguments(t testing.TB, enc native.Encoding, spans []*zipkincore.Span) []byte {
	t.Helper()
	b := thrift.NewTMemoryBuffer()
	args := agent.AgentEmitZipkinBatchArgs{Spans: spans}
	if err := args.Write(context.Background(), protocolOf(enc, b)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// encodeList returns a bare list of spans in the binary protocol.
func encodeList(t testing.TB, spans []*zipkincore.Span) []byte {
	t.Helper()
	args := encodeArguments(t, native.Binary, spans)
	return args[3 : len(args)-1] // without the header of the field and the end of the struct
}

// checkAgainstGenerated checks that the arguments of emitZipkinBatch are read as by the generated
// code.
func checkAgainstGenerated(t testing.TB, enc native.Encoding, args []byte) {
	t.Helper()
	var got []v1Span
	in := v1Span{limit: 1 << 20}
	r := v1ThriftReader{ThriftCursor: native.NewThriftCursor(args, enc), value: new(v1Translator).agentValue}
	r.arguments(&in, func() error {
		s := in
		s.annotations, s.tags = append([]v1Annotation{}, in.annotations...), append([]v1Tag{}, in.tags...)
		s.hosts = append([]v1Host{}, in.hosts...)
		got = append(got, s)
		return nil
	})
	b := thrift.NewTMemoryBuffer()
	b.Write(args)
	var want agent.AgentEmitZipkinBatchArgs
	err := want.Read(context.Background(), protocolOf(enc, b))
	if r.Err() == errSpansRepeat || isQuirk(err) || err == nil && isStricter(r.Err()) {
		return
	}
	if (err == nil) != (r.Err() == nil) {
		t.Fatalf("generated code: %v\nwe: %v\n% x", err, r.Err(), args)
	}
	if err != nil {
		return
	}
	if len(got) != len(want.Spans) {
		t.Fatalf("%d spans, want %d", len(got), len(want.Spans))
	}
	for i := range got {
		checkSpan(t, &got[i], want.Spans[i])
	}
}

// isQuirk reports whether an error of the generated code is for input that we accept.
func isQuirk(err error) bool {
	return err != nil && strings.Contains(err.Error(), "depth")
}

// isStricter reports whether an error of ours is for input that the generated code accepts: it
// reads list elements of any type as structs, and varints that are too long.
func isStricter(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "not structs") || strings.Contains(err.Error(), "varint"))
}

func checkSpan(t testing.TB, got *v1Span, want *zipkincore.Span) {
	t.Helper()
	same(t, "trace id", string(got.traceID[:]), beID(valueOf(want.TraceIDHigh))+beID(want.TraceID))
	same(t, "id", string(got.id[:]), beID(want.ID))
	same(t, "name", got.name, want.Name)
	same(t, "debug", got.debug, want.Debug)
	same(t, "has parent", got.hasParent, want.ParentID != nil)
	same(t, "has timestamp", got.hasTimestamp, want.Timestamp != nil)
	same(t, "has duration", got.hasDuration, want.Duration != nil)
	same(t, "parent", string(got.parent[:]), beID(valueOf(want.ParentID)))
	same(t, "timestamp", got.timestamp, valueOf(want.Timestamp))
	same(t, "duration", got.duration, valueOf(want.Duration))
	at := 0
	for i := range want.Annotations {
		a := want.Annotations[i]
		if a.Value == "" {
			continue
		}
		if at == len(got.annotations) {
			t.Fatalf("annotation %d is missing", i)
		}
		same(t, "annotation", got.annotations[at].value, a.Value)
		same(t, "time", got.annotations[at].time, a.Timestamp)
		checkHost(t, &got.hosts[got.annotations[at].host], a.Host)
		at++
	}
	same(t, "annotations", len(got.annotations), at)
	checkTags(t, got, want.BinaryAnnotations)
}

func checkTags(t testing.TB, got *v1Span, want []*zipkincore.BinaryAnnotation) {
	t.Helper()
	at, dropped := 0, uint32(0)
	for i := range want {
		b := want[i]
		if b.Key == "" || b.Key == otlpdata.FlagsAttribute {
			b.Key = ""
			if dropped++; b.Host == nil || b.Host.ServiceName == "" {
				continue
			}
		}
		if at == len(got.tags) {
			t.Fatalf("binary annotation %d is missing", i)
		}
		same(t, "key", got.tags[at].Key, b.Key)
		value := new(v1Translator).agentValue(int32(b.AnnotationType), string(b.Value))
		same(t, "value", got.tags[at].Value, value)
		checkHost(t, &got.hosts[got.tags[at].host], b.Host)
		at++
	}
	same(t, "tags", len(got.tags), at)
	same(t, "dropped tags", got.droppedTags, dropped)
}

func checkHost(t testing.TB, got *v1Host, want *zipkincore.Endpoint) {
	t.Helper()
	if want == nil {
		same(t, "no host", *got, v1Host{})
		return
	}
	same(t, "host", *got, v1Host{
		endpoint:   endpoint{service: want.ServiceName, ipv6: string(want.Ipv6), port: int64(uint16(want.Port))},
		packedIPv4: uint32(want.Ipv4), packed: true,
	})
}

func same[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func valueOf(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

func beID(n int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }
