package native

import (
	"encoding/binary"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// protoTag appends the KeyValue in the current field of r to a list.
func (t *translator) protoTag(r *protoReader, kvs []otlpdata.KeyValue) []otlpdata.KeyValue {
	if !t.allow(r) {
		return kvs
	}
	kvs = append(kvs, otlpdata.KeyValue{})
	if kv := &kvs[len(kvs)-1]; !fastProtoTag(r.data, kv) {
		t.slowProtoTag(r, kv)
	}
	return kvs
}

// fastProtoTag reads a tag in the form that clients usually write: key, type and value of this
// type, in this order, with strings below 128 bytes. It returns false for any other form.
func fastProtoTag(b []byte, kv *otlpdata.KeyValue) bool {
	if len(b) < 2 || b[0] != tagKey<<3|protoenc.Length || b[1] >= 0x80 {
		return false
	}
	at := 2 + int(b[1])
	if len(b) < at+2 {
		return false
	}
	value, ok := fastProtoValue(b[at:])
	if ok {
		*kv = otlpdata.KeyValue{Key: unsafeString(b[2:at]), Value: value}
	}
	return ok
}

// fastProtoValue reads a tag after its key; b has at least two bytes. A string has no type field.
func fastProtoValue(b []byte) (v otlpdata.Value, ok bool) {
	if b[0] == tagString<<3|protoenc.Length {
		return otlpdata.StringValue(unsafeString(b[2:])), b[1] < 0x80 && int(b[1]) == len(b)-2
	}
	if len(b) < 4 || b[0] != tagType<<3|protoenc.Varint {
		return v, false
	}
	switch [2]byte{b[1], b[2]} {
	case [2]byte{typeBool, tagBool<<3 | protoenc.Varint}:
		return otlpdata.BoolValue(b[3] == 1), len(b) == 4 && b[3] <= 1
	case [2]byte{typeInt64, tagInt64<<3 | protoenc.Varint}:
		n, size := binary.Uvarint(b[3:])
		return otlpdata.IntValue(int64(n)), size == len(b)-3
	}
	return v, false
}

// slowProtoTag reads a tag field by field.
func (t *translator) slowProtoTag(r *protoReader, kv *otlpdata.KeyValue) {
	var typ int32
	var str, bin []byte
	var long, double, truth uint64
	f := protoReader{b: r.data}
	for f.next() {
		switch f.key {
		case tagKey<<3 | protoenc.Length:
			kv.Key = unsafeString(f.data)
		case tagType<<3 | protoenc.Varint:
			typ = int32(f.num)
		case tagString<<3 | protoenc.Length:
			str = f.data
		case tagBool<<3 | protoenc.Varint:
			truth = f.num
		case tagInt64<<3 | protoenc.Varint:
			long = f.num
		case tagFloat64<<3 | protoenc.Fixed64:
			double = f.num
		case tagBinary<<3 | protoenc.Length:
			bin = f.data
		}
	}
	r.takeFields(&f)
	switch typ {
	case 0:
		kv.Value = otlpdata.StringValue(unsafeString(str))
	case int32(typeBool):
		kv.Value = otlpdata.BoolValue(truth != 0)
	case int32(typeInt64):
		kv.Value = otlpdata.IntValue(int64(long))
	case int32(typeFloat64):
		kv.Value = otlpdata.DoubleValue(math.Float64frombits(double))
	case int32(typeBinary):
		kv.Value = otlpdata.EncodedValue(otlpdata.ValueBytes, unsafeString(bin))
	default:
		kv.Value = t.unknownType(typ)
	}
}
