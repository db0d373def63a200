package storequery

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestFacetText: texts are cut between characters.
func TestFacetText(t *testing.T) {
	for _, c := range []struct {
		text string
		want int // bytes
	}{
		{"", 0}, {strings.Repeat("a", 256), 256}, {strings.Repeat("a", 257), 256},
		{strings.Repeat("ü", 128), 256}, {strings.Repeat("ü", 200), 256}, {"a" + strings.Repeat("ü", 200), 255},
		{"ab" + strings.Repeat("😀", 100), 254}, {"abc" + strings.Repeat("😀", 100), 255}, {strings.Repeat("\xbf", 300), 256},
	} {
		got := FacetText(c.text)
		if len(got) != c.want || !strings.HasPrefix(c.text, got) || utf8.ValidString(c.text) && !utf8.ValidString(got) {
			t.Errorf("%.8q of %d bytes was cut to %d, want %d", c.text, len(c.text), len(got), c.want)
		}
	}
}

func TestFacetScore(t *testing.T) {
	for _, c := range []struct {
		count, selected, all, allSelected uint64
		want                              float64
	}{
		{5, 5, 10, 5, 1}, {5, 0, 10, 5, -1}, {10, 5, 10, 5, 0}, {3, 2, 10, 2, 1 - 1.0/8}, {3, 0, 10, 0, 0}, {3, 3, 10, 10, 0}, {0, 0, 0, 0, 0},
	} {
		if got := FacetScore(c.count, c.selected, c.all, c.allSelected); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// shopSpans is a request of n spans, whose keys and values are easily counted.
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

// TestAggregateSpans compares a small answer, in full, with what one counts by hand.
func TestAggregateSpans(t *testing.T) {
	b := shopSpans(8)
	q := tracestore.Query{From: time.Unix(0, 1001), To: time.Unix(0, 1007), Where: tracestore.Cond{Field: tracestore.Field{Place: tracestore.Service}, Value: tracestore.Text("shop")}}
	selection := &tracestore.Selection{From: time.Unix(0, 1004), Where: tracestore.Cond{Field: tracestore.Field{Place: tracestore.SpanAttribute, Key: "parity"}, Value: tracestore.Number(0)}}
	got, err := AggregateSpans(q, tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: 4}, Facets: tracestore.FacetQuery{Values: 1, Selection: selection}}, b, b)
	if err != nil {
		t.Fatal(err)
	}
	cells := []tracestore.HeatCell{{Start: 1000, Bucket: 8, Count: 1, Errors: 0}, {Start: 1000, Bucket: 18, Count: 1, Errors: 0}, {Start: 1000, Bucket: 26, Count: 1, Errors: 0}, {Start: 1004, Bucket: 32, Count: 1, Errors: 1}, {Start: 1004, Bucket: 37, Count: 1, Errors: 0}, {Start: 1004, Bucket: 41, Count: 1, Errors: 0}, {Start: 1004, Bucket: 45, Count: 1, Errors: 0}}
	if h := got.Heatmap; h.Step != 4 || h.Share != 1 || !slices.Equal(h.Cells, cells) {
		t.Errorf("heatmap %+v", *h)
	}
	facets := &tracestore.Facets{Spans: 7, Selected: 2, Share: 1, Facets: []tracestore.Facet{
		{Field: tracestore.Field{Place: tracestore.SpanAttribute, Key: "parity"}, Spans: 7, Selected: 2, Values: []tracestore.FacetValue{{Text: "0", Count: 3, Selected: 2, Score: 0.8}}, Distinct: 2, Other: 0, Score: 0.8},
		{Field: tracestore.Field{Place: tracestore.Status, Key: ""}, Spans: 7, Selected: 2, Values: []tracestore.FacetValue{{Text: "error", Count: 1, Selected: 1, Score: 0.5}}, Distinct: 2, Other: 0, Score: 0.5},
		{Field: tracestore.Field{Place: tracestore.SpanAttribute, Key: "failure"}, Spans: 1, Selected: 1, Values: []tracestore.FacetValue{{Text: "of 4", Count: 1, Selected: 1, Score: 0.5}}, Distinct: 1, Other: 0, Score: 0.5},
		{Field: tracestore.Field{Place: tracestore.ResourceAttribute, Key: "service.name"}, Spans: 7, Selected: 2, Values: []tracestore.FacetValue{{Text: "shop", Count: 7, Selected: 2, Score: 0}}, Distinct: 1, Other: 0, Score: 0},
		{Field: tracestore.Field{Place: tracestore.Service, Key: ""}, Spans: 7, Selected: 2, Values: []tracestore.FacetValue{{Text: "shop", Count: 7, Selected: 2, Score: 0}}, Distinct: 1, Other: 0, Score: 0},
		{Field: tracestore.Field{Place: tracestore.Name, Key: ""}, Spans: 7, Selected: 2, Values: []tracestore.FacetValue{{Text: "buy", Count: 7, Selected: 2, Score: 0}}, Distinct: 1, Other: 0, Score: 0},
		{Field: tracestore.Field{Place: tracestore.Kind, Key: ""}, Spans: 7, Selected: 2, Values: []tracestore.FacetValue{{Text: "", Count: 7, Selected: 2, Score: 0}}, Distinct: 1, Other: 0, Score: 0},
	}}
	if g, w := fmt.Sprintf("%+v", *got.Facets), fmt.Sprintf("%+v", *facets); g != w {
		t.Errorf("facets\n got %s\nwant %s", g, w)
	}
	if got.Spans != 7 || got.Errors != 1 || got.Scanned != 8 || got.Share != 1 || !got.Complete || len(got.Exemplars) > 0 {
		t.Errorf("%+v", got)
	}
}

