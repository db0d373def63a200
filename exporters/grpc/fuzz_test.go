package grpc

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// FuzzPieces checks that each span of a message is in a piece of its own trace, or that there is an
// error.
func FuzzPieces(f *testing.F) {
	both := trace(1, "a", 5)
	both.ResourceSpans = append(both.ResourceSpans, trace(2, "b", 6).ResourceSpans...)
	for _, m := range []proto.Message{trace(1, "a", 5), both} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		got := 0
		err := pieces(t.Context(), message, "", func(id otlpdata.TraceID, b *otlpdata.Batch) error {
			got += b.Len()
			return tracestore.WalkSpans(b, func(s tracestore.Span) error {
				if s.TraceID != id {
					t.Errorf("span of trace %s is in a piece of trace %s", s.TraceID, id)
				}
				return nil
			})
		})
		td, decoded := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(message)
		if err != nil {
			return
		}
		if decoded != nil || got != td.SpanCount() {
			t.Errorf("%d spans, decoding error %v", got, decoded)
		}
	})
}
