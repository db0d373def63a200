package aggregate

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
	"github.com/tracing-backend/tracing/test/bench"
)

// randomAggregation returns a random aggregation of the spans of a query.
func randomAggregation(w *scantest.Generator, q tracestore.Query) tracestore.Aggregation {
	a := tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 1 + w.IntN(30)}}
	if !q.From.IsZero() && !q.To.IsZero() {
		a.Heatmap.Step = time.Duration(1 + w.IntN(50))
	}
	if w.IntN(2) == 0 {
		a.Facets.Selection = &tracestore.Selection{Where: w.Expr(1), To: scantest.At(scantest.Start + w.Uint64N(scantest.TimeSpan))}
	}
	for range w.IntN(2) * w.IntN(5) {
		f := tracestore.Field{Place: tracestore.Place(w.IntN(int(tracestore.ParentID) + 1))}
		if f.Place <= tracestore.LinkAttribute {
			f.Key = w.Key()
		}
		if !slices.Contains(a.Facets.Fields, f) {
			a.Facets.Fields = append(a.Facets.Fields, f)
		}
	}
	return a
}

// expectAggregate returns the result by definition.
func expectAggregate(w *scantest.Generator, q tracestore.Query, a tracestore.Aggregation) tracestore.Aggregate {
	c, err := storequery.NewAggregateCounter(q, a)
	scantest.Must(err)
	seen := storequery.NewDedup()
	for _, s := range w.Spans {
		if seen.First(s) {
			c.AddSpan(s)
		}
	}
	return c.Answer(1)
}

// TestAggregateAgreesWithDefinition compares answers for one source, with imprecise hints and with
// duplicates, with the definition.
func TestAggregateAgreesWithDefinition(t *testing.T) {
	soak.SkipIfRaced(t)
	seed := soak.Seed(t)
	w := &scantest.Generator{Rand: rand.New(rand.NewPCG(seed, 9))}
	s := openStore(1, seed, scan.Options{})
	w.Send(t, s, 60)
	for range 150 {
		q := w.Query()
		a := randomAggregation(w, q)
		want := expectAggregate(w, q, a)
		got, err := s.Aggregate(t.Context(), q, a)
		want.Scanned = got.Scanned
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %+v: %v\n got %+v %+v\nwant %+v %+v", q, a, err, got, got.Facets, want, want.Facets)
		}
	}
	if n := s.Views.Load(); n != 0 {
		t.Errorf("%d views left", n)
	}
}

// TestAggregateInParts compares answers for parts that are counted at the same time with those for
// all blocks in turn.
func TestAggregateInParts(t *testing.T) {
	seed := soak.Seed(t)
	for _, requests := range []int{60, 3} {
		checkParts(t, requests, seed)
	}
}

func checkParts(t *testing.T, requests int, seed uint64) {
	t.Helper()
	w := &scantest.Generator{Rand: rand.New(rand.NewPCG(seed, 9))}
	s := openStore(5, seed, scan.Options{Decoders: 3})
	w.Send(t, s, requests)
	view, blocks := s.View(), 0
	for _, src := range view.Sources() {
		list, err := src.Blocks()
		scantest.Must(err)
		blocks += len(list)
	}
	view.Release()
	for range 50 {
		q := w.Query()
		a := randomAggregation(w, q)
		a.Groups = tracestore.GroupQuery{By: []tracestore.Field{{Place: tracestore.AnyAttribute, Key: w.Key()}}, Limit: 20}
		if blocks <= exemplarBlocks { // parts choose among more blocks on their own
			a.Exemplars = w.IntN(20)
		}
		want, err := s.Aggregate(t.Context(), q, a)
		scantest.Must(err)
		s.partRows = 1
		got, err := s.Aggregate(t.Context(), q, a)
		if s.partRows = minPartRows; err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %+v: %v\n got %+v %+v\nwant %+v %+v", q, a, err, got, got.Facets, want, want.Facets)
		}
	}
}

