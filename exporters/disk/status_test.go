package disk

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
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

// The metrics of a store say how long spans have been kept, and what limits that.
func TestRetentionMetrics(t *testing.T) {
	s := newSetup(vfstest.NewMem())
	s.config.Retention.Time, s.config.Retention.Size = pipeline.Duration(24*time.Hour), 10<<20
	s.config.MinFree = 1 << 20
	e := s.open(t)
	check := func(age float64) {
		t.Helper()
		e.updateGauges()
		m := e.metrics
		for name, g := range map[string]struct {
			gauge prometheus.Gauge
			want  float64
		}{"oldest": {m.oldest, age}, "retention": {m.retention, 86400}, "size": {m.retentionBytes, 10 << 20}, "min_free": {m.minFree, 1 << 20}} {
			if got := testutil.ToFloat64(g.gauge); got != g.want {
				t.Errorf("%s: got %v, want %v", name, got, g.want)
			}
		}
	}
	check(0)
	storeOne(t, e, 1)
	s.clock.advance(time.Hour)
	check(3600)
	flushStore(t, e)
	storeOne(t, e, 2)
	s.clock.advance(time.Hour)
	check(7200)
}

// storeOne stores a trace of one span.
func storeOne(t *testing.T, e *exporter, id byte) {
	t.Helper()
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetTraceID([16]byte{15: id})
	span.SetSpanID([8]byte{7: 1})
	if err := e.Consume(t.Context(), otlpdata.FromTraces(td, otlpdata.Meta{})); err != nil {
		t.Fatal(err)
	}
}
