package zipkin

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jaegertracing/jaeger-idl/thrift-gen/zipkincore"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

type (
	zSpan  = zipkincore.Span
	zNote  = zipkincore.Annotation
	zTag   = zipkincore.BinaryAnnotation
	zHost  = zipkincore.Endpoint
	zNotes = []*zipkincore.Annotation
	zTags  = []*zipkincore.BinaryAnnotation
)

func at(n int64) *int64 { return &n }

func zString(key, value string) *zTag {
	return &zTag{Key: key, Value: []byte(value), AnnotationType: zipkincore.AnnotationType_STRING}
}

// span1 returns a span with ids and times.
func span1(change func(*zSpan)) *zSpan {
	s := &zSpan{TraceID: 0xa1, ID: -2, Name: "n", Timestamp: at(1500000000000001), Duration: at(7)}
	change(s)
	return s
}

func noted(notes ...*zNote) *zSpan { return span1(func(s *zSpan) { s.Annotations = notes }) }
func tagged(tags ...*zTag) *zSpan  { return span1(func(s *zSpan) { s.BinaryAnnotations = tags }) }

// zRule is an example for a rule of the translation of v1 Thrift. Each example is translated by the
// rules for HTTP and by those for UDP.
type zRule struct {
	name  string
	spans []*zSpan
}

func zRules() []zRule { return slices.Concat(zHostRules(), zTagRules(), zTimeRules()) }

