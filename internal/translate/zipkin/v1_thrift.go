package zipkin

import (
	"encoding/binary"
	"errors"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// v1ThriftReader reads spans of Thrift's zipkincore. No field is required. Fields with an
// unexpected type are skipped like unknown fields, and a repeated field replaces the previous one.
type v1ThriftReader struct {
	native.ThriftCursor
	// value converts the value of a binary annotation.
	value func(typ int32, value string) otlpdata.Value
}

// spans reads a list of spans into in, one after the other, and calls write for each.
func (r *v1ThriftReader) spans(in *v1Span, write func() error) {
	for n := r.List(); n > 0 && r.Err() == nil; n-- {
		in.reset()
		if r.span(in); r.Err() != nil {
			return
		}
		if err := write(); err != nil {
			r.Fail(err)
		}
	}
}

var errSpansRepeat = errors.New("thrift: list of spans is repeated")

// arguments reads the arguments of emitZipkinBatch.
func (r *v1ThriftReader) arguments(in *v1Span, write func() error) {
	found := false
	for f := (native.ThriftField{}); r.Next(&f); {
		switch {
		case f.Key() != 1<<8|native.ThriftList:
			r.Skip(&f)
		case found:
			r.Fail(errSpansRepeat)
		default:
			found = true
			r.spans(in, write)
		}
	}
}

func (r *v1ThriftReader) span(s *v1Span) {
	for f := (native.ThriftField{}); r.Next(&f); {
		switch f.Key() {
		case 1<<8 | native.ThriftI64:
			binary.BigEndian.PutUint64(s.traceID[8:], uint64(r.I64()))
		case 3<<8 | native.ThriftString:
			s.name = r.Text()
		case 4<<8 | native.ThriftI64:
			binary.BigEndian.PutUint64(s.id[:], uint64(r.I64()))
		case 5<<8 | native.ThriftI64:
			binary.BigEndian.PutUint64(s.parent[:], uint64(r.I64()))
			s.hasParent = true
		case 6<<8 | native.ThriftList:
			s.clearAnnotations()
			for n := r.List(); n > 0 && r.Err() == nil; n-- {
				r.annotation(s)
			}
		case 8<<8 | native.ThriftList:
			s.clearTags()
			for n := r.List(); n > 0 && r.Err() == nil; n-- {
				r.binaryAnnotation(s)
			}
		case 9<<8 | native.ThriftBool:
			s.debug = r.Bool(&f)
		case 10<<8 | native.ThriftI64:
			s.timestamp, s.hasTimestamp = r.I64(), true
		case 11<<8 | native.ThriftI64:
			s.duration, s.hasDuration = r.I64(), true
		case 12<<8 | native.ThriftI64:
			binary.BigEndian.PutUint64(s.traceID[:8], uint64(r.I64()))
		default:
			r.Skip(&f)
		}
	}
}

func (r *v1ThriftReader) annotation(s *v1Span) {
	var time int64
	var value string
	var host v1Host
	for f := (native.ThriftField{}); r.Next(&f); {
		switch f.Key() {
		case 1<<8 | native.ThriftI64:
			time = r.I64()
		case 2<<8 | native.ThriftString:
			value = r.Text()
		case 3<<8 | native.ThriftStruct:
			host = r.endpoint()
		default:
			r.Skip(&f)
		}
	}
	if err := s.annotate(time, value, &host); err != nil {
		r.Fail(err)
	}
}

func (r *v1ThriftReader) binaryAnnotation(s *v1Span) {
	var key, value string
	var typ int32
	var host v1Host
	for f := (native.ThriftField{}); r.Next(&f); {
		switch f.Key() {
		case 1<<8 | native.ThriftString:
			key = r.Text()
		case 2<<8 | native.ThriftString:
			value = r.Text()
		case 3<<8 | native.ThriftI32:
			typ = r.I32()
		case 4<<8 | native.ThriftStruct:
			host = r.endpoint()
		default:
			r.Skip(&f)
		}
	}
	if err := s.tag(key, r.value(typ, value), &host); err != nil {
		r.Fail(err)
	}
}

func (r *v1ThriftReader) endpoint() v1Host {
	h := v1Host{packed: true}
	for f := (native.ThriftField{}); r.Next(&f); {
		switch f.Key() {
		case 1<<8 | native.ThriftI32:
			h.packedIPv4 = uint32(r.I32())
		case 2<<8 | native.ThriftI16:
			h.port = int64(uint16(r.I16()))
		case 3<<8 | native.ThriftString:
			h.service = r.Text()
		case 4<<8 | native.ThriftString:
			h.ipv6 = r.Text()
		default:
			r.Skip(&f)
		}
	}
	return h
}
