package remotestorage

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/internal/wire/expression_v1"
	"github.com/tracing-backend/tracing/internal/wire/storage_v1"
	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// FuzzQuery checks that requests of both versions are converted to a valid query or to an error.
func FuzzQuery(f *testing.F) {
	for _, m := range []proto.Message{
		&storage_v1.TraceQueryParameters{ServiceName: "s", Tags: map[string]string{"error": "true", "event": "x"}, NumTraces: -1},
		&storage_v2.TraceQueryParameters{StartTimeMin: timestamppb.New(time.Unix(1, 1)), DurationMax: durationpb.New(-1),
			Attributes: []*storage_v2.KeyValue{
				{}, {Key: "k", Value: &storage_v2.AnyValue{Value: &storage_v2.AnyValue_BytesValue{BytesValue: []byte{1}}}},
				{Key: "l", Value: &storage_v2.AnyValue{Value: &storage_v2.AnyValue_KvlistValue{KvlistValue: &storage_v2.KeyValueList{}}}}}},
		&storage_v2.TraceQueryParameters{Filter: &expression_v1.Call{Op: "exists", Args: []*expression_v1.Expression{
			{Term: &expression_v1.Expression_Attr{Attr: &expression_v1.AttributeReference{Key: "k"}}}}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	span := tracestore.Span{Resource: &otlpdata.Resource{}, Scope: &otlpdata.Scope{}, Span: &otlpdata.Span{}}
	check := func(t *testing.T, q tracestore.Query, err error) {
		if err == nil && q.Limit <= 0 {
			t.Errorf("limit %d", q.Limit)
		}
		tracestore.Match(q.Where, span)
		q.Window()
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var old storage_v1.TraceQueryParameters
		if proto.Unmarshal(b, &old) == nil {
			q, err := queryV1("", &old)
			check(t, q, err)
		}
		var p storage_v2.TraceQueryParameters
		if proto.Unmarshal(b, &p) == nil {
			q, err := queryV2("", &p)
			check(t, q, err)
		}
	})
}
