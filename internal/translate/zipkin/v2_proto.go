package zipkin

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// message reads the fields of an encoded message. Strings alias the message.
type message struct {
	b    []byte
	num  protowire.Number
	typ  protowire.Type
	data []byte // content of a field of type BytesType
	n    uint64 // value of a varint or fixed64 field
	err  error
}

var errProto = errors.New("not a protobuf list of Zipkin spans")

// next reads a field. It returns false at the end and after an error.
func (m *message) next() bool {
	if len(m.b) == 0 || m.err != nil {
		return false
	}
	num, typ, n := protowire.ConsumeTag(m.b)
	if n < 0 || num > protowire.MaxValidNumber {
		return m.broken(n)
	}
	m.num, m.typ, m.b = num, typ, m.b[n:]
	switch typ {
	case protowire.VarintType:
		m.n, n = protowire.ConsumeVarint(m.b)
	case protowire.Fixed64Type:
		m.n, n = protowire.ConsumeFixed64(m.b)
	case protowire.BytesType:
		m.data, n = protowire.ConsumeBytes(m.b)
	default:
		n = protowire.ConsumeFieldValue(num, typ, m.b)
	}
	if n < 0 {
		return m.broken(n)
	}
	m.b = m.b[n:]
	return true
}

// broken fails because of a negative length from package protowire or a field number that is too
// large.
func (m *message) broken(n int) bool {
	if m.err = errProto; n < 0 {
		m.err = fmt.Errorf("%w: %w", errProto, protowire.ParseError(n))
	}
	return false
}

// is reports whether the field has this number and type. Fields with an unexpected type are ignored
// like unknown fields.
func (m *message) is(num protowire.Number, typ protowire.Type) bool {
	return m.num == num && m.typ == typ
}

func (m *message) text() string { return unsafeString(m.data) }

// int returns the value of a field as a signed number, limited to the largest int64.
func (m *message) int() int64 { return int64(min(m.n, math.MaxInt64)) }

// readProto reads a ListOfSpans.
func (t *translator) readProto(b []byte) error {
	m := message{b: b}
	for m.next() {
		if !m.is(1, protowire.BytesType) {
			continue
		}
		t.beginSpan()
		if err := t.spanProto(m.data); err != nil {
			return err
		}
		if err := t.write(); err != nil {
			return err
		}
	}
	return m.err
}

// protoIDs are the ids of a span as received. The last of repeated fields is used, so they are
// checked at the end.
type protoIDs struct{ trace, parent, span []byte }

func (ids *protoIDs) fill(s *otlpdata.Span) error {
	return cmp.Or(
		idProto("trace id", s.TraceID[:], ids.trace, len(ids.trace) == 8),
		idProto("parent id", s.ParentID[:], ids.parent, false),
		idProto("id", s.SpanID[:], ids.span, false))
}

func (t *translator) spanProto(b []byte) error {
	m := message{b: b}
	var ids protoIDs
	for m.next() {
		var err error
		switch m.typ {
		case protowire.BytesType:
			err = t.spanBytesField(&m, &ids)
		case protowire.VarintType, protowire.Fixed64Type:
			t.spanNumberField(&m)
		}
		if err != nil {
			return err
		}
	}
	if m.err != nil {
		return m.err
	}
	return ids.fill(&t.span)
}

func (t *translator) spanBytesField(m *message, ids *protoIDs) error {
	switch m.num {
	case 1:
		ids.trace = m.data
	case 2:
		ids.parent = m.data
	case 3:
		ids.span = m.data
	case 5:
		t.span.Name = m.text()
	case 8:
		return t.endpointProto(&t.local, m.data)
	case 9:
		return t.endpointProto(&t.remote, m.data)
	case 10:
		return t.annotationProto(m.data)
	case 11:
		return t.tagProto(m.data)
	}
	return nil
}

func (t *translator) spanNumberField(m *message) {
	s := &t.span
	switch {
	case m.is(4, protowire.VarintType):
		s.Kind = protoKind(m.n)
	case m.is(6, protowire.Fixed64Type):
		s.Start = nanos(m.int())
	case m.is(7, protowire.VarintType):
		s.End = nanos(m.int())
	case m.is(12, protowire.VarintType):
		t.debug = m.n != 0 || t.opt.Debug
	}
}

// idProto reads an id, which must have all of its bytes, or half of them if short is set. An absent
// id becomes zero.
func idProto(name string, dst, b []byte, short bool) error {
	clear(dst)
	if len(b) != 0 && len(b) != len(dst) && !short {
		return fmt.Errorf("%s has %d bytes, want %d", name, len(b), len(dst))
	}
	copy(dst[len(dst)-len(b):], b)
	return nil
}

func protoKind(n uint64) int32 {
	kinds := [...]int32{otlpdata.KindUnspecified, otlpdata.KindClient, otlpdata.KindServer, otlpdata.KindProducer, otlpdata.KindConsumer}
	if n < uint64(len(kinds)) {
		return kinds[n]
	}
	return otlpdata.KindUnspecified
}

// endpointProto merges an endpoint into e.
func (t *translator) endpointProto(e *endpoint, b []byte) error {
	m := message{b: b}
	for m.next() {
		switch {
		case m.is(1, protowire.BytesType):
			e.service = m.text()
		case m.is(2, protowire.BytesType):
			e.ipv4 = t.packedIP(m.data)
		case m.is(3, protowire.BytesType):
			e.ipv6 = t.packedIP(m.data)
		case m.is(4, protowire.VarintType):
			e.port = int64(int32(m.n))
		}
	}
	return m.err
}

// packedIP returns the text of an address of 4 or 16 bytes, and "" for any other length.
func (t *translator) packedIP(b []byte) string {
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		return ""
	}
	return t.ipText(a)
}

func (t *translator) annotationProto(b []byte) error {
	var at int64
	var value string
	m := message{b: b}
	for m.next() {
		switch {
		case m.is(1, protowire.Fixed64Type):
			at = m.int()
		case m.is(2, protowire.BytesType):
			value = m.text()
		}
	}
	if m.err != nil {
		return m.err
	}
	return t.annotate(at, value)
}

func (t *translator) tagProto(b []byte) error {
	var key, value string
	m := message{b: b}
	for m.next() {
		switch {
		case m.is(1, protowire.BytesType):
			key = m.text()
		case m.is(2, protowire.BytesType):
			value = m.text()
		}
	}
	if m.err != nil {
		return m.err
	}
	return t.tag(key, value)
}
