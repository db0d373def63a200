package native

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Fields of Span, SpanRef, Log and Tag in the form of [thriftField.key], and the bit sets of the
// required ones.
const (
	fieldTraceIDLow  = 1<<8 | int32(thriftI64)
	fieldTraceIDHigh = 2<<8 | int32(thriftI64)
	fieldSpanID      = 3<<8 | int32(thriftI64)
	fieldParentID    = 4<<8 | int32(thriftI64)
	fieldName        = 5<<8 | int32(thriftString)
	fieldReferences  = 6<<8 | int32(thriftList)
	fieldFlags       = 7<<8 | int32(thriftI32)
	fieldStart       = 8<<8 | int32(thriftI64)
	fieldDuration    = 9<<8 | int32(thriftI64)
	fieldTags        = 10<<8 | int32(thriftList)
	fieldLogs        = 11<<8 | int32(thriftList)
	spanRequired     = 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5 | 1<<7 | 1<<8 | 1<<9

	fieldRefType   = 1<<8 | int32(thriftI32)
	fieldRefLow    = 2<<8 | int32(thriftI64)
	fieldRefHigh   = 3<<8 | int32(thriftI64)
	fieldRefSpanID = 4<<8 | int32(thriftI64)
	refRequired    = 1<<1 | 1<<2 | 1<<3 | 1<<4

	fieldLogTime   = 1<<8 | int32(thriftI64)
	fieldLogFields = 2<<8 | int32(thriftList)
	logRequired    = 1<<1 | 1<<2

	fieldTagKey    = 1<<8 | int32(thriftString)
	fieldTagType   = 2<<8 | int32(thriftI32)
	fieldTagString = 3<<8 | int32(thriftString)
	fieldTagDouble = 4<<8 | int32(thriftDouble)
	fieldTagBool   = 5<<8 | int32(thriftBool)
	fieldTagLong   = 6<<8 | int32(thriftI64)
	fieldTagBinary = 7<<8 | int32(thriftString)
	tagRequired    = 1<<1 | 1<<2

	// Size of the smallest Tag in bytes: key, type and end.
	minCompactTag = 2 + 2 + 1
	minBinaryTag  = 7 + 7 + 1
)

// Names of fields, for errors.
var (
	spanNames = [11]string{"traceIdLow", "traceIdHigh", "spanId", "parentSpanId", "operationName", "references", "flags", "startTime",
		"duration", "tags", "logs"}
	refNames = [11]string{"refType", "traceIdLow", "traceIdHigh", "spanId"}
	logNames = [11]string{"timestamp", "fields"}
	tagNames = [11]string{"key", "vType"}
)

// thriftSpan reads a Span into t.span.
func (t *translator) thriftSpan(r *thriftReader) {
	s := &t.span
	var start, duration int64
	var seen uint32
	for f := (thriftField{}); r.next(&f); {
		switch f.key {
		case fieldTraceIDLow:
			binary.BigEndian.PutUint64(s.TraceID[8:], uint64(r.i64()))
		case fieldTraceIDHigh:
			binary.BigEndian.PutUint64(s.TraceID[:8], uint64(r.i64()))
		case fieldSpanID:
			binary.BigEndian.PutUint64(s.SpanID[:], uint64(r.i64()))
		case fieldParentID:
			binary.BigEndian.PutUint64(t.parent[:], uint64(r.i64()))
		case fieldName:
			s.Name = r.text()
		case fieldReferences:
			t.thriftReferences(r)
		case fieldFlags:
			t.flags = uint32(r.i32())
		case fieldStart:
			start = r.i64()
		case fieldDuration:
			duration = r.i64()
		case fieldTags:
			s.Attributes = t.thriftTags(r, s.Attributes[:0])
		case fieldLogs:
			t.thriftLogs(r)
		default:
			r.skip(&f)
			continue
		}
		seen |= 1 << f.id
	}
	s.Start, s.End = microTime(start), microTime(AddSaturating(start, duration))
	r.require(spanRequired, seen, "Span", &spanNames)
}

