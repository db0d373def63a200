package storequery

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func spanKey(key string) tracestore.Field {
	return tracestore.Field{Place: tracestore.SpanAttribute, Key: key}
}

func resourceKey(key string) tracestore.Field {
	return tracestore.Field{Place: tracestore.ResourceAttribute, Key: key}
}

// shopSpans returns a batch of n spans with predictable keys and values.
func shopSpans(n int) *otlpdata.Batch {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "shop")
	list := rs.ScopeSpans().AppendEmpty().Spans()
	for i := range n {
		s := list.AppendEmpty()
		s.SetTraceID(pcommon.TraceID{byte(i), byte(i >> 8), 1})
		s.SetSpanID(pcommon.SpanID{byte(i), byte(i >> 8), 1})
		s.SetName("buy")
		s.SetStartTimestamp(pcommon.Timestamp(1000 + i))
		s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(1+i*i))
		s.Attributes().PutInt("parity", int64(i%2))
		if i%4 == 0 {
			s.Status().SetCode(ptrace.StatusCodeError)
			s.Attributes().PutStr("failure", fmt.Sprint("of ", i))
		}
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{})
}

// TestAggregateSpans compares a small answer with counts made by hand.
func TestAggregateSpans(t *testing.T) {
	b := shopSpans(8)
	q := tracestore.Query{From: time.Unix(0, 1001), To: time.Unix(0, 1007), Where: equals(tracestore.Service, "shop")}
	even := tracestore.Cond{Field: spanKey("parity"), Value: tracestore.Number(0)}
	selection := &tracestore.Selection{From: time.Unix(0, 1004), Where: even}
	got, err := AggregateSpans(q, tracestore.Aggregation{
		Heatmap: tracestore.HeatmapQuery{Step: 4}, Facets: tracestore.FacetQuery{Values: 1, Selection: selection},
	}, b, b)
	if err != nil {
		t.Fatal(err)
	}
	cells := []tracestore.HeatCell{{Start: 1000, Bucket: 8, Count: 1}, {Start: 1000, Bucket: 18, Count: 1},
		{Start: 1000, Bucket: 26, Count: 1}, {Start: 1004, Bucket: 32, Count: 1, Errors: 1}, {Start: 1004, Bucket: 37, Count: 1},
		{Start: 1004, Bucket: 41, Count: 1}, {Start: 1004, Bucket: 45, Count: 1}}
	if h := got.Heatmap; h.Step != 4 || h.Share != 1 || !slices.Equal(h.Cells, cells) {
		t.Errorf("heatmap %+v", *h)
	}
	// facet returns the facet of a field with one returned value, which has the score of the field.
	facet := func(
		f tracestore.Field, spans, selected uint64, text string, count, selectedCount uint64, distinct int, score float64,
	) tracestore.Facet {
		value := tracestore.FacetValue{Text: text, Count: count, Selected: selectedCount, Score: score}
		return tracestore.Facet{
			Field: f, Spans: spans, Selected: selected, Values: []tracestore.FacetValue{value}, Distinct: distinct, Score: score,
		}
	}
	facets := &tracestore.Facets{Spans: 7, Selected: 2, Share: 1, Facets: []tracestore.Facet{
		facet(spanKey("parity"), 7, 2, "0", 3, 2, 2, 0.8),
		facet(tracestore.Field{Place: tracestore.Status}, 7, 2, "error", 1, 1, 2, 0.5),
		facet(spanKey("failure"), 1, 1, "of 4", 1, 1, 1, 0.5),
		facet(resourceKey("service.name"), 7, 2, "shop", 7, 2, 1, 0),
		facet(tracestore.Field{Place: tracestore.Service}, 7, 2, "shop", 7, 2, 1, 0),
		facet(tracestore.Field{Place: tracestore.Name}, 7, 2, "buy", 7, 2, 1, 0),
		facet(tracestore.Field{Place: tracestore.Kind}, 7, 2, "", 7, 2, 1, 0),
	}}
	if g, w := fmt.Sprintf("%+v", *got.Facets), fmt.Sprintf("%+v", *facets); g != w {
		t.Errorf("facets\n got %s\nwant %s", g, w)
	}
	if got.Spans != 7 || got.Errors != 1 || got.Scanned != 8 || got.Share != 1 || !got.Complete() || len(got.Exemplars) > 0 {
		t.Errorf("%+v", got)
	}
}

// TestAggregateSpansInvalid checks that an invalid aggregation is an error.
func TestAggregateSpansInvalid(t *testing.T) {
	if _, err := AggregateSpans(tracestore.Query{}, tracestore.Aggregation{Exemplars: -1}, shopSpans(1)); err == nil {
		t.Error("no error")
	}
}

func BenchmarkAggregateCounter(b *testing.B) {
	batch := shopSpans(1000)
	q := tracestore.Query{From: time.Unix(0, 1000), To: time.Unix(0, 2000)}
	c, err := NewAggregateCounter(q, tracestore.Aggregation{
		Heatmap: tracestore.HeatmapQuery{Step: 10}, Facets: tracestore.FacetQuery{Values: 10}, Exemplars: 100,
	})
	if err != nil {
		b.Fatal(err)
	}
	spans := 0
	b.ReportAllocs()
	for b.Loop() {
		if err := tracestore.WalkSpans(batch, func(s tracestore.Span) error {
			c.AddSpan(s)
			spans++
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(spans), "ns/span")
}

func TestRelativeErrorOfSpans(t *testing.T) {
	for _, c := range []struct {
		matching uint64
		scanned  int
		share    float64
		want     float64
	}{{5, 10, 1, 0}, {0, 10, 1, 0}, {0, 10, 0.5, 1}, {10, 10, 0.5, 0}, {1, 1000, 0.001, 0.999}, {100, 1000, 0.1, 0.09}} {
		if got := relativeError(c.matching, c.scanned, c.share); math.Abs(got-c.want) > 0.001 {
			t.Errorf("%d of %d, share %g: %g, want %g", c.matching, c.scanned, c.share, got, c.want)
		}
	}
}
