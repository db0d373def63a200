package disk

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// The state of a store has its segments and memtable, times without spans, and what expires next.
func TestStoreStatus(t *testing.T) {
	s := newSetup(vfstest.NewMem())
	s.config.Retention.Time = pipeline.Duration(24 * time.Hour)
	e := s.open(t)
	if st, err := e.StoreStatus(t.Context()); err != nil || st.Spans != 0 || st.Parts == nil || !st.Oldest.IsZero() {
		t.Errorf("empty store: %+v %v", st, err)
	}
	store := func(id byte, n int) {
		td := ptrace.NewTraces()
		spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
		for i := range n {
			span := spans.AppendEmpty()
			span.SetTraceID([16]byte{15: id})
			span.SetSpanID([8]byte{7: byte(i + 1)})
		}
		if err := e.Consume(t.Context(), otlpdata.FromTraces(td, otlpdata.Meta{})); err != nil {
			t.Fatal(err)
		}
	}
	began := s.clock.now()
	store(1, 3)
	flushStore(t, e)
	s.clock.advance(5 * time.Hour)
	resumed := s.clock.now()
	store(2, 2)
	flushStore(t, e)
	s.clock.advance(18*time.Hour + 30*time.Minute)
	st, err := e.StoreStatus(t.Context())
	if err != nil || st.Spans != 5 || st.Segments != 2 || st.Quarantined != 0 || !st.Oldest.Equal(began) || st.Place == "" || st.Bytes == 0 {
		t.Fatalf("%+v %v", st, err)
	}
	if len(st.Gaps) != 2 || !st.Gaps[0].From.Equal(began) || !st.Gaps[0].To.Equal(resumed) || !st.Gaps[1].From.Equal(resumed) {
		t.Errorf("gaps %+v", st.Gaps)
	}
	if len(st.Expiring) != 2 || st.Expiring[0].Spans != 3 || st.Expiring[1].Spans != 5 || st.Expiring[0].Bytes == 0 {
		t.Errorf("expiring %+v", st.Expiring)
	}
}
