package otlpdata

import (
	"fmt"
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// quirks returns unusual requests by name. pdata determines what each contains and whether it is
// valid, except for those that TestQuirks lists.
func quirks() map[string][]byte {
	all := map[string][]byte{}
	for _, part := range []map[string][]byte{quirksOfGroups(), quirksOfVarints(), quirksOfFields(), quirksOfValues(), quirksOfOrder(),
		quirksOfUsualSpans()} {
		for name, b := range part {
			all[name] = b
		}
	}
	return all
}

func quirksOfOrder() map[string][]byte {
	span := fieldLen(2, wireSpan())
	other := fieldLen(2, wireSpan(fieldText(5, "other")))
	resource, scope := wireResource("cart"), fieldLen(1, fieldText(1, "lib"), fieldText(2, "1.0"))
	return map[string][]byte{
		"empty":                       {},
		"empty resource spans":        fieldLen(1),
		"empty scope spans":           fieldLen(1, fieldLen(2)),
		"empty span":                  request(nil),
		"no resource":                 fieldLen(1, fieldLen(2, span)),
		"deprecated scope spans":      fieldLen(1, resource, fieldLen(1000, scope, span)),
		"both scope spans":            fieldLen(1, resource, fieldLen(1000, other), fieldLen(2, scope, span)),
		"both, the old one last":      fieldLen(1, resource, fieldLen(2, span), fieldLen(1000, other, other)),
		"both, the old one malformed": fieldLen(1, resource, fieldLen(2, span), fieldLen(1000, fieldLen(2, fieldText(1, "short")))),
		"both, the new one empty":     fieldLen(1, resource, fieldLen(2), fieldLen(1000, other)),
		"resource after its spans":    fieldLen(1, fieldLen(2, span), resource),
		"resource repeated": fieldLen(1, resource, fieldLen(2, span), fieldLen(1, stringAttribute(1, "host.name", "h"),
			fieldVarint(2, 3))),
		"resource three times":     fieldLen(1, resource, resource, fieldLen(1, fieldVarint(2, 3)), fieldLen(2, span)),
		"resource empty, then not": fieldLen(1, fieldLen(1), resource, fieldLen(1), fieldLen(2, span)),
		"scope after its spans":    fieldLen(1, resource, fieldLen(2, span, scope)),
		"scope repeated": fieldLen(1, resource, fieldLen(2, scope, span, fieldLen(1, fieldText(1, "two"), stringAttribute(3,
			"k", "v")))),
		"schema URLs repeated": fieldLen(1, fieldText(3, "a"), resource, fieldLen(2, fieldText(3, "b"), span, fieldText(3, "c")),
			fieldText(3, "d")),
		"entity references": fieldLen(1, fieldLen(1, stringAttribute(1, "service.name", "cart"),
			fieldLen(3, fieldText(1, "u"), fieldText(2, "t"), fieldText(3, "k"), fieldText(4, "d"), fieldText(9, "?"))), fieldLen(2, span)),
		"entity reference malformed": fieldLen(1, fieldLen(1, fieldLen(3, fieldVarint(2, 1))), fieldLen(2, span)),
		"service name twice": fieldLen(1, fieldLen(1, stringAttribute(1, "service.name", "a"), stringAttribute(1, "service.name",
			"b")), fieldLen(2, span)),
		"service name a number":      fieldLen(1, fieldLen(1, attribute(1, "service.name", fieldVarint(3, 1))), fieldLen(2, span)),
		"service name empty":         fieldLen(1, wireResource(""), fieldLen(2, span)),
		"two resources, one service": cat(request(wireSpan()), request(wireSpan(), wireSpan(fieldText(4, "parentid")))),
	}
}

func quirksOfFields() map[string][]byte {
	event := func(b ...[]byte) []byte { return request(wireSpan(fieldLen(11, b...))) }
	link := func(b ...[]byte) []byte { return request(wireSpan(fieldLen(13, b...))) }
	return map[string][]byte{
		"all span fields": request(wireSpan(fieldText(3, "a=b"), fieldText(4, "parentid"), fieldVarint(6, 3), stringAttribute(9, "k", "v"),
			fieldVarint(10, 1), fieldVarint(12, 2), fieldVarint(14, 3), fieldLen(15, fieldText(2, "no"), fieldVarint(3, 2)), field32(16, 0x301))),
		"status repeated":        request(wireSpan(fieldLen(15, fieldText(2, "no")), fieldLen(15, fieldVarint(3, 2)))),
		"status with old field":  request(wireSpan(fieldLen(15, fieldVarint(1, 7), fieldVarint(3, 1)))),
		"status wrong type":      request(wireSpan(fieldLen(15, fieldText(3, "2")))),
		"id of 15 bytes":         request(fieldText(1, "0123456789abcde")),
		"id of 0 bytes":          request(wireSpan(fieldText(1, ""))),
		"span id of 9 bytes":     request(fieldText(2, "012345678")),
		"span id of 0 bytes":     request(wireSpan(fieldText(2, ""), fieldText(4, ""))),
		"parent id of 7 bytes":   request(wireSpan(fieldText(4, "0123456"))),
		"parent id of zeros":     request(wireSpan(fieldText(4, "\x00\x00\x00\x00\x00\x00\x00\x00"))),
		"name repeated":          request(wireSpan(fieldText(5, "last"))),
		"name of invalid UTF-8":  request(wireSpan(fieldText(5, "\xff\xfe"))),
		"kind out of range":      request(wireSpan(fieldVarint(6, 99))),
		"kind negative":          request(wireSpan(fieldVarint(6, math.MaxUint64))),
		"kind beyond 32 bits":    request(wireSpan(fieldVarint(6, 1<<35|2))),
		"dropped beyond 32 bits": request(wireSpan(fieldVarint(10, 1<<33|5), fieldVarint(12, math.MaxUint64), fieldVarint(14, 1<<32))),
		"flags as varint":        request(wireSpan(fieldVarint(16, 1))),
		"start as varint":        request(wireSpan(fieldVarint(7, 1))),
		"name as varint":         request(wireSpan(fieldVarint(5, 1))),
		"unknown fields":         request(wireSpan(fieldVarint(17, 1), fieldText(99, "x"), field64(1<<20, 1), field32(63, 1), field32(64, 1))),
		"event": event(field64(1, 5), fieldText(2, "e"), stringAttribute(3, "a", "b"), stringAttribute(3, "c", "d"),
			fieldVarint(4, 2)),
		"event empty":         event(),
		"event wrong type":    event(fieldVarint(1, 5)),
		"event unknown field": event(fieldText(5, "?"), fieldText(2, "e")),
		"events with attributes": request(wireSpan(fieldLen(11, stringAttribute(3, "a", "1")), fieldLen(11, stringAttribute(3, "b", "2"),
			stringAttribute(3, "c", "3")),
			fieldLen(13, stringAttribute(4, "d", "4")), fieldLen(11, fieldText(2, "none")))),
		"link": link(fieldText(1, "0123456789abcdef"), fieldText(2, "01234567"), fieldText(3, "t=s"), stringAttribute(4, "a", "b"),
			fieldVarint(5, 9), field32(6, 0x101)),
		"link empty":          link(),
		"link id wrong":       link(fieldText(1, "0123")),
		"link span id wrong":  link(fieldText(2, "0123")),
		"link flags wrong":    link(fieldVarint(6, 1)),
		"link unknown fields": link(fieldVarint(7, 1)),
		"old field as varint": fieldLen(1, fieldVarint(1000, 1)),
		"request unknown":     cat(fieldVarint(2, 1), request(wireSpan()), fieldText(7, "x")),
		"request wrong type":  fieldVarint(1, 1),
		"scope wrong type":    fieldLen(1, fieldLen(2, fieldVarint(1, 1))),
		"scope name wrong":    fieldLen(1, fieldLen(2, fieldLen(1, fieldVarint(1, 1)))),
		"scope all fields": fieldLen(1, fieldLen(2, fieldLen(1, fieldText(1, "n"), fieldText(2, "v"), stringAttribute(3, "k", "v"),
			fieldVarint(4, 7),
			fieldVarint(5, 1)), fieldLen(2, wireSpan()))),
	}
}

// quirksOfUsualSpans returns requests that begin in the usual form of encoders and then deviate.
func quirksOfUsualSpans() map[string][]byte {
	ids := cat(fieldText(1, "0123456789abcdef"), fieldText(2, "01234567"))
	parent, name, kind := fieldText(4, "parentid"), fieldText(5, "n"), fieldVarint(6, 2)
	times, flags := cat(field64(7, 5), field64(8, 9)), field32(16, 0x101)
	whole := cat(ids, parent, name, kind, times)
	all := map[string][]byte{
		"usual form":                      request(cat(whole, stringAttribute(9, "k", "v"), flags)),
		"usual form, other ids follow":    request(cat(whole, fieldText(1, "fedcba9876543210"), fieldText(2, "76543210"), fieldText(4, ""))),
		"usual form, twice":               request(cat(whole, whole, stringAttribute(9, "k", "v"), whole)),
		"usual form, id of 8 bytes":       request(cat(ids, fieldText(4, "parent"), name)),
		"usual form, state before parent": request(cat(ids, fieldText(3, "a=b"), parent, name, kind, times)),
		"usual form, no times":            request(cat(ids, name, kind, stringAttribute(9, "k", "v"))),
		"usual form, no kind":             request(cat(ids, name, times, stringAttribute(9, "k", "v"))),
		"usual form, one time":            request(cat(ids, name, kind, field64(8, 9), stringAttribute(9, "k", "v"))),
		"usual form, large kind":          request(cat(ids, name, fieldVarint(6, 300), times)),
		"usual form, name of 200 bytes":   request(cat(ids, fieldText(5, string(make([]byte, 200))), kind)),
		"usual form, attributes apart":    request(cat(whole, stringAttribute(9, "k", "v"), fieldVarint(10, 1), stringAttribute(9, "l", "w"))),
		"usual form, attribute cut":       request(cat(whole, stringAttribute(9, "k", "v"), tag(9, protoenc.Length), []byte{9, 1, 2})),
		"usual form, attribute no length": request(cat(whole, tag(9, protoenc.Length))),
		"usual form, length of 3 bytes":   request(cat(whole, tag(9, protoenc.Length), longVarint(0, 3), name)),
		"usual form, flags in the middle": request(cat(whole, flags, name)),
		"usual form, flags twice":         request(cat(whole, flags, field32(16, 1))),
		"usual form, bool of 300":         request(cat(whole, attribute(9, "k", fieldVarint(2, 300)))),
		"usual form, int of 10 bytes":     request(cat(whole, attribute(9, "k", tag(3, protoenc.Varint), longVarint(3, 10)))),
		"usual form, int cut":             request(cat(whole, attribute(9, "k", tag(3, protoenc.Varint), []byte{0x80}))),
		"usual form, double cut":          request(cat(whole, attribute(9, "k", tag(4, protoenc.Fixed64), make([]byte, 7)))),
		"usual form, after a wrong value": request(cat(whole, attribute(9, "k", fieldVarint(3, 7)), fieldLen(9, fieldText(1, "l")))),
	}
	for _, n := range []int{117, 118, 119, 120, 127, 128, 1 << 14, 1<<14 - 10} {
		all[fmt.Sprint("usual form, value of ", n)] = request(cat(whole, stringAttribute(9, "k", strings.Repeat("v", n)), flags))
	}
	for n := range whole {
		all[fmt.Sprint("usual form, cut to ", n)] = request(whole[:n])
	}
	return all
}

func quirksOfValues() map[string][]byte {
	value := func(b ...[]byte) []byte { return request(wireSpan(attribute(9, "k", b...))) }
	return map[string][]byte{
		"value empty":        value(),
		"value missing":      request(wireSpan(fieldLen(9, fieldText(1, "k")))),
		"attribute empty":    request(wireSpan(fieldLen(9))),
		"key missing":        request(wireSpan(fieldLen(9, fieldLen(2, fieldText(1, "v"))))),
		"key after value":    request(wireSpan(fieldLen(9, fieldLen(2, fieldText(1, "v")), fieldText(1, "k")))),
		"key repeated":       request(wireSpan(fieldLen(9, fieldText(1, "a"), fieldLen(2, fieldText(1, "v")), fieldText(1, "b")))),
		"key of 200 bytes":   request(wireSpan(stringAttribute(9, string(make([]byte, 200)), "v"))),
		"value of 200 bytes": request(wireSpan(stringAttribute(9, "k", string(make([]byte, 200))))),
		"value of 126 bytes": request(wireSpan(stringAttribute(9, "k", string(make([]byte, 126))))),
		"value repeated": request(wireSpan(fieldLen(9, fieldText(1, "k"), fieldLen(2, fieldVarint(3, 7)), fieldLen(2, fieldText(1,
			"v"))))),
		"value repeated, empty": request(wireSpan(fieldLen(9, fieldText(1, "k"), fieldLen(2, fieldVarint(3, 7)), fieldLen(2)))),
		"two members":           value(fieldVarint(3, 7), fieldText(1, "v")),
		"two members, turned":   value(fieldText(1, "v"), fieldVarint(3, 7)),
		"array replaced":        value(fieldLen(5, fieldLen(1, fieldText(1, "a"))), fieldLen(5, fieldLen(1, fieldText(1, "b")))),
		"bool of 2":             value(fieldVarint(2, 2)),
		"int negative":          value(fieldVarint(3, math.MaxUint64)),
		"double NaN":            value(field64(4, math.Float64bits(math.NaN())|1)),
		"bytes":                 value(fieldText(7, "\x00\xff")),
		"bytes empty":           value(fieldText(7, "")),
		"string index":          value(fieldVarint(8, 3)),
		"string index of key":   request(wireSpan(fieldLen(9, fieldVarint(3, 3), fieldLen(2, fieldText(1, "v"))))),
		"string index wrong":    value(fieldText(8, "x")),
		"key wrong type":        request(wireSpan(fieldLen(9, fieldVarint(1, 1)))),
		"member wrong type":     value(fieldText(3, "7")),
		"member unknown":        value(fieldText(9, "?"), fieldText(1, "v")),
		"array mixed": value(fieldLen(5, fieldLen(1, fieldText(1, "a")), fieldLen(1, fieldVarint(3, 1)), fieldLen(1), fieldVarint(2, 9),
			fieldLen(1, nest(4, "am")))),
		"array entry wrong": value(fieldLen(5, fieldVarint(1, 1))),
		"map": value(fieldLen(6, stringAttribute(1, "a", "1"), stringAttribute(1, "a", "2"), fieldText(3, "?"), attribute(1,
			"", nest(3, "m")))),
		"map entry wrong":  value(fieldLen(6, fieldLen(1, fieldLen(2, fieldText(3, "?"))))),
		"array empty":      value(fieldLen(5)),
		"nested 10":        value(nest(10, "am")),
		"array with group": value(fieldLen(5, tag(9, protoenc.StartGroup), tag(9, protoenc.EndGroup), fieldLen(1, fieldText(1, "a")))),
	}
}

func quirksOfVarints() map[string][]byte {
	name := []byte("n")
	return map[string][]byte{
		"tag of 2 bytes":       request(cat(longVarint(5<<3|protoenc.Length, 2), longVarint(1, 1), name)),
		"tag of 10 bytes":      request(cat(longVarint(5<<3|protoenc.Length, 10), longVarint(1, 1), name)),
		"tag of 11 bytes":      request(cat(longVarint(5<<3|protoenc.Length, 11), longVarint(1, 1), name)),
		"length of 10 bytes":   request(cat(tag(5, protoenc.Length), longVarint(1, 10), name)),
		"length of 11 bytes":   request(cat(tag(5, protoenc.Length), longVarint(1, 11), name)),
		"length negative":      request(cat(tag(5, protoenc.Length), longVarint(math.MaxUint64, 10), name)),
		"length overflows":     request(cat(tag(5, protoenc.Length), longVarint(math.MaxInt64, 9), name)),
		"length too great":     request(cat(tag(5, protoenc.Length), longVarint(2, 1), name)),
		"varint of 10 bytes":   request(wireSpan(tag(6, protoenc.Varint), longVarint(3, 10))),
		"varint beyond 64":     request(wireSpan(tag(6, protoenc.Varint), []byte{0x83, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f})),
		"varint cut":           request(wireSpan(tag(6, protoenc.Varint), []byte{0x80})),
		"varint missing":       request(wireSpan(tag(6, protoenc.Varint))),
		"fixed cut":            request(wireSpan(tag(7, protoenc.Fixed64), make([]byte, 7))),
		"fixed32 cut":          request(wireSpan(tag(16, protoenc.Fixed32), make([]byte, 3))),
		"unknown fixed cut":    request(wireSpan(tag(77, protoenc.Fixed32), make([]byte, 3))),
		"field 0":              request(wireSpan(tag(0, protoenc.Varint), []byte{1})),
		"field 0 in 2 bytes":   request(wireSpan(longVarint(protoenc.Length, 2), []byte{0})),
		"field 2^28":           request(wireSpan(fieldVarint(1<<28, 1))),
		"field 2^29-1":         request(wireSpan(fieldVarint(1<<29-1, 1))),
		"field 2^31-1":         request(wireSpan(fieldVarint(1<<31-1, 1))),
		"field 2^31":           request(wireSpan(fieldVarint(1<<31, 1))),
		"field 2^32+5":         request(wireSpan(fieldText(1<<32+5, "wrapped"))),
		"field 2^29+5":         request(wireSpan(fieldText(1<<29+5, "wrapped"))),
		"field 2^30+5":         request(wireSpan(fieldText(1<<30+5, "wrapped"))),
		"field 2^32":           request(wireSpan(fieldVarint(1<<32, 1))),
		"resource in 2^32+1":   fieldLen(1<<32+1, wireResource("cart"), fieldLen(2, fieldLen(2, wireSpan()))),
		"old field at 2^32":    fieldLen(1, fieldLen(1<<32+1000, fieldLen(2, wireSpan()))),
		"wire type 6":          request(wireSpan(tag(77, 6))),
		"wire type 7":          request(wireSpan(tag(5, 7), []byte{1})),
		"value length 2 bytes": request(wireSpan(fieldLen(9, fieldText(1, "k"), tag(2, protoenc.Length), longVarint(3, 2), fieldText(1, "v")))),
		"only a tag":           {0x0a},
		"zeros":                make([]byte, 8),
	}
}

func quirksOfGroups() map[string][]byte {
	open, end := tag(50, protoenc.StartGroup), tag(50, protoenc.EndGroup)
	return map[string][]byte{
		"group empty":             request(wireSpan(open, end, fieldText(5, "after"))),
		"group empty at the end":  request(wireSpan(open, end)),
		"group nested":            request(wireSpan(open, open, end, end, fieldText(5, "after"))),
		"group with varint":       request(wireSpan(open, fieldVarint(3, 1), end, fieldText(5, "after"))),
		"group with text":         request(wireSpan(open, fieldText(3, "x"), end)),
		"group with text, no end": request(wireSpan(open, fieldText(3, "x"), fieldText(5, "after"))),
		"group open":              request(wireSpan(open)),
		"group with wire type 6":  request(wireSpan(open, tag(3, 6), end, fieldText(5, "after"))),
		"group ends another":      request(wireSpan(open, tag(51, protoenc.EndGroup), fieldText(5, "after"))),
		"group end alone":         request(wireSpan(end, fieldText(5, "after"))),
		"group as a known field":  request(wireSpan(tag(5, protoenc.StartGroup), tag(5, protoenc.EndGroup))),
		"group of groups":         cat(open, open, open, end, end, end, request(wireSpan())),
		"group with field 0":      request(wireSpan(open, []byte{0}, end, fieldText(5, "after"))),
		"group beside a resource": cat(open, end, request(wireSpan())),
		"group in resource spans": fieldLen(1, open, end, wireResource("cart"), fieldLen(2, open, end, fieldLen(2, wireSpan()))),
	}
}

// sample returns a request as written by an SDK: n spans with nine attributes, every tenth with an
// event.
func sample(n int) []byte {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "cart")
	rs.Resource().Attributes().PutStr("host.name", "h1")
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("lib")
	for i := range n {
		s := ss.Spans().AppendEmpty()
		s.SetTraceID([16]byte{1, 2, 3, byte(i)})
		s.SetSpanID([8]byte{1, byte(i)})
		s.SetParentSpanID([8]byte{1, byte(i / 2)})
		s.SetName("GET /cart/items")
		s.SetKind(2)
		s.SetStartTimestamp(1_700_000_000_000_000_000)
		s.SetEndTimestamp(1_700_000_000_100_000_000)
		for _, k := range []string{"http.request.method", "url.path", "server.address", "user_agent.original", "db.statement", "enduser.id"} {
			s.Attributes().PutStr(k, "some value of ordinary size")
		}
		s.Attributes().PutInt("http.response.status_code", 200)
		s.Attributes().PutDouble("ratio", 0.5)
		s.Attributes().PutBool("cached", true)
		if i%10 == 0 {
			e := s.Events().AppendEmpty()
			e.SetName("exception")
			e.Attributes().PutStr("exception.message", "boom")
		}
	}
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		panic(err) // pdata's encoder cannot fail
	}
	return b
}
