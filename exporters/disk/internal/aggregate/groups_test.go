package aggregate

import (
	"fmt"
	"reflect"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// TestManyParts checks groups with enough parts for a groupSource to add its counts to the totals
// before the end.
func TestManyParts(t *testing.T) {
	const spans, names = 10_000, 30
	s := newRealStore(t, 1, scan.Options{Decoders: 1})
	td := ptrace.NewTraces()
	list := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range spans {
		span := list.AppendEmpty()
		span.SetTraceID([16]byte{byte(i), byte(i >> 8), 1})
		span.SetName(fmt.Sprint("op ", i%names))
		span.SetStartTimestamp(pcommon.Timestamp(1 + i))
		span.SetEndTimestamp(pcommon.Timestamp(1 + i + i*i))
	}
	s.SegmentOf(t, otlpdata.FromTraces(td, otlpdata.Meta{}))
	q := tracestore.Query{From: scantest.At(1), To: scantest.At(spans)}
	for _, measure := range []tracestore.Measure{tracestore.MeasureNone, tracestore.MeasureTotals, tracestore.MeasureDistribution} {
		g := tracestore.GroupQuery{Limit: names, By: []tracestore.Field{{Place: tracestore.Name}}, Step: 1,
			Measure: measure, Of: tracestore.Field{Place: tracestore.Duration}}
		want := storequery.NewGroupCounter(q, g)
		for i := range uint64(spans) {
			span := otlpdata.Span{Name: fmt.Sprint("op ", i%names), Start: 1 + i, End: 1 + i + i*i}
			want.AddSpan(tracestore.Span{Span: &span, Resource: &otlpdata.Resource{}, Scope: &otlpdata.Scope{}})
		}
		got, err := s.Aggregate(t.Context(), q, tracestore.Aggregation{Groups: g})
		scantest.Must(err)
		if want := want.Answer(1); !reflect.DeepEqual(got.Groups, want) {
			t.Errorf("measure %d: %d groups, %d others; want %d, %d", measure, got.Groups.Distinct, got.Groups.Other, want.Distinct, want.Other)
		}
	}
}