// TestFacetCounterBounds: what is counted takes no more than it may, whatever comes, and what is left out is counted as that.
func TestFacetCounterBounds(t *testing.T) {
	c := NewFacetCounter(tracestore.FacetQuery{Values: 3})
	const long = 1 << 20
	counted := 0
	for i := range MaxFacetMemory/long + 10 {
		if c.Field(tracestore.Field{Place: tracestore.SpanAttribute, Key: strings.Repeat("k", long) + fmt.Sprint(i)}) != nil {
			counted++
		}
	}
	if c.memory > MaxFacetMemory || counted < MaxFacetMemory/long-1 || counted > MaxFacetMemory/long {
		t.Errorf("%d long keys take %d bytes", counted, c.memory)
	}
	c = NewFacetCounter(tracestore.FacetQuery{Values: 3})
	for i := range MaxFacetKeys + 5 {
		if f := c.Field(tracestore.Field{Place: tracestore.ResourceAttribute, Key: fmt.Sprint(i)}); f != nil {
			f.AddSpans(uint64(i), 0)
		}
	}
	if c.Field(tracestore.Field{Place: tracestore.ResourceAttribute, Key: "1"}) == nil || c.Field(tracestore.Field{Place: tracestore.ScopeAttribute, Key: "1"}) != nil || c.Field(tracestore.Field{Place: tracestore.Duration}) != nil {
		t.Error("fields are counted that should not be, or the other way round")
	}
	if a := c.Answer(0.5); len(a.Facets) != tracestore.MaxFacets || a.Omitted != MaxFacetKeys-1-tracestore.MaxFacets || a.Facets[0].Spans != MaxFacetKeys-1 || a.Share != 0.5 {
		t.Errorf("%d fields, %d omitted, the first of %d spans", len(a.Facets), a.Omitted, a.Facets[0].Spans)
	}
	c = NewFacetCounter(tracestore.FacetQuery{Values: 3, Fields: []tracestore.Field{{Place: tracestore.SpanAttribute, Key: "k"}}})
	f := c.Field(tracestore.Field{Place: tracestore.SpanAttribute, Key: "k"})
	for i := range MaxFacetDistinct + 7 {
		f.AddValue(fmt.Sprint(i), 2, 0)
	}
	f.AddValue("123", 1, 0)
	a := c.Answer(1).Facets[0]
	want := []tracestore.FacetValue{{Text: "123", Count: 3, Selected: 0, Score: 0}, {Text: "0", Count: 2, Selected: 0, Score: 0}, {Text: "1", Count: 2, Selected: 0, Score: 0}}
	if a.Distinct != MaxFacetDistinct || a.Other != 14 || !slices.Equal(a.Values, want) {
		t.Errorf("%d values, %d others, %+v", a.Distinct, a.Other, a.Values)
	}
}

