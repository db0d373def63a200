package find

import (
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestOfTraceSameHash checks that a search returns both of two traces whose hashes are equal. Among
// a million traces there are two with the same hash.
func TestOfTraceSameHash(t *testing.T) {
	first, second := otlpdata.TraceID{13: 0x01, 14: 0xc0, 15: 0x16}, otlpdata.TraceID{13: 0x13, 14: 0x06, 15: 0xdf}
	if source.TraceHash("", first) != source.TraceHash("", second) {
		t.Fatal("the traces have different hashes")
	}
	one := func(id otlpdata.TraceID, service string, start uint64, parent byte) *otlpdata.Batch {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", service)
		sp := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		sp.SetTraceID(pcommon.TraceID(id))
		sp.SetSpanID(pcommon.SpanID{7: 1})
		sp.SetParentSpanID(pcommon.SpanID{7: parent})
		sp.SetStartTimestamp(pcommon.Timestamp(start))
		sp.SetEndTimestamp(pcommon.Timestamp(start + 1e6))
		return scantest.Encode(t, td)
	}
	orphan, rooted := one(first, "a", scantest.Start, 9), one(second, "b", scantest.Start+600e9, 0)
	for name, fill := range map[string]func(*scantest.Real){
		"memtable": func(s *scantest.Real) {
			scantest.Must(s.Consume(t.Context(), orphan))
			scantest.Must(s.Consume(t.Context(), rooted))
		},
		"segment":      func(s *scantest.Real) { s.SegmentOf(t, orphan, rooted) },
		"two segments": func(s *scantest.Real) { s.SegmentOf(t, orphan); s.SegmentOf(t, rooted) },
	} {
		s := scantest.NewReal(t, 1)
		fill(s)
		f := &store{nil, New(scan.NewStore(s.View, scan.Options{}))}
		for _, c := range []struct {
			of   tracestore.Expr
			want []otlpdata.TraceID
		}{
			{scantest.Property(tracestore.TraceDuration, tracestore.Lt, tracestore.Number(60e9)), []otlpdata.TraceID{second, first}},
			{scantest.Property(tracestore.TraceDuration, tracestore.Eq, tracestore.Number(1e6)), []otlpdata.TraceID{second, first}},
			{scantest.Property(tracestore.RootService, tracestore.Eq, tracestore.Text("a")), []otlpdata.TraceID{first}},
			{scantest.Property(tracestore.RootService, tracestore.Eq, tracestore.Text("b")), []otlpdata.TraceID{second}},
		} {
			results, outcome := f.ask(t, tracestore.Query{OfTrace: c.of}, tracestore.WantSummaries)
			var got []otlpdata.TraceID
			for _, r := range results {
				if tracestore.Match(c.of, tracestore.Span{Trace: r.Summary}) {
					got = append(got, r.ID)
				}
			}
			if !slices.Equal(got, c.want) || !outcome.Complete() {
				t.Errorf("%s: %+v: got %x, want %x; outcome %+v", name, c.of, got, c.want, outcome)
			}
		}
	}
}
