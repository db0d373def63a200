package memory

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestStoreStatus(t *testing.T) {
	e, _ := open(t, 0)
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	e.now = func() time.Time { return now }
	if s, err := e.StoreStatus(t.Context()); err != nil || s.Spans != 0 || s.Parts == nil {
		t.Errorf("empty store: %+v %v", s, err)
	}
	for i := range 4 {
		td := ptrace.NewTraces()
		span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetTraceID([16]byte{15: byte(i + 1)})
		span.SetSpanID([8]byte{7: 1})
		if err := e.Consume(t.Context(), otlpdata.FromTraces(td, otlpdata.Meta{})); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Duration(i) * 10 * time.Minute)
	}
	s, err := e.StoreStatus(t.Context())
	if err != nil || s.Spans != 4 || len(s.Gaps) != 2 || s.Gaps[0].To.Sub(s.Gaps[0].From) != 20*time.Minute || s.MaxBytes == 0 {
		t.Errorf("%+v %v", s, err)
	}
}