// checkHeatmaps compares heatmaps of whole minutes with the definition, and returns the numbers of
// examined spans.
func checkHeatmaps(t *testing.T, e *Aggregator, sent []*otlpdata.Batch) (scanned []int) {
	t.Helper()
	eq := func(p tracestore.Place, text string) tracestore.Expr {
		return scantest.Property(p, tracestore.Eq, tracestore.Text(text))
	}
	wheres := []tracestore.Expr{nil, eq(tracestore.Service, "service 2"), tracestore.Not{Expr: eq(tracestore.Kind, "server")},
		tracestore.Or{eq(tracestore.Status, "error"), tracestore.And{eq(tracestore.Service, "service 1"), eq(tracestore.Kind, "client")}},
		eq(tracestore.Status, "ok"), scantest.Property(tracestore.Duration, tracestore.Gt, tracestore.Number(300))}
	for i, w := range [][2]time.Duration{{-time.Hour, time.Hour}, {10 * time.Second, 20 * time.Second}, {time.Second, time.Hour},
		{0, 70 * time.Second}, {30 * time.Second, 30 * time.Second}, {30 * time.Second, 90*time.Second - 1}, {0, 2*time.Minute - 1}} {
		for j, where := range wheres {
			q := tracestore.Query{From: scantest.Day.Add(w[0]), To: scantest.Day.Add(w[1]), Where: where}
			a := tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: time.Duration(1+(i+j)%3) * time.Minute}}
			want, err := storequery.AggregateSpans(q, a, sent...)
			scantest.Must(err)
			got, err := e.Aggregate(t.Context(), q, a)
			if err != nil {
				t.Fatal(err)
			}
			scanned = append(scanned, got.Scanned)
			if got.Scanned = want.Scanned; !reflect.DeepEqual(got, want) {
				t.Errorf("%v, %+v: \n got %+v %+v\nwant %+v %+v", w, where, got, got.Heatmap, want, want.Heatmap)
			}
		}
	}
	return scanned
}

// TestHeatmapFromSeries checks that no rows are read for whole minutes, unless the query needs what
// series do not have.
func TestHeatmapFromSeries(t *testing.T) {
	var sent []*otlpdata.Batch
	for i := range uint64(5) {
		sent = append(sent, scantest.SharedIDs(i, 200))
	}
	sealed := newRealStore(t, 1, scan.Options{})
	sealed.SegmentOf(t, sent...)
	live := newRealStore(t, 1, scan.Options{})
	live.Tables = live.Tables[:1]
	live.Tables[0] = memtable.New(memtable.Options{BlockRows: 50})
	for _, b := range sent {
		_, err := live.Tables[0].Append(b, 0)
		scantest.Must(err)
	}
	for name, s := range map[string]realStore{"segment": sealed, "memtable": live} {
		scanned := checkHeatmaps(t, s.Aggregator, sent)
		if slices.Max(scanned[:4]) > 0 || slices.Min(scanned[4:6]) == 0 {
			t.Errorf("%s: examined %d spans for the first window; want none where series suffice, and some where they do not", name, scanned[:6])
		}
	}
	damage := 0
	damaged := newRealStore(t, 1, scan.Options{OnDamage: func(*source.DamageError) { damage++ }})
	bad := &source.DamageError{File: "file", Part: "part", Err: errors.New("rotten")}
	whole := sealed.Segments[0].(*segment.Segment)
	for _, src := range []source.Source{badSeries{Segment: whole, dropped: 1}, badSeries{Segment: whole, err: bad},
		struct{ source.Source }{whole}} {
		damaged.Segments = []source.Source{src}
		checkHeatmaps(t, damaged.Aggregator, sent)
	}
	if damage == 0 {
		t.Error("damage was not reported")
	}
}

// sampleStore stores spans of the data set in a memtable and two segments.
func sampleStore(t *testing.T) (realStore, []*otlpdata.Batch) {
	t.Helper()
	const spans, parts = 60_000, 3
	s := newRealStore(t, 1, scan.Options{})
	s.Tables = s.Tables[:1]
	s.Tables[0] = memtable.New(memtable.Options{})
	var sent []*otlpdata.Batch
	n := 0
	for r := range bench.New(7, scantest.Day).Requests(spans, 512) {
		b, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.Limits{})
		scantest.Must(err)
		_, err = s.Tables[0].Append(b, 0)
		scantest.Must(err)
		sent = append(sent, b)
		if n += r.Spans; len(s.Segments) < parts-1 && n > spans*(len(s.Segments)+1)/parts {
			s.Seal(0)
			s.Tables[0] = memtable.New(memtable.Options{})
		}
	}
	return s, sent
}

