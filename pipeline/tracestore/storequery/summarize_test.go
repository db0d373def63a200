package storequery

import (
	"math"
	"reflect"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// summarySpan describes a span of trace 1.
type summarySpan struct {
	id, parent byte
	service    string
	name       string
	start, end uint64
	failed     bool
}

// spanBatch returns a batch of the spans.
func spanBatch(tb testing.TB, list ...summarySpan) *otlpdata.Batch {
	tb.Helper()
	var parts []*otlpdata.Batch
	for _, s := range list {
		parts = append(parts, batchOf(tb, func(rs ptrace.ResourceSpans, _ ptrace.ScopeSpans, out ptrace.Span) {
			rs.Resource().Attributes().PutStr("service.name", s.service)
			out.SetTraceID([16]byte{1})
			out.SetSpanID([8]byte{s.id})
			out.SetParentSpanID([8]byte{s.parent})
			out.SetName(s.name)
			out.SetStartTimestamp(pcommon.Timestamp(s.start))
			out.SetEndTimestamp(pcommon.Timestamp(s.end))
			if s.failed {
				out.Status().SetCode(ptrace.StatusCodeError)
			}
		}))
	}
	b, err := otlpdata.Concat(parts...)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestSummarize(t *testing.T) {
	id := otlpdata.TraceID{1}
	f := func(want tracestore.Summary, list ...summarySpan) {
		t.Helper()
		want.ID = id
		got, err := Summarize(id, spanBatch(t, list...))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("\n got %+v\nwant %+v", got, want)
		}
	}
	one := []tracestore.ServiceSummary{{Name: "a", Spans: 1}}
	f(tracestore.Summary{RootService: "a", RootName: "r", Root: otlpdata.SpanID{1}, Start: 10, End: 20, Spans: 1, Services: one},
		summarySpan{1, 0, "a", "r", 10, 20, false})

	// The root span is the earliest span without a parent, not the earliest span.
	f(tracestore.Summary{RootService: "b", RootName: "root", Root: otlpdata.SpanID{3}, Start: 5, End: 90, Spans: 4, Errors: 2, Orphans: 1,
		Services: []tracestore.ServiceSummary{{Name: "a", Spans: 2, Errors: 1}, {Name: "b", Spans: 2, Errors: 1}}},
		summarySpan{1, 9, "a", "orphan", 5, 90, true}, summarySpan{2, 0, "a", "later root", 12, 13, false},
		summarySpan{3, 0, "b", "root", 10, 20, false}, summarySpan{4, 3, "b", "child", 11, 12, true})

	// Spans without a start time set neither bound, and come last.
	f(tracestore.Summary{RootService: "b", RootName: "root", Root: otlpdata.SpanID{3}, Start: 10, End: 20, Spans: 4,
		Services: []tracestore.ServiceSummary{{Name: "a", Spans: 3}, {Name: "b", Spans: 1}}},
		summarySpan{1, 0, "a", "no start", 0, 5, false}, summarySpan{2, 0, "a", "only an end", 0, 1000, false},
		summarySpan{3, 0, "b", "root", 10, 20, false}, summarySpan{4, 3, "a", "child", 0, 0, false})
	f(tracestore.Summary{RootService: "a", RootName: "no start", Root: otlpdata.SpanID{1}, End: 9, Spans: 2,
		Services: []tracestore.ServiceSummary{{Name: "a", Spans: 2}}},
		summarySpan{1, 0, "a", "no start", 0, 5, false}, summarySpan{2, 1, "a", "child", 0, 9, false})

	// Without one it is the earliest orphan, and without that the earliest span. Spans with equal
	// starts are ordered by span id.
	two := []tracestore.ServiceSummary{{Name: "a", Spans: 2}}
	f(tracestore.Summary{RootService: "a", RootName: "second", Root: otlpdata.SpanID{2}, Start: 5, End: 8, Spans: 2, Orphans: 2,
		Services: two},
		summarySpan{3, 9, "a", "first", 5, 7, false}, summarySpan{2, 9, "a", "second", 5, 8, false})
	f(tracestore.Summary{RootService: "a", RootName: "y", Root: otlpdata.SpanID{2}, Start: 4, End: 8, Spans: 2, Services: two},
		summarySpan{1, 2, "a", "x", 5, 7, false}, summarySpan{2, 1, "a", "y", 4, 8, false})

	// Names and ends are corrected; the end does not overflow.
	f(tracestore.Summary{RootService: otlpdata.EmptyServiceName, RootName: otlpdata.EmptySpanName, Root: otlpdata.SpanID{1},
		Start: 10, End: 11, Spans: 1, Services: []tracestore.ServiceSummary{{Name: otlpdata.EmptyServiceName, Spans: 1}}},
		summarySpan{1, 0, "", "", 10, 3, false})
	f(tracestore.Summary{RootService: "a", RootName: "r", Root: otlpdata.SpanID{1}, Start: math.MaxUint64, End: math.MaxUint64, Spans: 1,
		Services: one},
		summarySpan{1, 0, "a", "r", math.MaxUint64, 0, false})

	// Duplicates count once, the halves of a shared span twice.
	f(tracestore.Summary{RootService: "a", RootName: "r", Root: otlpdata.SpanID{1}, Start: 1, End: 2, Spans: 2,
		Services: []tracestore.ServiceSummary{{Name: "a", Spans: 1}, {Name: "b", Spans: 1}}},
		summarySpan{1, 0, "a", "r", 1, 2, false}, summarySpan{1, 0, "a", "r", 1, 2, false}, summarySpan{1, 0, "b", "r", 1, 2, false})
}

func TestSummarizeOtherTraces(t *testing.T) {
	got, err := Summarize(otlpdata.TraceID{2}, spanBatch(t, summarySpan{1, 0, "a", "r", 1, 2, false}))
	if want := (tracestore.Summary{ID: otlpdata.TraceID{2}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, error %v, want %+v", got, err, want)
	}
}

func TestDedup(t *testing.T) {
	changes := []func(rs ptrace.ResourceSpans, ss ptrace.ScopeSpans, s ptrace.Span){
		func(ptrace.ResourceSpans, ptrace.ScopeSpans, ptrace.Span) {},
		func(rs ptrace.ResourceSpans, _ ptrace.ScopeSpans, _ ptrace.Span) { rs.SetSchemaUrl("x") },
		func(_ ptrace.ResourceSpans, ss ptrace.ScopeSpans, _ ptrace.Span) { ss.SetSchemaUrl("x") },
		func(rs ptrace.ResourceSpans, _ ptrace.ScopeSpans, _ ptrace.Span) {
			rs.Resource().Attributes().PutStr("x", "")
		},
		func(_ ptrace.ResourceSpans, ss ptrace.ScopeSpans, _ ptrace.Span) { ss.Scope().SetName("x") },
		func(_ ptrace.ResourceSpans, _ ptrace.ScopeSpans, s ptrace.Span) { s.SetTraceID([16]byte{1}) },
		func(_ ptrace.ResourceSpans, _ ptrace.ScopeSpans, s ptrace.Span) { s.SetSpanID([8]byte{1}) },
		func(_ ptrace.ResourceSpans, _ ptrace.ScopeSpans, s ptrace.Span) { s.Attributes().PutStr("x", "") },
	}
	d := NewDedup()
	for round := range 3 {
		for i, change := range changes {
			err := tracestore.WalkSpans(batchOf(t, change), func(s tracestore.Span) error {
				if first := d.First(s); first != (round == 0) {
					t.Errorf("round %d, span %d: first is %t", round, i, first)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
