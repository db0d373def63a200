package disk

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// TestTraceConditionsAfterDeletion checks that searches by duration or root see what a deletion has
// left of traces: in memtables, in segments, in traces with parts in both, and after a merge.
func TestTraceConditionsAfterDeletion(t *testing.T) {
	e := mergeSetup(vfstest.NewMem()).open(t)
	const traces = 12
	day := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	send := func(trace int, service string, parent byte, start time.Time) {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", service)
		sp := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		sp.SetTraceID(pcommon.TraceID{15: byte(trace + 1)})
		sp.SetSpanID(pcommon.SpanID{parent + 1})
		sp.SetParentSpanID(pcommon.SpanID{parent})
		sp.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
		sp.SetEndTimestamp(sp.StartTimestamp() + 1000)
		if err := e.Consume(t.Context(), batchOf(td)); err != nil {
			t.Fatal(err)
		}
	}
	count := func(where tracestore.Expr) (n int) {
		res, err := storequery.Find(t.Context(), e, tracestore.Query{}, storequery.Select{Where: where}, tracestore.WantIDs)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range res.All {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	check := func(when string, short, front int) {
		t.Helper()
		than := func(op tracestore.Op) tracestore.Expr {
			return tracestore.Cond{Field: tracestore.Field{Place: tracestore.TraceDuration}, Op: op, Value: tracestore.Number(60e9)}
		}
		rootIs := func(service string) tracestore.Expr {
			return tracestore.Cond{Field: tracestore.Field{Place: tracestore.RootService}, Value: tracestore.Text(service)}
		}
		got := [4]int{count(than(tracestore.Lt)), count(than(tracestore.Gt)), count(rootIs("front")), count(rootIs("back"))}
		if want := [4]int{short, traces - short, front, traces - front}; got != want {
			t.Errorf("%s: %v traces are short, long, begin in front, in back; want %v", when, got, want)
		}
	}
	for i := range traces {
		send(i, "front", 0, day)
		if i%3 == 0 {
			flushStore(t, e)
		}
		send(i, "back", 1, day.Add(time.Hour))
	}
	check("sent", 0, traces)
	if _, err := e.Delete(t.Context(), "", tracestore.Deletion{Service: "front"}); err != nil {
		t.Fatal(err)
	}
	check("deleted", traces, 0)
	flushStore(t, e)
	check("flushed", traces, 0)
	if mergeAll(t, e) == 0 {
		t.Error("no segments were merged")
	}
	check("merged", traces, 0)
}
