package disk

import (
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// callOf returns one span of a trace with one call: the caller (1) or the callee (2).
func callOf(t *testing.T, part byte) *otlpdata.Batch {
	t.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", string([]byte{'a' + part - 1}))
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetTraceID(pcommon.TraceID{15: 1})
	span.SetSpanID(pcommon.SpanID{7: part})
	if part > 1 {
		span.SetParentSpanID(pcommon.SpanID{7: part - 1})
	}
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(shuffledDay))
	return batchOf(td)
}

// TestWarm: some time after a flush or a start, a query for calls between segments reads no file.
func TestWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := &vfstest.Rule{Op: vfstest.OpRead}
		count := 0
		reads.Hook = func() { count++ }
		s := newSetup(vfstest.Inject(vfstest.NewMem(), reads))
		e := s.start(t)
		for part := byte(1); part <= 2; part++ {
			if err := e.Consume(t.Context(), callOf(t, part)); err != nil {
				t.Fatal(err)
			}
			flushStore(t, e)
		}
		query := func(when string) {
			t.Helper()
			time.Sleep(2*tick + quietTime)
			synctest.Wait()
			count = 0
			g, err := e.Dependencies(t.Context(), "", time.Time{}, time.Time{})
			if err != nil || len(g.Edges) != 1 || g.Edges[0].Parent != "a" || g.Edges[0].Child != "b" {
				t.Errorf("%s: %+v, %v", when, g, err)
			}
			if count != 0 {
				t.Errorf("%s: %d reads", when, count)
			}
		}
		query("after flushes")
		stopStore(t, e)
		e = s.start(t)
		query("after a start")
		stopStore(t, e)
	})
}

// TestWarmPauses: under load, warming pauses for most of the time. Stop does not wait for a pause.
func TestWarmPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newSetup(vfstest.NewMem()).start(t)
		began := time.Now()
		if err := (&warmer{merger: e.merger}).pace(time.Second); err != nil || time.Since(began) != 0 {
			t.Errorf("idle: %v after %s, want no pause", err, time.Since(began))
		}
		newNumbers().send(t, e, 1)
		if err := (&warmer{merger: e.merger}).pace(time.Second); err != nil || time.Since(began) != 99*time.Second {
			t.Errorf("under load: %v after %s, want a pause of 99s", err, time.Since(began))
		}
		ended := make(chan error)
		go func() { ended <- (&warmer{merger: e.merger}).pace(time.Hour) }()
		synctest.Wait()
		stopStore(t, e)
		if err := <-ended; err != errStopped {
			t.Error(err)
		}
	})
}
