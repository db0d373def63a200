package kafka

import (
	"bytes"
	"errors"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// errNoSpan is the error for a record in a Jaeger encoding without a value. An empty message is a
// valid span, but no program writes such records: they are tombstones of a compacted topic.
var errNoSpan = errors.New("record without a value; expected a span")

func nativeMemory(_ *Decoder, values [][]byte) int64 {
	return native.ModelSpansMemory(native.TypicalGrowth, values...)
}

// decodeNativeProto translates records with one span each, all in one pass.
func decodeNativeProto(d *Decoder, values [][]byte, m otlpdata.Meta, grow func(int64) error) (*otlpdata.Batch, error) {
	size := 0
	for _, v := range values {
		if len(v) == 0 {
			return nil, errNoSpan
		}
		size += len(v)
	}
	otlp, err := native.FromModelSpans(native.TypicalGrowth*size+native.BaseMemory, values...)
	if errors.Is(err, native.ErrOutputTooLarge) {
		if err := grow(native.ModelSpansMemory(native.MaxGrowth, values...)); err != nil {
			return nil, err
		}
		otlp, err = native.FromModelSpans(0, values...)
	}
	if err != nil {
		return nil, err
	}
	return otlpdata.FromOTLP(otlp, m, d.limits)
}

// nativeJSONMemory is for the objects of each value, and for its protobuf form, which is shorter
// than the JSON. A brace may be an empty tag, which is the largest object relative to its text. A
// comma may separate two strings of a list.
func nativeJSONMemory(_ *Decoder, values [][]byte) (sum int64) {
	const perObject, perElement, perByte = 256, 128, 3
	for _, v := range values {
		objects, elements := bytes.Count(v, []byte{'{'}), bytes.Count(v, []byte{','})
		sum += max(perObject*int64(objects), perElement*int64(elements)) + perByte*int64(len(v))
	}
	return sum
}

// decodeNativeJSON translates spans in the JSON form of protobuf messages, as Jaeger and the
// OpenTelemetry Collector write them. The form is slow and rare, so it is converted through objects
// and protobuf.
func decodeNativeJSON(d *Decoder, values [][]byte, m otlpdata.Meta, grow func(int64) error) (*otlpdata.Batch, error) {
	spans := make([][]byte, len(values))
	for i, v := range values {
		var span api_v2.Span
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(v, &span); err != nil {
			return nil, err
		}
		var err error
		if spans[i], err = proto.Marshal(&span); err != nil {
			return nil, err
		}
	}
	objects := nativeJSONMemory(d, values)
	if err := grow(objects + nativeMemory(d, spans)); err != nil {
		return nil, err
	}
	return decodeNativeProto(d, spans, m, func(n int64) error { return grow(objects + n) })
}
