package zipkin

import (
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// zipkinKinds are the names of kinds by their numbers in zipkin.proto3.
var zipkinKinds = [...]string{"", "CLIENT", "SERVER", "PRODUCER", "CONSUMER"}

// kindNumber returns the kind in zipkin.proto3, 0 for a kind that Zipkin does not have.
func (z *outSpan) kindNumber() int {
	switch z.kind {
	case otlpdata.KindClient:
		return 1
	case otlpdata.KindServer:
		return 2
	case otlpdata.KindProducer:
		return 3
	case otlpdata.KindConsumer:
		return 4
	}
	return 0
}

// Bytes that are reserved for lengths.
const (
	protoSpanLength = 2
	protoItemLength = 1
)

// appendProto appends the span to a ListOfSpans.
func (z *outSpan) appendProto(dst []byte) []byte {
	dst, span := protoenc.BeginMessage(dst, 1, protoSpanLength)
	dst = protoenc.AppendBytes(dst, 1, z.traceID[:])
	if !z.parent.IsZero() {
		dst = protoenc.AppendBytes(dst, 2, z.parent[:])
	}
	dst = protoenc.AppendBytes(dst, 3, z.id[:])
	dst = protoenc.AppendUint(dst, 4, uint64(z.kindNumber()))
	dst = protoenc.AppendString(dst, 5, protoText(z.name))
	dst = protoenc.AppendFixed64(dst, 6, z.timestamp)
	dst = protoenc.AppendUint(dst, 7, z.duration)
	dst = z.local.appendProto(dst, 8)
	dst = z.remote.appendProto(dst, 9)
	for _, a := range z.annotations {
		var at int
		dst, at = protoenc.BeginMessage(dst, 10, protoItemLength)
		dst = protoenc.AppendFixed64(dst, 1, a.timestamp)
		dst = protoenc.EndMessage(protoenc.AppendString(dst, 2, protoText(a.value)), at, protoItemLength)
	}
	for _, t := range z.tags {
		var at int
		dst, at = protoenc.BeginMessage(dst, 11, protoItemLength)
		dst = protoenc.AppendString(dst, 1, protoText(t.key))
		dst = protoenc.EndMessage(protoenc.AppendString(dst, 2, protoText(t.value)), at, protoItemLength)
	}
	if z.debug {
		dst = protoenc.AppendUint(dst, 12, 1)
	}
	return protoenc.EndMessage(dst, span, protoSpanLength)
}

func (e *outEndpoint) appendProto(dst []byte, num int) []byte {
	if e.isEmpty() {
		return dst
	}
	dst, at := protoenc.BeginMessage(dst, num, protoItemLength)
	dst = protoenc.AppendString(dst, 1, protoText(e.service))
	switch {
	case e.address.Is4():
		dst = protoenc.AppendBytes(dst, 2, e.address.AsSlice())
	case e.address.Is6():
		dst = protoenc.AppendBytes(dst, 3, e.address.AsSlice())
	}
	dst = protoenc.AppendUint(dst, 4, uint64(e.port))
	return protoenc.EndMessage(dst, at, protoItemLength)
}

// protoText replaces each byte of invalid UTF-8, which protobuf does not allow, with U+FFFD.
func protoText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}