// TestAggregateWithinBudget checks that the budget is respected, the share is correct, and answers
// are repeatable.
func TestAggregateWithinBudget(t *testing.T) {
	soak.SkipIfRaced(t)
	s, sent := sampleStore(t)
	service := scantest.Property(tracestore.Service, tracestore.Eq, tracestore.Text(bench.New(7, scantest.Day).Services()[5]))
	rare := tracestore.And{service, scantest.Property(tracestore.Duration, tracestore.Gt, tracestore.Number(500e6))}
	for _, where := range []tracestore.Expr{nil, service, rare} {
		q := tracestore.Query{From: scantest.Day.Add(-time.Hour), To: scantest.Day.Add(time.Hour), Where: where}
		a := tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: 10 * time.Second}, Facets: tracestore.FacetQuery{Values: 5},
			Exemplars: 20}
		whole, err := storequery.AggregateSpans(q, a, sent...)
		scantest.Must(err)
		for _, q.Budget.Spans = range []int{10, 5_000, 20_000, 60_000} {
			got, err := s.Aggregate(t.Context(), q, a)
			scantest.Must(err)
			most := q.Budget.Spans + q.Budget.Spans/tolerance
			if got.Share <= 0 || got.Share > 1 || got.Scanned > most || got.Facets.Share != got.Heatmap.Share || !got.Complete() {
				t.Errorf("budget %d: %+v", q.Budget.Spans, got)
			}
			checkEstimate(t, q.Budget.Spans, got, whole)
			again, err := s.Aggregate(t.Context(), q, a)
			scantest.Must(err)
			if !reflect.DeepEqual(got, again) {
				t.Errorf("budget %d: second answer differs\n%+v\n%+v", q.Budget.Spans, got, again)
			}
		}
	}
}

// checkEstimate compares the estimate from a sample with the number of all spans. Blocks hold
// similar traces, so an estimate from few blocks can be wrong by several times, and the result must
// say so.
func checkEstimate(t *testing.T, budget int, got, whole tracestore.Aggregate) {
	t.Helper()
	all, estimate := float64(whole.Spans), float64(got.Spans)/got.Share
	if math.Abs(estimate-all) > 1+4*got.RelativeError*max(estimate, all) {
		t.Errorf("budget %d: estimated %.0f of %.0f spans from %d, share %f, relative error %f", budget, estimate, all, got.Spans,
			got.Share, got.RelativeError)
	}
}

// TestRelativeError checks the errors of estimates for rare and common services.
func TestRelativeError(t *testing.T) {
	soak.SkipIfRaced(t)
	s, sent := sampleStore(t)
	small := 0
	for i, name := range bench.New(7, scantest.Day).Services() {
		if i > 11 && i%4 > 0 { // the most frequent services, and some of the others
			continue
		}
		q := tracestore.Query{From: scantest.Day.Add(-time.Hour), To: scantest.Day.Add(time.Hour),
			Where: scantest.Property(tracestore.Service, tracestore.Eq, tracestore.Text(name))}
		whole, err := storequery.AggregateSpans(q, tracestore.Aggregation{}, sent...)
		scantest.Must(err)
		for _, q.Budget.Spans = range []int{5_000, 40_000} {
			got, err := s.Aggregate(t.Context(), q, tracestore.Aggregation{})
			scantest.Must(err)
			checkEstimate(t, q.Budget.Spans, got, whole)
			if got.Share < 1 && got.RelativeError < 0.35 {
				small++
			}
		}
	}
	if small < 8 {
		t.Errorf("only %d samples with a small error", small)
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		name   string
		spans  []int // of blocks of 100 rows
		share  float64
		lowest float64
		most   float64
	}{
		{"all blocks", []int{1, 100, 3}, 1, 0, 0},
		{"all rows", []int{100, 100}, 0.1, 0, 0},
		{"no spans", []int{0, 0, 0, 0, 0, 0, 0, 0, 0}, 0.5, 1, 1},
		{"one block", []int{7}, 0.01, 0.99, 1},
		{"two blocks alike", []int{7, 7}, 0.01, 0.7, 0.71},
		{"ten blocks alike", []int{7, 7, 7, 7, 7, 7, 7, 7, 7, 7}, 0.01, 0, 0},
		{"all spans in one of ten", []int{70, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0.01, 0.99, 1},
		{"ten blocks", []int{7, 5, 9, 7, 5, 9, 7, 5, 9, 7}, 0.01, 0.05, 0.09},
	} {
		var s spread
		for _, n := range c.spans {
			s.add(n, 100)
		}
		if got := s.relativeError(c.share); got < c.lowest || got > c.most {
			t.Errorf("%s: %f, want %f to %f", c.name, got, c.lowest, c.most)
		}
	}
}

// TestHeatmapAndFacetsShareBudget checks that the heatmap uses the budget for rows of partial
// minutes, and the facets use the rest.
func TestHeatmapAndFacetsShareBudget(t *testing.T) {
	const minutes, spans = 6, 500
	s := newRealStore(t, 1, scan.Options{})
	var sent []*otlpdata.Batch
	for m := range minutes {
		td := ptrace.NewTraces()
		list := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
		for i := range spans {
			span := list.AppendEmpty()
			span.SetTraceID([16]byte{byte(m), byte(i), byte(i >> 8), 1})
			start := scantest.Day.Add(time.Duration(m)*time.Minute + time.Duration(i)*time.Minute/spans)
			span.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
		}
		sent = append(sent, otlpdata.FromTraces(td, otlpdata.Meta{}))
		s.SegmentOf(t, sent[m])
	}
	q := tracestore.Query{From: scantest.Day.Add(30 * time.Second), To: scantest.Day.Add(minutes*time.Minute - 30*time.Second)}
	a := tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: time.Minute}, Facets: tracestore.FacetQuery{Values: 5}}
	want, err := storequery.AggregateSpans(q, a, sent...)
	scantest.Must(err)
	for budget, exact := range map[int]bool{spans / 2: false, 3 * spans / 2: false, 3 * spans: true, minutes * spans: true} {
		q.Budget.Spans = budget
		got, err := s.Aggregate(t.Context(), q, a)
		scantest.Must(err)
		if got.Scanned > budget+budget/tolerance || got.Scanned == 0 || got.Facets.Share == 0 || (got.Heatmap.Share == 1) != exact {
			t.Errorf("budget %d: examined %d spans, shares are %g and %g", budget, got.Scanned, got.Heatmap.Share, got.Facets.Share)
		}
		if exact && !reflect.DeepEqual(got.Heatmap, want.Heatmap) {
			t.Errorf("budget %d: wrong heatmap", budget)
		}
	}
}

