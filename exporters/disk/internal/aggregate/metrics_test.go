package aggregate

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// countMetrics returns the result by definition: it counts the spans of batches without duplicates.
func countMetrics(tb testing.TB, q tracestore.MetricsQuery, sent []*otlpdata.Batch) tracestore.MetricsAnswer {
	tb.Helper()
	c, seen := storequery.NewMetricsCounter(q), storequery.NewDedup()
	from, to, _ := q.Window()
	for _, b := range sent {
		err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
			if s.Start < from || s.Start > to || !seen.First(s) || !c.Wants(s.Resource.Service, s.KindName()) {
				return nil
			}
			series, _ := c.Series(s.Resource.Service, s.Operation(), s.KindName())
			duration, _ := s.Duration()
			c.AddSpan(series, s.Start, duration, s.AdjustedCount(), s.StatusCode == otlpdata.StatusError)
			return nil
		})
		scantest.Must(err)
	}
	return c.Answer()
}

// checkMetrics compares the answers for some windows with the definition.
func checkMetrics(t *testing.T, e *Aggregator, sent []*otlpdata.Batch) {
	t.Helper()
	for i, w := range [][2]time.Duration{{-time.Hour, time.Hour}, {10 * time.Second, 20 * time.Second}, {time.Second, time.Hour},
		{0, 70 * time.Second}, {30 * time.Second, 30 * time.Second}, {30 * time.Second, 90*time.Second - 1}, {-time.Hour, 95 * time.Second}} {
		q := tracestore.MetricsQuery{From: scantest.Day.Add(w[0]), To: scantest.Day.Add(w[1]), ByOperation: i%2 == 0}
		want := countMetrics(t, q, sent)
		got, err := e.Metrics(t.Context(), "", q)
		if err != nil || i == 0 && len(want.Series) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: %v\n got %+v\nwant %+v", q, err, got, want)
		}
	}
}

// badSeries is a segment whose series cannot be used.
type badSeries struct {
	*segment.Segment
	err     error
	dropped uint64
}

func (b badSeries) Series() (*stats.SeriesStats, error) {
	s, err := b.Segment.Series()
	if err == nil {
		copied := *s
		copied.Dropped, s = b.dropped, &copied
	}
	return s, errors.Join(err, b.err)
}

// TestMetricsPastBadStatistics checks that rows are counted if statistics are damaged, incomplete
// or absent.
func TestMetricsPastBadStatistics(t *testing.T) {
	var sent []*otlpdata.Batch
	for i := range uint64(5) {
		sent = append(sent, scantest.SharedIDs(i, 200))
	}
	sent = append(sent, sent[1], sent[3]) // one segment has both copies
	damage := 0
	s := newRealStore(t, 1, scan.Options{OnDamage: func(*source.DamageError) { damage++ }})
	s.SegmentOf(t, sent...)
	checkMetrics(t, s.Aggregator, sent)
	whole := s.Segments[0].(*segment.Segment)
	bad := &source.DamageError{File: "file", Part: "part", Err: errors.New("rotten")}
	for want, src := range []source.Source{badSeries{Segment: whole, dropped: 1}, badSeries{Segment: whole, err: bad},
		struct{ source.Source }{whole}} {
		damage = 0
		s.Segments[0] = src
		checkMetrics(t, s.Aggregator, sent)
		if (want == 1) != (damage > 0) {
			t.Errorf("%T: %d reports of damage", src, damage)
		}
	}
}

// oldSeries is a segment from before adjusted counts.
type oldSeries struct{ *segment.Segment }

func (o oldSeries) Series() (*stats.SeriesStats, error) {
	s, err := o.Segment.Series()
	scantest.Must(err)
	c := stats.NewCollector()
	for p := range s.Points(0, math.MaxUint64) {
		if s.Series[p.Series].Unsampled {
			continue
		}
		first, counts := p.Durations.Counts()
		for i, n := range counts {
			for range n {
				c.AddSpan(c.SeriesID(s.Series[p.Series]), p.Minute*scan.Minute, uint64(math.Ceil(tracestore.BucketStart(first+i))))
			}
		}
	}
	return stats.DecodeSeries(c.AppendSeries(nil))
}

// TestMetricsOfOldSegments checks that every span of such a segment counts once, for whole minutes
// and for parts of them, although the rows have thresholds.
func TestMetricsOfOldSegments(t *testing.T) {
	sent, plain := scantest.SharedIDs(1, 500), ptrace.NewTraces()
	td, err := sent.Traces()
	scantest.Must(err)
	td.CopyTo(plain)
	stated := 0
	for _, rs := range plain.ResourceSpans().All() {
		state := rs.ScopeSpans().At(0).Spans().At(0).TraceState()
		stated += len(state.AsRaw())
		state.FromRaw("")
	}
	s := newRealStore(t, 1, scan.Options{})
	s.SegmentOf(t, sent)
	s.Segments[0] = oldSeries{s.Segments[0].(*segment.Segment)}
	for _, w := range [][2]time.Duration{{-time.Hour, time.Hour}, {10 * time.Second, 20 * time.Second}, {time.Second, time.Hour},
		{30 * time.Second, 150 * time.Second}} {
		q := tracestore.MetricsQuery{From: scantest.Day.Add(w[0]), To: scantest.Day.Add(w[1])}
		got, err := s.Metrics(t.Context(), "", q)
		scantest.Must(err)
		want := countMetrics(t, q, []*otlpdata.Batch{otlpdata.FromTraces(plain, otlpdata.Meta{})})
		if got, want := callsOf(got), callsOf(want); stated == 0 || len(want) == 0 || !maps.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", w, got, want)
		}
	}
}