// TestExemplars: as many as are asked for, spread over starts and durations, the same in whatever order spans come.
func TestExemplars(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 5, 300, 20_000} {
		var all []tracestore.Exemplar
		for i := range n {
			e := tracestore.Exemplar{TraceID: otlpdata.TraceID{byte(i), byte(i >> 8)}, Start: rnd.Uint64N(1e12), Duration: 1000 + rnd.Uint64N(100), Name: "usual"}
			if i%(1+n/20) == 0 {
				e.Duration, e.Name = 1e9*(1+rnd.Uint64N(10)), "slow"
			}
			all = append(all, e)
		}
		for _, want := range []int{1, 10, tracestore.MaxExemplars} {
			var before []tracestore.Exemplar
			for range 2 {
				p := NewExemplarPicker(want)
				for _, e := range all {
					if p.Wants(e.Start, e.Duration, e.TraceID, e.SpanID) {
						p.Offer(e)
					}
				}
				got := p.Answer()
				if len(got) != min(n, want) || len(p.cells) > p.most {
					t.Fatalf("%d of %d spans, want %d; %d cells", len(got), n, want, len(p.cells))
				}
				if before != nil && !slices.Equal(got, before) {
					t.Errorf("%d of %d spans are others when they come in another order", len(got), n)
				}
				before = got
				rnd.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
			}
			slow, first, last := 0, before[len(before)-1].Start, before[0].Start
			for _, e := range before {
				if e.Name == "slow" {
					slow++
				}
			}
			if n == 20_000 && (want == tracestore.MaxExemplars && slow < 15 || want >= 10 && last-first < 5e11) {
				t.Errorf("%d of 20 slow spans, starts from %d to %d", slow, first, last)
			}
		}
	}
}

// TestExemplarStretches: stretches are the shortest ones of which there are few enough cells, in whatever order spans came.
func TestExemplarStretches(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{100, 1000, 1500, 4000, 30_000} {
		var all []tracestore.Exemplar
		for i := range n {
			e := tracestore.Exemplar{TraceID: otlpdata.TraceID{byte(i), byte(i >> 8)}, Start: rnd.Uint64() >> rnd.IntN(64), Duration: 1 + rnd.Uint64N(100)}
			all = append(all, e)
		}
		p := NewExemplarPicker(1)
		for _, e := range all {
			p.Offer(e)
		}
		p.Answer()
		want := 0
		for ; ; want++ {
			cells := make(map[exemplarCell]bool)
			for _, e := range all {
				cells[exemplarCell{tracestore.BucketOf(e.Duration), e.Start >> want}] = true
			}
			if len(cells) <= p.most {
				break
			}
		}
		if p.shift != want {
			t.Errorf("%d spans: stretches of 2^%d ns, want 2^%d", n, p.shift, want)
		}
	}
}

// TestExemplarsOfLongNames: they are cut.
func TestExemplarsOfLongNames(t *testing.T) {
	p := NewExemplarPicker(1)
	p.Offer(tracestore.Exemplar{Service: strings.Repeat("s", 300), Name: strings.Repeat("ü", 300)})
	if e := p.Answer()[0]; len(e.Service) != MaxFacetText || e.Name != strings.Repeat("ü", MaxFacetText/2) {
		t.Errorf("%d bytes of the service, %d of the name", len(e.Service), len(e.Name))
	}
}

// TestCommonAttributes: what spans have in common counts as if it was counted for each of them.
func TestCommonAttributes(t *testing.T) {
	kvs := func(texts ...string) (out []otlpdata.KeyValue) {
		for i := 0; i < len(texts); i += 2 {
			out = append(out, otlpdata.KeyValue{Key: texts[i], Value: otlpdata.StringValue(texts[i+1])})
		}
		return out
	}
	long := strings.Repeat("x", 300)
	once, each := NewFacetCounter(tracestore.FacetQuery{Values: 9}), NewFacetCounter(tracestore.FacetQuery{Values: 9})
	for i, list := range [][]otlpdata.KeyValue{
		kvs("k", "a", "k", "a", "k", "b", "l", long, "l", long+"y"), kvs("k", "a"), nil, kvs("k", "b", "m", ""),
	} {
		once.AddTotal(5, uint64(i))
		once.AddAttributes(tracestore.ResourceAttribute, list, 5, uint64(i))
		r := &otlpdata.Resource{Attributes: list, Service: "s"}
		for n := range 5 {
			each.AddSpan(tracestore.Span{Resource: r, Scope: &otlpdata.Scope{}, Span: &otlpdata.Span{}}, n < i)
		}
	}
	got, want := once.Answer(1), each.Answer(1)
	want.Facets = slices.DeleteFunc(want.Facets, func(f tracestore.Facet) bool { return f.Field.Place != tracestore.ResourceAttribute })
	if !reflect.DeepEqual(got, want) || len(got.Facets) != 3 {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

func TestAggregateSpansRefuses(t *testing.T) {
	if _, err := AggregateSpans(tracestore.Query{}, tracestore.Aggregation{Exemplars: -1}, shopSpans(1)); err == nil {
		t.Error("no error")
	}
}

func BenchmarkAggregateCounter(b *testing.B) {
	batch := shopSpans(1000)
	q := tracestore.Query{From: time.Unix(0, 1000), To: time.Unix(0, 2000)}
	c, err := NewAggregateCounter(q, tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: 10}, Facets: tracestore.FacetQuery{Values: 10}, Exemplars: 100})
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
