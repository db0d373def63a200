package uijson_test

import (
	"encoding/json"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/internal/translate/uijson"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// FuzzAppendTrace checks that every valid request becomes valid JSON.
func FuzzAppendTrace(f *testing.F) {
	seed := func(td ptrace.Traces) {
		b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, false, 0)
		f.Add(b, true, 1)
	}
	seed(everything())
	td, s := one()
	s.SetName("\xff")
	s.Attributes().PutStr("\xff", "\xff")
	seed(td)
	f.Fuzz(func(t *testing.T, request []byte, raw bool, limit int) {
		b, err := otlpdata.FromOTLP(request, otlpdata.Meta{}, otlpdata.Limits{})
		if err != nil {
			return // not a valid request
		}
		opt := uijson.Options{Options: adjust.Options{Raw: raw, MaxSpans: limit}}
		out, err := uijson.AppendTrace([]byte("["), opt, b)
		if err != nil {
			t.Fatalf("cannot show a valid request: %v", err)
		}
		if out = append(out, ']'); !json.Valid(out) {
			t.Fatalf("not JSON: %s", out)
		}
		var shown []trace
		if err := json.Unmarshal(out, &shown); err != nil {
			t.Fatal(err)
		}
		if n := len(shown[0].Spans); n > b.Len() || (limit > 0 && n > limit) || (raw && limit <= 0 && n != b.Len()) {
			t.Fatalf("%d of %d spans shown, limit %d", n, b.Len(), limit)
		}
	})
}