func zHostRules() []zRule {
	a := &zHost{ServiceName: "a", Ipv4: 10<<24 | 1, Port: -1}
	b := &zHost{ServiceName: "b", Ipv4: -1062731775, Ipv6: []byte("\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01")}
	mapped := &zHost{ServiceName: "c", Ipv6: []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x00\x00\x01")}
	nameless := &zHost{Ipv4: 1, Ipv6: []byte{1, 2}}
	return []zRule{
		{"no spans", nil},
		{"nothing set", []*zSpan{{}}},
		{"128 bits and a parent", []*zSpan{span1(func(s *zSpan) { s.TraceIDHigh, s.ParentID = at(-1), at(5) })}},
		{"kinds", []*zSpan{
			noted(note(0, "cs", nil)), noted(note(0, "cr", nil)), noted(note(0, "sr", nil)), noted(note(0, "ss", nil)),
			noted(note(0, "ms", nil)), noted(note(0, "mr", nil)), noted(note(0, "x", nil), note(0, "ss", nil), note(0, "cr", nil)),
		}},
		{"client and server in one", []*zSpan{
			noted(note(1, "cs", a), note(3, "sr", b), note(6, "ss", b), note(10, "cr", a), note(4, "x", nil)),
			span1(func(s *zSpan) {
				s.Annotations = zNotes{note(3, "sr", b), note(1, "cs", a)}
				s.BinaryAnnotations = zTags{zString("otel.scope.name", "scope"), zString("k", "v")}
				s.ParentID, s.Debug = at(5), true
			}),
		}},
		{"service of a core annotation", []*zSpan{
			noted(note(1, "x", b), note(1, "cs", nameless), note(1, "cr", a), note(1, "cr", b)), noted(note(1, "sr", a)),
		}},
		{"service of a message", []*zSpan{noted(note(1, "x", a), note(1, "ms", b))}},
		{"service of the local component", []*zSpan{span1(func(s *zSpan) {
			s.Annotations = zNotes{note(1, "x", b)}
			s.BinaryAnnotations = zTags{hosted("k", b), {Key: "lc", Value: []byte("c"), AnnotationType: 6, Host: a}}
		})}},
		{"service of an annotation", []*zSpan{span1(func(s *zSpan) {
			s.Annotations, s.BinaryAnnotations = zNotes{note(1, "x", nameless), note(1, "y", b)}, zTags{hosted("k", a)}
		})}},
		{"service of a binary annotation", []*zSpan{tagged(hosted("k", a), hosted("l", b))}},
		{"name of the local component", []*zSpan{tagged(zString("lc", "c"))}},
		{"no service", []*zSpan{tagged(hosted("k", nameless))}},
		{"addresses", []*zSpan{
			noted(note(1, "cs", b)), noted(note(1, "cs", &zHost{ServiceName: "c", Ipv6: []byte{1, 2}, Port: 80})), noted(note(1, "cs", mapped)),
		}},
		{"peers", []*zSpan{tagged(hosted("sa", b)), tagged(hosted("ca", a), hosted("ma", &zHost{})), tagged(hosted("sa", nil))}},
	}
}

func zTagRules() []zRule {
	return []zRule{
		{"process tags", []*zSpan{
			tagged(zString("jaegerClient", "Go-1"), zString("jaeger.hostname", "h"), zString("jaeger.version", "Go-2"), zString("k", "v")),
			tagged(typed("tracing.version", 0, "\x01"), zString("tracing.hostname", "h")),
		}},
		{"types", []*zSpan{tagged(
			typed("bool", 0, "\x01"), typed("bool2", 0, "\x01\x01"), typed("bool0", 0, ""), typed("bytes", 1, "\xff\x00\x10"),
			typed("i16", 2, "\xff\xfe"), typed("i32", 3, "\xff\xff\xff\xfd"), typed("i64", 4, "\xff\xff\xff\xff\xff\xff\xff\xfc"),
			typed("long", 4, "\x00\x00\x00\x00\x00\x00\x00\x07rest"), typed("double", 5, "\x3f\xf8\x00\x00\x00\x00\x00\x00"),
			typed("string", 6, "s"),
		)}},
		{"bad values", []*zSpan{tagged(
			typed("i16", 2, ""), typed("i32", 3, "\x01"), typed("i64", 4, "1234567"), typed("double", 5, ""), typed("type", 7, "ab"),
			typed("type", -1, ""), typed("", 6, "keyless"), typed("@tracing@flags", 6, "2"),
		)}},
		{"errors", []*zSpan{
			tagged(zString("error", "true")), tagged(zString("error", "")), tagged(zString("error", "False")), tagged(zString("error", "oops")),
			tagged(zString("ERROR", "TRUE")), tagged(typed("error", 0, "\x01")), tagged(typed("error", 0, "")), tagged(typed("error", 1, "\xff")),
			tagged(zString("error", "oops"), zString("otel.status_description", "d")),
		}},
		{"status", []*zSpan{
			tagged(zString("http.status_code", "404")), tagged(typed("http.status_code", 2, "\x01\xf4")),
			tagged(zString("otel.status_code", "OK")), tagged(zString("census.status_code", "1")),
		}},
		{"scopes and trace state", []*zSpan{
			tagged(zString("otel.scope.name", "s"), zString("otel.scope.version", "1")),
			tagged(zString("otel.scope.name", "s"), zString("otel.scope.version", "1")), tagged(zString("w3c.tracestate", "a=b")),
		}},
		{"span kind", []*zSpan{tagged(zString("span.kind", "producer"))}},
		{"debug", []*zSpan{span1(func(s *zSpan) { s.Debug = true })}},
		{"tags twice", []*zSpan{tagged(zString("k", "1"), zString("k", "2"))}},
	}
}

func zTimeRules() []zRule {
	return []zRule{
		{"no timestamp", []*zSpan{
			{Annotations: zNotes{note(9, "sr", nil), note(3, "x", nil), note(5, "cs", nil)}},
			{Annotations: zNotes{note(9, "sr", nil)}},
			{Annotations: zNotes{note(9, "sr", nil)}, ParentID: at(1)},
			{Annotations: zNotes{note(9, "x", nil)}},
			{Annotations: zNotes{note(4, "sr", nil), note(9, "ss", nil)}, Timestamp: at(0), Duration: at(0)},
			{Annotations: zNotes{note(9, "cs", nil), note(4, "cr", nil)}, Timestamp: at(0), Duration: at(0)},
		}},
		{"no duration", []*zSpan{
			{Timestamp: at(5)},
			{Annotations: zNotes{note(2, "x", nil), note(9, "y", nil)}, Timestamp: at(5)},
			{Annotations: zNotes{note(2, "x", nil), note(9, "y", nil)}},
			{Annotations: zNotes{note(1, "x", nil), note(8, "cr", nil), note(3, "cs", nil), note(20, "y", nil)}, Timestamp: at(5)},
			{Annotations: zNotes{note(9, "x", nil), note(2, "y", nil)}, Timestamp: at(5)},
		}},
		{"odd times", []*zSpan{
			{Timestamp: at(5), Duration: at(-3)},
			{Timestamp: at(-5), Duration: at(7)},
			{Timestamp: at(math.MaxInt64), Duration: at(math.MaxInt64)},
			{Timestamp: at(math.MinInt64), Duration: at(math.MinInt64)},
			{Annotations: zNotes{note(math.MinInt64, "x", nil), note(math.MaxInt64, "y", nil)}},
		}},
		{"zero parent", []*zSpan{span1(func(s *zSpan) { s.ParentID = at(0) })}},
		{"events", []*zSpan{noted(
			note(1, "ws", nil), note(2, "", nil), note(3, `{"event":"\u0065rror","message":"a\tb","n":null}`, nil), note(4, ` {}`, nil),
			note(5, `{"a":"b\n"}`, nil), note(6, `{"a":1}`, nil), note(7, `{"a":"\t","b":`, nil), note(8, `null`, nil),
			note(9, `["a"]`, nil), note(-1, "past", nil),
		)}},
	}
}

func note(at int64, value string, host *zHost) *zNote {
	return &zNote{Timestamp: at, Value: value, Host: host}
}

// hosted returns a binary annotation for an address, in the form that libraries write.
func hosted(key string, host *zHost) *zTag { return &zTag{Key: key, Value: []byte{1}, Host: host} }

func typed(key string, typ zipkincore.AnnotationType, value string) *zTag {
	return &zTag{Key: key, Value: []byte(value), AnnotationType: typ}
}

func TestV1ThriftRules(t *testing.T) {
	var http, agent strings.Builder
	for _, r := range zRules() {
		binary := dumped(FromEmitZipkinBatch(encodeArguments(t, native.Binary, r.spans), native.Binary))
		compact := dumped(FromEmitZipkinBatch(encodeArguments(t, native.Compact, r.spans), native.Compact))
		if binary != compact {
			t.Errorf("%s: binary\n%s\ncompact\n%s", r.name, binary, compact)
		}
		fmt.Fprintf(&agent, "# %s\n%s", r.name, compact)
		fmt.Fprintf(&http, "# %s\n%s", r.name, dumped(FromV1Thrift(encodeList(t, r.spans), v1Options())))
	}
	golden.Check(t, "testdata/v1-http.golden", http.String())
	golden.Check(t, "testdata/v1-agent.golden", agent.String())
}

func TestV1ThriftAgainstGenerated(t *testing.T) {
	for _, r := range zRules() {
		for _, enc := range []native.Encoding{native.Binary, native.Compact} {
			args := encodeArguments(t, enc, r.spans)
			checkAgainstGenerated(t, enc, args)
			for i := range args { // truncated
				checkAgainstGenerated(t, enc, args[:i])
			}
		}
	}
}

// TestV1ThriftBad: malformed input is an error, and lengths do not cause large allocations.
func TestV1ThriftBad(t *testing.T) {
	for name, b := range map[string]string{
		"nothing": "", "numbers": "\x08\x00\x00\x00\x01\x00\x00\x00\x01", "cut short": "\x0c\x00\x00\x00\x02\x00",
		"negative count": "\x0c\xff\xff\xff\xff", "a huge count": "\x0c\x7f\xff\xff\xff\x00",
		"a huge name": "\x0c\x00\x00\x00\x01\x0b\x00\x03\x7f\xff\xff\xffabc",
	} {
		if out, err := FromV1Thrift([]byte(b), Options{}); err == nil {
			t.Errorf("%s: accepted as\n%s", name, dumped(out, nil))
		}
	}
	if _, err := FromEmitZipkinBatch([]byte("\x0f\x00\x01\x0c\x00\x00\x00\x00\x0f\x00\x01\x0c\x00\x00\x00\x00\x00"),
		native.Binary); !errors.Is(err, errSpansRepeat) {
		t.Errorf("two lists: %v", err)
	}
	var limit *otlpdata.LimitError
	many := slices.Repeat([]*zTag{{Key: "k"}}, otlpdata.DefaultLimits().Items+1)
	args := encodeArguments(t, native.Compact, []*zSpan{tagged(many...)})
	if _, err := FromEmitZipkinBatch(args, native.Compact); !errors.As(err, &limit) {
		t.Errorf("too many binary annotations: %v", err)
	}
}