// TestExemplarsWithoutRows checks that exemplars come from the whole window although the heatmap
// reads no rows.
func TestExemplarsWithoutRows(t *testing.T) {
	soak.SkipIfRaced(t)
	s, _ := sampleStore(t)
	service := scantest.Property(tracestore.Service, tracestore.Eq, tracestore.Text(bench.New(7, scantest.Day).Services()[5]))
	q := tracestore.Query{From: scantest.Day.Add(-time.Hour), To: scantest.Day.Add(time.Hour), Where: service}
	a := tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: time.Minute}, Exemplars: 30}
	got, err := s.Aggregate(t.Context(), q, a)
	scantest.Must(err)
	if len(got.Exemplars) != 30 || got.Share != 1 || uint64(got.Scanned) > got.Spans {
		t.Fatalf("got %d exemplars, want 30: %+v", len(got.Exemplars), got)
	}
	newest, oldest := got.Exemplars[0].Start, got.Exemplars[29].Start
	lengths := make(map[int]bool)
	for _, e := range got.Exemplars {
		lengths[tracestore.HeatBucketOf(e.Duration)] = true
	}
	spread := time.Duration(newest - oldest)
	a = tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: 10 * time.Second}}
	seconds, err := s.Aggregate(t.Context(), q, a)
	scantest.Must(err)
	cells := seconds.Heatmap.Cells
	if all := time.Duration(cells[len(cells)-1].Start - cells[0].Start); spread < all/2 || len(lengths) < 10 {
		t.Errorf("exemplars span %v of %v and %d buckets of durations", spread, all, len(lengths))
	}
	q.Where = scantest.Property(tracestore.Service, tracestore.Eq, tracestore.Text("absent"))
	a = tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: time.Minute}, Exemplars: 30}
	if got, err := s.Aggregate(t.Context(), q, a); err != nil || len(got.Exemplars) > 0 || got.Scanned > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// listing counts calls of Blocks.
type listing struct {
	*segment.Segment
	lists *int
}

func (l listing) Blocks() ([]source.BlockInfo, error) {
	*l.lists++
	return l.Segment.Blocks()
}

