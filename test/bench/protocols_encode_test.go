package bench_test

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/openzipkin/zipkin-go/model"
	"github.com/uber/jaeger-client-go/thrift"
	"github.com/uber/jaeger-client-go/thrift-gen/agent"
	"github.com/uber/jaeger-client-go/thrift-gen/jaeger"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
)

// postSpans encodes a request as PostSpansRequest.
func postSpans(b *testing.B, r bench.Request) (p []byte) {
	batch := otlpdata.FromStored(r.Body, otlpdata.Meta{})
	err := native.SplitPostSpans(batch, math.MaxInt, func() []byte { return nil }, func(request []byte, _ int) error {
		p = request
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// binaryBatch encodes a request as Batch in the binary Thrift protocol, with the code of the Jaeger
// client.
func binaryBatch(b *testing.B, r bench.Request) []byte {
	return thriftBytes(b, func(p *thrift.TMemoryBuffer) error {
		return thriftBatch(b, r).Write(context.Background(), thrift.NewTBinaryProtocolConf(p, nil))
	})
}

// compactMessage encodes a request as emitBatch in the compact Thrift protocol, with the code of
// the Jaeger client.
func compactMessage(b *testing.B, r bench.Request) []byte {
	return thriftBytes(b, func(p *thrift.TMemoryBuffer) error {
		client := agent.NewAgentClientFactory(p, thrift.NewTCompactProtocolFactoryConf(nil))
		return client.EmitBatch(context.Background(), thriftBatch(b, r))
	})
}

func thriftBytes(b *testing.B, write func(*thrift.TMemoryBuffer) error) []byte {
	buf := thrift.NewTMemoryBuffer()
	if err := write(buf); err != nil {
		b.Fatal(err)
	}
	return buf.Bytes()
}

func thriftBatch(b *testing.B, r bench.Request) *jaeger.Batch {
	v := &thriftVisitor{}
	if err := otlpdata.Walk(r.Body, v); err != nil {
		b.Fatal(err)
	}
	return &v.batch
}

// thriftVisitor builds the batch that Thrift clients send. Fields that the model does not have
// become tags.
type thriftVisitor struct{ batch jaeger.Batch }

func (v *thriftVisitor) Resource(r *otlpdata.Resource) error {
	v.batch.Process = &jaeger.Process{ServiceName: r.Service, Tags: thriftTags(r.Attributes)}
	return nil
}

func (v *thriftVisitor) Scope(*otlpdata.Scope) error { return nil }

func (v *thriftVisitor) Span(s *otlpdata.Span) error {
	high, low, id := idParts(s)
	tags := thriftTags(s.Attributes)
	if k := s.KindName(); k != "" {
		tags = append(tags, thriftTag("span.kind", otlpdata.StringValue(k)))
	}
	if s.StatusCode == otlpdata.StatusError {
		tags = append(tags, thriftTag("error", otlpdata.BoolValue(true)))
	}
	out := &jaeger.Span{TraceIdHigh: high, TraceIdLow: low, SpanId: id, ParentSpanId: signed(s.ParentID[:]), OperationName: s.Name, Flags: 1,
		StartTime: int64(s.Start / 1000), Duration: int64((s.End - s.Start) / 1000), Tags: tags}
	for _, e := range s.Events {
		fields := append(thriftTags(e.Attributes), thriftTag("event", otlpdata.StringValue(e.Name)))
		out.Logs = append(out.Logs, &jaeger.Log{Timestamp: int64(e.Time / 1000), Fields: fields})
	}
	v.batch.Spans = append(v.batch.Spans, out)
	return nil
}

func thriftTags(kvs []otlpdata.KeyValue) (tags []*jaeger.Tag) {
	for _, kv := range kvs {
		if kv.Key != "service.name" {
			tags = append(tags, thriftTag(kv.Key, kv.Value))
		}
	}
	return tags
}

func thriftTag(key string, v otlpdata.Value) *jaeger.Tag {
	t := &jaeger.Tag{Key: key}
	switch v.Kind() {
	case otlpdata.ValueBool:
		x := v.Bool()
		t.VType, t.VBool = jaeger.TagType_BOOL, &x
	case otlpdata.ValueInt:
		x := v.Int()
		t.VType, t.VLong = jaeger.TagType_LONG, &x
	case otlpdata.ValueDouble:
		x := v.Double()
		t.VType, t.VDouble = jaeger.TagType_DOUBLE, &x
	default:
		x := string([]byte(v.AsString())) // a copy, because the value is part of the request
		t.VType, t.VStr = jaeger.TagType_STRING, &x
	}
	t.Key = string([]byte(t.Key))
	return t
}

// signed decodes a big-endian id.
func signed(b []byte) (n int64) {
	for _, c := range b {
		n = n<<8 | int64(c)
	}
	return n
}

func idParts(s *otlpdata.Span) (high, low, id int64) {
	return signed(s.TraceID[:8]), signed(s.TraceID[8:]), signed(s.SpanID[:])
}

// zipkinJSON encodes a request as Zipkin v2 JSON, with the code of zipkin-go.
func zipkinJSON(b *testing.B, r bench.Request) []byte {
	v := &zipkinVisitor{}
	if err := otlpdata.Walk(r.Body, v); err != nil {
		b.Fatal(err)
	}
	body, err := json.Marshal(v.spans)
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// zipkinVisitor builds the spans that Zipkin clients send.
type zipkinVisitor struct {
	local *model.Endpoint
	spans []model.SpanModel
}

func (v *zipkinVisitor) Resource(r *otlpdata.Resource) error {
	v.local = &model.Endpoint{ServiceName: r.Service}
	return nil
}

func (v *zipkinVisitor) Scope(*otlpdata.Scope) error { return nil }

func (v *zipkinVisitor) Span(s *otlpdata.Span) error {
	high, low, id := idParts(s)
	out := model.SpanModel{
		SpanContext: model.SpanContext{TraceID: model.TraceID{High: uint64(high), Low: uint64(low)}, ID: model.ID(id)},
		Name:        s.Name, LocalEndpoint: v.local, Timestamp: time.Unix(0, int64(s.Start)), Duration: time.Duration(s.End - s.Start),
		Tags: map[string]string{},
	}
	if !s.ParentID.IsZero() {
		parent := model.ID(signed(s.ParentID[:]))
		out.ParentID = &parent
	}
	if s.Kind == otlpdata.KindServer {
		out.Kind = model.Server
	} else if s.Kind == otlpdata.KindClient {
		out.Kind = model.Client
	}
	for _, kv := range s.Attributes {
		out.Tags[kv.Key] = kv.Value.AsString()
	}
	for _, e := range s.Events {
		out.Annotations = append(out.Annotations, model.Annotation{Timestamp: time.Unix(0, int64(e.Time)), Value: e.Name})
	}
	v.spans = append(v.spans, out)
	return nil
}
