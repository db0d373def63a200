package kafka_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	jaeger "github.com/jaegertracing/jaeger-idl/model/v1"
	zipkin "github.com/openzipkin/zipkin-go/model"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// span is what every encoding can express. Times are multiples of a microsecond.
type span struct {
	high, low     uint64 // trace id
	id, parent    uint64
	service, name string
	server        bool // kind: server or client
	start         time.Time
	duration      time.Duration
	attribute     string // value of the attribute "key"
	event         string // name of an event at the start
}

// String identifies the span in messages, and orders spans.
func (s span) String() string {
	return fmt.Sprintf("%s/%016x in %016x: %s %s server=%v at %d for %v key=%s event=%s",
		s.traceID(), s.id, s.parent, s.service, s.name, s.server, s.start.UnixMicro(), s.duration, s.attribute, s.event)
}

// traceID returns the trace id as 32 hexadecimal digits.
func (s span) traceID() string { return fmt.Sprintf("%016x%016x", s.high, s.low) }

// lines returns the strings of spans in order, for comparisons.
func lines(spans []span) string {
	all := make([]string, len(spans))
	for i, s := range spans {
		all[i] = s.String()
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// testSpans returns the spans of some traces. The last one has a 64-bit id.
func testSpans() (spans []span) {
	start := time.Now().Add(-time.Minute).Truncate(time.Microsecond)
	for trace := range uint64(5) {
		high := 0x0102030405060708 + trace
		if trace == 4 {
			high = 0
		}
		root := span{high: high, low: 0xf1f2f3f4f5f6f7f8 - trace, id: 0xa1 + trace, service: "shop", name: "get /cart", server: true,
			start: start.Add(time.Duration(trace) * time.Millisecond), duration: 250 * time.Millisecond, attribute: "größe ✓", event: "cache miss"}
		child := root
		child.id, child.parent, child.name, child.server, child.duration = 0xb1+trace, root.id, "query", false, 17*time.Microsecond
		other := root
		other.id, other.parent, other.service, other.name = 0xc1+trace, child.id, "database", "select"
		spans = append(spans, root, child, other)
	}
	return spans
}

func toOTLP(spans []span) ptrace.Traces {
	td := ptrace.NewTraces()
	for _, s := range spans {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", s.service)
		out := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		id := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, s.high), s.low)
		out.SetTraceID(pcommon.TraceID(id))
		out.SetSpanID(pcommon.SpanID(binary.BigEndian.AppendUint64(nil, s.id)))
		out.SetParentSpanID(pcommon.SpanID(binary.BigEndian.AppendUint64(nil, s.parent)))
		out.SetName(s.name)
		out.SetKind(ptrace.SpanKindClient)
		if s.server {
			out.SetKind(ptrace.SpanKindServer)
		}
		out.SetStartTimestamp(pcommon.NewTimestampFromTime(s.start))
		out.SetEndTimestamp(pcommon.NewTimestampFromTime(s.start.Add(s.duration)))
		out.Attributes().PutStr("key", s.attribute)
		e := out.Events().AppendEmpty()
		e.SetName(s.event)
		e.SetTimestamp(out.StartTimestamp())
	}
	return td
}

func fromOTLP(td ptrace.Traces) (spans []span) {
	for _, rs := range td.ResourceSpans().All() {
		service, _ := rs.Resource().Attributes().Get("service.name")
		for _, ss := range rs.ScopeSpans().All() {
			for _, in := range ss.Spans().All() {
				trace, id, parent := in.TraceID(), in.SpanID(), in.ParentSpanID()
				attribute, _ := in.Attributes().Get("key")
				s := span{high: binary.BigEndian.Uint64(trace[:8]), low: binary.BigEndian.Uint64(trace[8:]),
					id: binary.BigEndian.Uint64(id[:]), parent: binary.BigEndian.Uint64(parent[:]),
					service: service.Str(), name: in.Name(), server: in.Kind() == ptrace.SpanKindServer, start: in.StartTimestamp().AsTime(),
					duration: in.EndTimestamp().AsTime().Sub(in.StartTimestamp().AsTime()), attribute: attribute.Str()}
				for _, e := range in.Events().All() {
					s.event += e.Name()
				}
				spans = append(spans, s)
			}
		}
	}
	return spans
}

func toJaeger(s span) *jaeger.Span {
	kind := "client"
	if s.server {
		kind = "server"
	}
	out := &jaeger.Span{TraceID: jaeger.NewTraceID(s.high, s.low), SpanID: jaeger.NewSpanID(s.id), OperationName: s.name,
		Process: jaeger.NewProcess(s.service, nil), StartTime: s.start.UTC(), Duration: s.duration, Flags: 1,
		Tags: jaeger.KeyValues{jaeger.String("key", s.attribute), jaeger.String("span.kind", kind)},
		Logs: []jaeger.Log{{Timestamp: s.start.UTC(), Fields: []jaeger.KeyValue{jaeger.String("event", s.event)}}}}
	if s.parent != 0 {
		out.References = []jaeger.SpanRef{jaeger.NewChildOfRef(out.TraceID, jaeger.NewSpanID(s.parent))}
	}
	return out
}

func fromJaeger(in *jaeger.Span) span {
	s := span{high: in.TraceID.High, low: in.TraceID.Low, id: uint64(in.SpanID), parent: uint64(in.ParentSpanID()), name: in.OperationName,
		start: in.StartTime, duration: in.Duration}
	if in.Process != nil {
		s.service = in.Process.ServiceName
	}
	if attribute, ok := jaeger.KeyValues(in.Tags).FindByKey("key"); ok {
		s.attribute = attribute.VStr
	}
	if kind, ok := jaeger.KeyValues(in.Tags).FindByKey("span.kind"); ok {
		s.server = kind.VStr == "server"
	}
	for _, l := range in.Logs {
		if event, ok := jaeger.KeyValues(l.Fields).FindByKey("event"); ok {
			s.event += event.VStr
		}
	}
	return s
}

func toZipkin(s span) *zipkin.SpanModel {
	out := &zipkin.SpanModel{SpanContext: zipkin.SpanContext{TraceID: zipkin.TraceID{High: s.high, Low: s.low}, ID: zipkin.ID(s.id)},
		Name: s.name, Kind: zipkin.Client, Timestamp: s.start, Duration: s.duration, LocalEndpoint: &zipkin.Endpoint{ServiceName: s.service},
		Annotations: []zipkin.Annotation{{Timestamp: s.start, Value: s.event}}, Tags: map[string]string{"key": s.attribute}}
	if s.server {
		out.Kind = zipkin.Server
	}
	if s.parent != 0 {
		parent := zipkin.ID(s.parent)
		out.ParentID = &parent
	}
	return out
}

func fromZipkin(in *zipkin.SpanModel) span {
	s := span{high: in.TraceID.High, low: in.TraceID.Low, id: uint64(in.ID), name: in.Name, server: in.Kind == zipkin.Server,
		start: in.Timestamp, duration: in.Duration, attribute: in.Tags["key"]}
	if in.ParentID != nil {
		s.parent = uint64(*in.ParentID)
	}
	if in.LocalEndpoint != nil {
		s.service = in.LocalEndpoint.ServiceName
	}
	for _, a := range in.Annotations {
		s.event += a.Value
	}
	return s
}

// shortID returns a trace id as Jaeger writes it: with 16 digits if it has 64 bits.
func shortID(traceID string) string {
	return strings.TrimPrefix(traceID, hex.EncodeToString(make([]byte, 8)))
}