// TestExemplarsOfRareService checks that exemplars are not searched in segments whose series have
// no matching span.
func TestExemplarsOfRareService(t *testing.T) {
	const segments = 2 * maxPlans
	s := newRealStore(t, 1, scan.Options{})
	lists := 0
	for i := range segments {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", map[bool]string{false: "usual", true: "rare"}[i == 5])
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetTraceID([16]byte{byte(i), 1})
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(scantest.Day.Add(time.Duration(i) * time.Minute)))
		s.SegmentOf(t, otlpdata.FromTraces(td, otlpdata.Meta{}))
		s.Segments[i] = listing{s.Segments[i].(*segment.Segment), &lists}
	}
	rare := scantest.Property(tracestore.Service, tracestore.Eq, tracestore.Text("rare"))
	q := tracestore.Query{From: scantest.Day, To: scantest.Day.Add(time.Hour), Where: rare}
	a := tracestore.Aggregation{Heatmap: tracestore.HeatmapQuery{Step: time.Minute}, Exemplars: 10}
	got, err := s.Aggregate(t.Context(), q, a)
	if err != nil || len(got.Exemplars) != 1 || got.Exemplars[0].Service != "rare" || lists != 1 {
		t.Errorf("answer %+v, error %v; listed blocks of %d segments, want 1", got, err, lists)
	}
}

// TestScattered checks that each number occurs once and that every prefix is spread.
func TestScattered(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 10, 97, 1000} {
		order := scattered(n)
		for first := 8; first < min(n, 100); first *= 2 {
			part := slices.Sorted(slices.Values(order[:first]))
			for i := 1; i < first; i++ {
				if gap := part[i] - part[i-1]; gap > 4*n/first+1 {
					t.Errorf("first %d of %d numbers have a gap of %d", first, n, gap)
				}
			}
		}
		slices.Sort(order)
		for i, at := range order {
			if at != i {
				t.Fatalf("number %d of %d is missing", i, n)
			}
		}
	}
}

// TestAggregatePastDamage checks that readable spans are counted and that the result names the
// damage.
func TestAggregatePastDamage(t *testing.T) {
	w := &scantest.Generator{Rand: rand.New(rand.NewPCG(1, 9))}
	s := openStore(2, 5, scan.Options{})
	w.Send(t, s, 60)
	q, a := tracestore.Query{}, tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 10}, Exemplars: 5}
	whole, err := s.Aggregate(t.Context(), q, a)
	scantest.Must(err)
	s.Rot(3)
	got, err := s.Aggregate(t.Context(), q, a)
	if err != nil || got.Complete() || got.Text() == "" || got.Spans >= whole.Spans || got.Spans == 0 || len(s.Damage) == 0 {
		t.Errorf("error %v, answer %+v of %d spans, %d reports of damage", err, got, whole.Spans, len(s.Damage))
	}
}

// TestAggregateEnds checks that a canceled call fails and that a call past its deadline returns a
// partial result.
func TestAggregateEnds(t *testing.T) {
	w := &scantest.Generator{Rand: rand.New(rand.NewPCG(1, 9))}
	s := openStore(1, 5, scan.Options{})
	w.Send(t, s, 10)
	a := tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 10}}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := s.Aggregate(ctx, tracestore.Query{}, a); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled call returned %v", err)
	}
	late := &lateContext{Context: t.Context(), looks: 8}
	got, err := s.Aggregate(late, tracestore.Query{}, a)
	if err != nil || got.Complete() || got.Text() == "" || got.Facets == nil {
		t.Errorf("call past its deadline returned %+v, %v", got, err)
	}
	if n := s.Views.Load(); n != 0 {
		t.Errorf("%d views left", n)
	}
}

// lateContext exceeds its deadline after a number of checks.
type lateContext struct {
	context.Context
	looks int
}

func (c *lateContext) Err() error {
	if c.looks--; c.looks < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestNumbers checks that the table keeps every number, in order of insertion.
func TestNumbers(t *testing.T) {
	var n numbers
	for round := range 2 {
		for i := range uint64(5000) {
			if known := n.find(i * i % 1999); known != nil {
				known.count.add(counts{1, i % 2})
			} else {
				n.add(i*i%1999, counts{1, i % 2})
			}
		}
		sum := counts{}
		for _, x := range n.list {
			sum.add(x.count)
		}
		if sum != (counts{5000, 2500}) || len(n.list) != 1000 {
			t.Errorf("round %d: sum is %+v of %d numbers", round, sum, len(n.list))
		}
		n.reset()
	}
}
