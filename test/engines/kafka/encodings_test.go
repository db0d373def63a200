package kafka_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/gogo/protobuf/jsonpb"
	jaeger "github.com/jaegertracing/jaeger-idl/model/v1"
	zipkin "github.com/openzipkin/zipkin-go/model"
	"github.com/openzipkin/zipkin-go/proto/zipkin_proto3"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// encoding writes and reads records with the libraries of other programs.
type encoding struct {
	name string
	// write returns records with spans and with the keys of those programs.
	write func(t *testing.T, spans []span) []*kgo.Record
	// read returns the spans of a record, and an error if those programs cannot read it.
	read func(value []byte) ([]span, error)
	// key returns the key that those programs write for a trace id, which may be that of a record.
	key func(traceID string) string
	// joins reports whether a record may hold several traces.
	joins bool
}

var encodings = []encoding{
	{
		name: "otlp_proto", key: sameID, joins: true,
		write: eachTrace(func(spans []span) ([]byte, error) { return new(ptrace.ProtoMarshaler).MarshalTraces(toOTLP(spans)) }),
		read: func(value []byte) ([]span, error) {
			td, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(value)
			return fromOTLP(td), err
		},
	},
	{
		name: "otlp_json", key: sameID, joins: true,
		write: eachTrace(func(spans []span) ([]byte, error) { return new(ptrace.JSONMarshaler).MarshalTraces(toOTLP(spans)) }),
		read: func(value []byte) ([]span, error) {
			td, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(value)
			return fromOTLP(td), err
		},
	},
	{
		name: "jaeger_proto", key: shortID,
		write: eachSpan(func(s span) ([]byte, error) { return toJaeger(s).Marshal() }),
		read: func(value []byte) ([]span, error) {
			var in jaeger.Span
			err := in.Unmarshal(value)
			return []span{fromJaeger(&in)}, err
		},
	},
	{
		name: "jaeger_json", key: shortID,
		write: eachSpan(func(s span) ([]byte, error) {
			var b bytes.Buffer
			err := new(jsonpb.Marshaler).Marshal(&b, toJaeger(s))
			return b.Bytes(), err
		}),
		read: func(value []byte) ([]span, error) {
			var in jaeger.Span
			err := jsonpb.Unmarshal(bytes.NewReader(value), &in)
			return []span{fromJaeger(&in)}, err
		},
	},
	{
		name: "zipkin_proto", key: sameID, joins: true,
		write: eachTrace(func(spans []span) ([]byte, error) {
			return zipkin_proto3.SpanSerializer{}.Serialize(zipkinModels(spans))
		}),
		read: func(value []byte) ([]span, error) {
			in, err := zipkin_proto3.ParseSpans(value, true)
			return zipkinSpans(in), err
		},
	},
	{
		name: "zipkin_json", key: sameID, joins: true,
		write: eachTrace(func(spans []span) ([]byte, error) { return json.Marshal(zipkinModels(spans)) }),
		read: func(value []byte) ([]span, error) {
			var in []*zipkin.SpanModel
			err := json.Unmarshal(value, &in)
			return zipkinSpans(in), err
		},
	},
}

func sameID(traceID string) string { return traceID }

// eachTrace writes a record for each trace, as the Collector does with partition_traces_by_id.
func eachTrace(marshal func([]span) ([]byte, error)) func(*testing.T, []span) []*kgo.Record {
	return func(t *testing.T, spans []span) (records []*kgo.Record) {
		t.Helper()
		var order []string
		traces := map[string][]span{}
		for _, s := range spans {
			if traces[s.traceID()] == nil {
				order = append(order, s.traceID())
			}
			traces[s.traceID()] = append(traces[s.traceID()], s)
		}
		for _, id := range order {
			value, err := marshal(traces[id])
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, &kgo.Record{Key: []byte(id), Value: value})
		}
		return records
	}
}

// eachSpan writes a record for each span, as Jaeger does.
func eachSpan(marshal func(span) ([]byte, error)) func(*testing.T, []span) []*kgo.Record {
	return func(t *testing.T, spans []span) (records []*kgo.Record) {
		t.Helper()
		for _, s := range spans {
			value, err := marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, &kgo.Record{Key: []byte(toJaeger(s).TraceID.String()), Value: value})
		}
		return records
	}
}

func zipkinModels(spans []span) (out []*zipkin.SpanModel) {
	for _, s := range spans {
		out = append(out, toZipkin(s))
	}
	return out
}

func zipkinSpans(in []*zipkin.SpanModel) (spans []span) {
	for _, s := range in {
		spans = append(spans, fromZipkin(s))
	}
	return spans
}
