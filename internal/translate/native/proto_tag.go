package native

import (
	"encoding/binary"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// protoTag reads the KeyValue of a field and appends it to a list.
func (t *translator) protoTag(r *protoReader, kvs []otlpdata.KeyValue) []otlpdata.KeyValue {
	if !t.allow(r) {
		return kvs
	}
	kvs = append(kvs, otlpdata.KeyValue{})
	if kv := &kvs[len(kvs)-1]; !usualProtoTag(r.data, kv) {
		t.rareTag(r, kv)
	}
	return kvs
}

// usualProtoTag reads a tag if it is written as clients write nearly all: key, type and the value
// of this type, in this order, with short strings. Else it returns false.
func usualProtoTag(b []byte, kv *otlpdata.KeyValue) bool {
	if len(b) < 2 || b[0] != tagKey<<3|protoenc.Length || b[1] >= 0x80 {
		return false
	}
	at := 2 + int(b[1])
	if len(b) < at+2 {
		return false
	}
	value, ok := usualProtoValue(b[at:])
	if ok {
		*kv = otlpdata.KeyValue{Key: aliasing(b[2:at]), Value: value}
	}
	return ok
}

// usualProtoValue reads the rest of a tag, of two bytes or more. The type of a string is left out.
func usualProtoValue(b []byte) (v otlpdata.Value, ok bool) {
	if b[0] == tagString<<3|protoenc.Length {
		return otlpdata.StringValue(aliasing(b[2:])), b[1] < 0x80 && int(b[1]) == len(b)-2
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

// rareTag reads a tag field by field.
func (t *translator) rareTag(r *protoReader, kv *otlpdata.KeyValue) {
	var typ int32
	var str, bin []byte
	var long, double, truth uint64
	f := protoReader{b: r.data}
	for f.next() {
		switch f.key {
		case tagKey<<3 | protoenc.Length:
			kv.Key = aliasing(f.data)
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
	r.take(&f)
	switch typ {
	case 0:
		kv.Value = otlpdata.StringValue(aliasing(str))
	case int32(typeBool):
		kv.Value = otlpdata.BoolValue(truth != 0)
	case int32(typeInt64):
		kv.Value = otlpdata.IntValue(int64(long))
	case int32(typeFloat64):
		kv.Value = otlpdata.DoubleValue(math.Float64frombits(double))
	case int32(typeBinary):
		kv.Value = otlpdata.EncodedValue(otlpdata.ValueBytes, aliasing(bin))
	default:
		kv.Value = t.unknownType(typ)
	}
}
