package otlpdata

import (
	"encoding/binary"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// count increments the length n of a list and checks it against the limit.
func (w *walker) count(n *int) error {
	if *n++; *n > w.lim.Items {
		return errTooManyItems(w.lim.Items)
	}
	return nil
}

// attribute appends an encoded KeyValue to a list with n elements on the wire so far. With
// checkOnly it replaces the previous attribute, unless that is the first one and has the key keep.
func (w *walker) attribute(kvs []KeyValue, n *int, b []byte, keep string) ([]KeyValue, error) {
	if err := w.count(n); err != nil {
		return kvs, err
	}
	if w.checkOnly && len(kvs) > 0 {
		kept := 0
		if kvs[0].Key == keep {
			kept = 1
		}
		kvs = kvs[:kept]
	}
	kvs = append(kvs, KeyValue{})
	return kvs, kvs[len(kvs)-1].replace(b, w.lim.Depth)
}

// valuePosition returns the position of the value in a KeyValue of the usual form: key, then value,
// both with lengths below 128. It returns 0 for any other form. This fast path pays off because
// attributes are most of a request.
func valuePosition(b []byte) int {
	if len(b) < 4 || b[0] != 1<<3|protoenc.Length || b[1] >= 0x80 {
		return 0
	}
	k := 2 + int(b[1])
	if k+2 > len(b) || b[k] != 2<<3|protoenc.Length || b[k+1] >= 0x80 || int(b[k+1]) != len(b)-k-2 {
		return 0
	}
	return k + 2
}

// decodeScalar sets v to an AnyValue that is one scalar in its usual encoding. For any other
// encoding it leaves v unchanged and returns false.
func (v *Value) decodeScalar(b []byte) bool {
	if len(b) < 2 {
		return false
	}
	switch c := b[1]; b[0] {
	case 1<<3 | protoenc.Length:
		if c < 0x80 && int(c) == len(b)-2 {
			*v = Value{kind: ValueString, data: unsafeString(b[2:])}
			return true
		}
	case 2<<3 | protoenc.Varint:
		if c < 2 && len(b) == 2 {
			*v = Value{kind: ValueBool, num: uint64(c)}
			return true
		}
	case 3<<3 | protoenc.Varint:
		if num, pos, err := protoenc.ReadVarint(b, 1); err == nil && pos == len(b) {
			*v = Value{kind: ValueInt, num: num}
			return true
		}
	case 4<<3 | protoenc.Fixed64:
		if len(b) == 9 {
			*v = Value{kind: ValueDouble, num: binary.LittleEndian.Uint64(b[1:])}
			return true
		}
	}
	return false
}

// replace sets kv to the encoded KeyValue.
func (kv *KeyValue) replace(b []byte, depth int) error {
	if value := valuePosition(b); value > 0 && kv.Value.decodeScalar(b[value:]) {
		kv.Key = unsafeString(b[2 : value-2])
		return nil
	}
	*kv = KeyValue{}
	return kv.decode(b, depth)
}

// decode merges the fields of an encoded KeyValue into kv.
func (kv *KeyValue) decode(b []byte, depth int) error {
	var f protoenc.Reader
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.Next(b, pos); err != nil {
			return err
		}
		switch f.Tag {
		case 1<<3 | protoenc.Length:
			kv.Key = unsafeString(f.Data)
		case 2<<3 | protoenc.Length:
			err = kv.Value.decode(f.Data, depth)
		case 3<<3 | protoenc.Varint: // index into a string table: profiles only
		default:
			err = f.Unknown(0b1110)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// validated, instead of a depth, means that the value was already validated, so that nested values
// need not be rechecked.
const validated = 0

// decode merges the fields of an encoded AnyValue into v: the last of several members wins. depth
// is the maximum number of levels of values, including this one, or validated.
func (v *Value) decode(b []byte, depth int) error {
	if v.decodeScalar(b) {
		return nil
	}
	var f protoenc.Reader
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.Next(b, pos); err != nil {
			return err
		}
		switch f.Tag {
		case 1<<3 | protoenc.Length:
			*v = Value{kind: ValueString, data: unsafeString(f.Data)}
		case 2<<3 | protoenc.Varint:
			*v = BoolValue(f.Num != 0)
		case 3<<3 | protoenc.Varint:
			*v = Value{kind: ValueInt, num: f.Num}
		case 4<<3 | protoenc.Fixed64:
			*v = Value{kind: ValueDouble, num: f.Num}
		case 5<<3 | protoenc.Length:
			err = v.setNested(ValueArray, f.Data, depth)
		case 6<<3 | protoenc.Length:
			err = v.setNested(ValueMap, f.Data, depth)
		case 7<<3 | protoenc.Length:
			*v = Value{kind: ValueBytes, data: unsafeString(f.Data)}
		case 8<<3 | protoenc.Varint: // index into a string table: profiles only
			*v = Value{}
		default:
			err = f.Unknown(0b111111110)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *Value) setNested(kind ValueKind, b []byte, depth int) error {
	*v = Value{kind: kind, data: unsafeString(b)}
	if depth == validated {
		return nil
	}
	return checkValues(b, depth-1, kind == ValueMap)
}

// checkValues validates an encoded ArrayValue or, with keys, a KeyValueList.
func checkValues(b []byte, depth int, keys bool) error {
	var f protoenc.Reader
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.Next(b, pos); err != nil {
			return err
		}
		switch {
		case f.Tag != 1<<3|protoenc.Length:
			err = f.Unknown(0b10)
		case depth <= 0:
			return errDepth
		case keys:
			var kv KeyValue
			err = kv.decode(f.Data, depth)
		default:
			var v Value
			err = v.decode(f.Data, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