// callsOf returns calls and errors by service and minute.
func callsOf(a tracestore.MetricsAnswer) map[string][2]uint64 {
	out := map[string][2]uint64{}
	for _, s := range a.Series {
		for _, p := range s.Points {
			out[fmt.Sprint(s.Service, " ", p.Start)] = [2]uint64{p.Calls, p.Errors}
		}
	}
	return out
}

// TestMetricsOfAMemtable checks that duplicates are counted once, whether they arrive before or
// after the first query, with a tally and without.
func TestMetricsOfAMemtable(t *testing.T) {
	s := newRealStore(t, 1, scan.Options{})
	table := memtable.New(memtable.Options{BlockRows: 50})
	s.Tables = s.Tables[:1]
	s.Tables[0] = table
	plain := New(scan.NewStore(func() scan.View { return scantest.Sources{struct{ source.Source }{table.Source()}} }, scan.Options{}))
	var sent []*otlpdata.Batch
	for i := range uint64(8) {
		b := scantest.SharedIDs(i/2, 100) // every second batch is a duplicate
		_, err := table.Append(b, 0)
		scantest.Must(err)
		sent = append(sent, b)
		checkMetrics(t, s.Aggregator, sent)
		checkMetrics(t, plain, sent)
	}
}

// TestMetricsOfNamesInRows counts operations of shapes without a name.
func TestMetricsOfNamesInRows(t *testing.T) {
	s := newRealStore(t, 1, scan.Options{})
	s.Tables[0] = memtable.New(memtable.Options{Limits: memtable.Limits{Names: 3}})
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range 200 {
		sp := spans.AppendEmpty()
		sp.SetName(strings.Repeat("x", i%20))
		sp.SetTraceID(pcommon.TraceID{9: 0xff})
		sp.SetSpanID(pcommon.SpanID{1, byte(i)})
		sp.TraceState().FromRaw([]string{"", "ot=th:e666"}[i%2])
		sp.SetStartTimestamp(pcommon.NewTimestampFromTime(scantest.Day.Add(time.Duration(i) * time.Second)))
	}
	b := otlpdata.FromTraces(td, otlpdata.Meta{})
	_, err := s.Tables[0].Append(b, 0)
	scantest.Must(err)
	if tables, err := s.Tables[0].Source().Tables(); err != nil || !tables.Shapes[len(tables.Shapes)-1].NameInRow {
		t.Fatalf("no name is stored in a row: %v", err)
	}
	checkMetrics(t, s.Aggregator, []*otlpdata.Batch{b})
	plain := func() scan.View { return scantest.Sources{struct{ source.Source }{s.Tables[0].Source()}} }
	checkMetrics(t, New(scan.NewStore(plain, scan.Options{})), []*otlpdata.Batch{b})
	s.Seal(0)
	checkMetrics(t, s.Aggregator, []*otlpdata.Batch{b})
}

// TestMetricsOfFullBuckets checks that rows are counted if an adjusted count does not fit into a
// bucket of the statistics.
func TestMetricsOfFullBuckets(t *testing.T) {
	s := newRealStore(t, 1, scan.Options{})
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range 300 {
		sp := spans.AppendEmpty()
		sp.SetTraceID(pcommon.TraceID{9: 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
		sp.SetSpanID(pcommon.SpanID{1, byte(i >> 8), byte(i)})
		sp.TraceState().FromRaw("ot=th:ffffff")
		sp.SetStartTimestamp(pcommon.NewTimestampFromTime(scantest.Day.Add(time.Duration(i) * time.Nanosecond)))
	}
	b := otlpdata.FromTraces(td, otlpdata.Meta{})
	_, err := s.Tables[0].Append(b, 0)
	scantest.Must(err)
	if n := countMetrics(t, tracestore.MetricsQuery{}, []*otlpdata.Batch{b}).Series[0].Points[0].Calls; n <= math.MaxUint32 {
		t.Errorf("count %d fits into a bucket", n)
	}
	checkMetrics(t, s.Aggregator, []*otlpdata.Batch{b})
	s.Seal(0)
	checkMetrics(t, s.Aggregator, []*otlpdata.Batch{b})
}

// TestMetricsOfDamagedRows checks that unreadable rows are missing and that the result says so.
func TestMetricsOfDamagedRows(t *testing.T) {
	s := openStore(2, 7, scan.Options{})
	var sent []*otlpdata.Batch
	for i := range uint64(10) {
		sent = append(sent, scantest.SharedIDs(i, 200))
		if err := s.Consume(t.Context(), sent[i]); err != nil {
			t.Fatal(err)
		}
	}
	calls := func() (a tracestore.MetricsAnswer, n uint64) {
		a, err := s.Metrics(t.Context(), "", tracestore.MetricsQuery{})
		if err != nil {
			t.Fatal(err)
		}
		for _, series := range a.Series {
			for _, p := range series.Points {
				n += p.Calls
			}
		}
		return a, n
	}
	whole, all := calls()
	s.Rot(3)
	got, n := calls()
	if !whole.Complete() || got.Complete() || !strings.Contains(got.Text(), "cannot be read") || len(s.Damage) == 0 || n == 0 || n >= all {
		t.Errorf("%d of %d calls, reason %q, %d reports of damage", n, all, got.Text(), len(s.Damage))
	}
	if n := s.Blocks.Open.Load(); n != 0 {
		t.Errorf("%d blocks left open", n)
	}
}