func (t *translator) thriftReferences(r *thriftReader) {
	t.refs = t.refs[:0]
	for n := r.list(); n > 0 && r.err == nil; n-- {
		var ref reference
		var seen uint32
		for f := (thriftField{}); r.next(&f); {
			switch f.key {
			case fieldRefType:
				ref.typ = r.i32()
			case fieldRefLow:
				binary.BigEndian.PutUint64(ref.traceID[8:], uint64(r.i64()))
			case fieldRefHigh:
				binary.BigEndian.PutUint64(ref.traceID[:8], uint64(r.i64()))
			case fieldRefSpanID:
				binary.BigEndian.PutUint64(ref.spanID[:], uint64(r.i64()))
			default:
				r.skip(&f)
				continue
			}
			seen |= 1 << f.id
		}
		r.require(refRequired, seen, "SpanRef", &refNames)
		t.refs = append(t.refs, ref)
	}
}

func (t *translator) thriftLogs(r *thriftReader) {
	t.span.Events, t.nested = t.span.Events[:0], t.nested[:0]
	for n := r.list(); n > 0 && r.err == nil; n-- {
		var time int64
		var seen uint32
		from := len(t.nested)
		for f := (thriftField{}); r.next(&f); {
			switch f.key {
			case fieldLogTime:
				time = r.i64()
			case fieldLogFields:
				t.nested = t.thriftTags(r, t.nested[:from])
			default:
				r.skip(&f)
				continue
			}
			seen |= 1 << f.id
		}
		r.require(logRequired, seen, "Log", &logNames)
		t.addEvent(microTime(time), from)
	}
}

// thriftTags appends a list of tags.
func (t *translator) thriftTags(r *thriftReader, kvs []otlpdata.KeyValue) []otlpdata.KeyValue {
	minSize := minBinaryTag
	if r.compact {
		minSize = minCompactTag
	}
	n := r.list()
	kvs = slices.Grow(kvs, min(n, (len(r.b)-r.pos)/minSize))
	for ; n > 0 && r.err == nil; n-- {
		kvs = append(kvs, otlpdata.KeyValue{})
		if kv := &kvs[len(kvs)-1]; !r.fastTag(kv) {
			t.thriftTag(r, kv)
		}
	}
	return kvs
}

func (t *translator) thriftTag(r *thriftReader, kv *otlpdata.KeyValue) {
	var typ int32
	var str, binary string
	var double float64
	var long int64
	var truth bool
	var seen uint32
	for f := (thriftField{}); r.next(&f); {
		switch f.key {
		case fieldTagKey:
			kv.Key = r.text()
		case fieldTagType:
			typ = r.i32()
		case fieldTagString:
			str = r.text()
		case fieldTagDouble:
			double = r.double()
		case fieldTagBool:
			truth = r.boolean(&f)
		case fieldTagLong:
			long = r.i64()
		case fieldTagBinary:
			binary = r.text()
		default:
			r.skip(&f)
			continue
		}
		seen |= 1 << f.id
	}
	r.require(tagRequired, seen, "Tag", &tagNames)
	switch typ {
	case 0:
		kv.Value = otlpdata.StringValue(str)
	case 1:
		kv.Value = otlpdata.DoubleValue(double)
	case 2:
		kv.Value = otlpdata.BoolValue(truth)
	case 3:
		kv.Value = otlpdata.IntValue(long)
	case 4:
		kv.Value = otlpdata.EncodedValue(otlpdata.ValueBytes, binary)
	default:
		kv.Value = t.unknownType(typ)
	}
}

// unknownType returns the replacement for a value of an unknown type.
func (t *translator) unknownType(typ int32) otlpdata.Value {
	from := len(t.text)
	t.text = strconv.AppendInt(append(t.text, "Unknown VType: "...), int64(typ), 10)
	return otlpdata.StringValue(unsafeString(t.text[from:]))
}
