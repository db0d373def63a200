package search

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// countMetrics is the reference: it counts the spans in batches, duplicates once.
func countMetrics(tb testing.TB, q tracestore.MetricsQuery, sent []*otlpdata.Batch) tracestore.MetricsAnswer {
	tb.Helper()
	c, seen := storequery.NewMetricsCounter(q), storequery.NewDedup()
	from, to, _ := q.Window()
	for _, b := range sent {
		err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
			if s.Start < from || s.Start > to || !seen.First(s) || !c.Wants(s.Resource.Service, s.KindName()) {
				return nil
			}
			series, _ := c.Series(s.Resource.Service, s.Operation())
			duration, _ := s.Duration()
			c.AddSpan(series, s.Start, duration, s.AdjustedCount(), s.StatusCode == otlpdata.StatusError)
			return nil
		})
		must(err)
	}
	return c.Answer()
}

// checkMetrics compares the answers for some windows with the reference.
func checkMetrics(t *testing.T, e *Engine, sent []*otlpdata.Batch) {
	t.Helper()
	for i, w := range [][2]time.Duration{{-time.Hour, time.Hour}, {10 * time.Second, 20 * time.Second}, {time.Second, time.Hour},
		{0, 70 * time.Second}, {30 * time.Second, 30 * time.Second}, {30 * time.Second, 90*time.Second - 1}, {-time.Hour, 95 * time.Second}} {
		q := tracestore.MetricsQuery{From: someDay.Add(w[0]), To: someDay.Add(w[1]), ByOperation: i%2 == 0}
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

// TestMetricsPastBadStatistics: rows tell the same, and those of a source without statistics do.
func TestMetricsPastBadStatistics(t *testing.T) {
	var sent []*otlpdata.Batch
	for i := range uint64(5) {
		sent = append(sent, sharedIDs(i, 200))
	}
	sent = append(sent, sent[1], sent[3]) // of which one segment has both
	damage := 0
	s := newCallStore(t, 1, Options{OnDamage: func(*source.DamageError) { damage++ }})
	s.segmentOf(t, sent...)
	checkMetrics(t, s.Engine, sent)
	whole := s.segments[0].(*segment.Segment)
	bad := &source.DamageError{File: "file", Part: "part", Err: errors.New("rotten")}
	for want, src := range []source.Source{badSeries{Segment: whole, dropped: 1}, badSeries{Segment: whole, err: bad},
		struct{ source.Source }{whole}} {
		damage = 0
		s.segments[0] = src
		checkMetrics(t, s.Engine, sent)
		if (want == 1) != (damage > 0) {
			t.Errorf("%T: %d reports", src, damage)
		}
	}
}

// oldSeries is a segment from before spans were counted as often as they stand for.
type oldSeries struct{ *segment.Segment }

func (o oldSeries) Series() (*stats.SeriesStats, error) {
	s, err := o.Segment.Series()
	must(err)
	c := stats.NewCollector()
	for p := range s.Points(0, math.MaxUint64) {
		if s.Series[p.Series].Extra {
			continue
		}
		first, counts := p.Durations.Counts()
		for i, n := range counts {
			for range n {
				c.Span(c.Series(s.Series[p.Series]), p.Minute*minute, uint64(math.Ceil(tracestore.BucketStart(first+i))))
			}
		}
	}
	return stats.DecodeSeries(c.AppendSeries(nil))
}

// TestMetricsOfOldSegments: every span of them is one call, whether whole minutes are asked for or parts of them, whose rows would say
// more.
func TestMetricsOfOldSegments(t *testing.T) {
	sent, plain := sharedIDs(1, 500), ptrace.NewTraces()
	td, err := sent.Traces()
	must(err)
	td.CopyTo(plain)
	stated := 0
	for _, rs := range plain.ResourceSpans().All() {
		state := rs.ScopeSpans().At(0).Spans().At(0).TraceState()
		stated += len(state.AsRaw())
		state.FromRaw("")
	}
	s := newCallStore(t, 1, Options{})
	s.segmentOf(t, sent)
	s.segments[0] = oldSeries{s.segments[0].(*segment.Segment)}
	for _, w := range [][2]time.Duration{{-time.Hour, time.Hour}, {10 * time.Second, 20 * time.Second}, {time.Second, time.Hour},
		{30 * time.Second, 150 * time.Second}} {
		q := tracestore.MetricsQuery{From: someDay.Add(w[0]), To: someDay.Add(w[1])}
		got, err := s.Metrics(t.Context(), "", q)
		must(err)
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

// TestMetricsOfAMemtable: duplicates come before and after others have been counted; with a tally and without.
func TestMetricsOfAMemtable(t *testing.T) {
	s := newCallStore(t, 1, Options{})
	table := memtable.New(memtable.Options{BlockRows: 50})
	s.tables = s.tables[:1]
	s.tables[0] = table
	plain := New(func() View { return realView{struct{ source.Source }{table.Source()}} }, Options{})
	var sent []*otlpdata.Batch
	for i := range uint64(8) {
		b := sharedIDs(i/2, 100) // every other one comes again
		_, err := table.Append(b, 0)
		must(err)
		sent = append(sent, b)
		checkMetrics(t, s.Engine, sent)
		checkMetrics(t, plain, sent)
	}
}

// TestNamesInRows: operations of shapes without a name.
func TestMetricsOfNamesInRows(t *testing.T) {
	s := newCallStore(t, 1, Options{})
	s.tables[0] = memtable.New(memtable.Options{Limits: memtable.Limits{Names: 3}})
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range 200 {
		sp := spans.AppendEmpty()
		sp.SetName(strings.Repeat("x", i%20))
		sp.SetTraceID(pcommon.TraceID{9: 0xff})
		sp.SetSpanID(pcommon.SpanID{1, byte(i)})
		sp.TraceState().FromRaw([]string{"", "ot=th:e666"}[i%2])
		sp.SetStartTimestamp(pcommon.NewTimestampFromTime(someDay.Add(time.Duration(i) * time.Second)))
	}
	b := otlpdata.FromTraces(td, otlpdata.Meta{})
	_, err := s.tables[0].Append(b, 0)
	must(err)
	if tables, err := s.tables[0].Source().Tables(); err != nil || !tables.Shapes[len(tables.Shapes)-1].NameInRow {
		t.Fatalf("no name is in a row: %v", err)
	}
	checkMetrics(t, s.Engine, []*otlpdata.Batch{b})
	checkMetrics(t, New(func() View { return realView{struct{ source.Source }{s.tables[0].Source()}} }, Options{}), []*otlpdata.Batch{b})
	s.seal(0)
	checkMetrics(t, s.Engine, []*otlpdata.Batch{b})
}

// TestMetricsOfFullBuckets: where a bucket has no room for what its spans stand for, rows tell.
func TestMetricsOfFullBuckets(t *testing.T) {
	s := newCallStore(t, 1, Options{})
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range 300 {
		sp := spans.AppendEmpty()
		sp.SetTraceID(pcommon.TraceID{9: 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
		sp.SetSpanID(pcommon.SpanID{1, byte(i >> 8), byte(i)})
		sp.TraceState().FromRaw("ot=th:ffffff")
		sp.SetStartTimestamp(pcommon.NewTimestampFromTime(someDay.Add(time.Duration(i) * time.Nanosecond)))
	}
	b := otlpdata.FromTraces(td, otlpdata.Meta{})
	_, err := s.tables[0].Append(b, 0)
	must(err)
	if n := countMetrics(t, tracestore.MetricsQuery{}, []*otlpdata.Batch{b}).Series[0].Points[0].Calls; n <= math.MaxUint32 {
		t.Errorf("a bucket has room for %d", n)
	}
	checkMetrics(t, s.Engine, []*otlpdata.Batch{b})
	s.seal(0)
	checkMetrics(t, s.Engine, []*otlpdata.Batch{b})
}

// TestMetricsOfDamagedRows: what cannot be read is missing, and the answer says so.
func TestMetricsOfDamagedRows(t *testing.T) {
	s := openStore(2, 7, Options{})
	var sent []*otlpdata.Batch
	for i := range uint64(10) {
		sent = append(sent, sharedIDs(i, 200))
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
	s.rot(3)
	got, n := calls()
	if !whole.Complete || got.Complete || !strings.Contains(got.Reason, "cannot be read") || len(s.damage) == 0 || n == 0 || n >= all {
		t.Errorf("%d of %d calls, %q, %d reports", n, all, got.Reason, len(s.damage))
	}
	if n := s.gauge.open.Load(); n != 0 {
		t.Errorf("%d blocks are still open", n)
	}
}

func TestJoinReasons(t *testing.T) {
	for _, want := range [][3]string{{"", "", ""}, {"a", "", "a"}, {"", "b", "b"}, {"a", "b", "a; b"}} {
		if got := joinReasons(want[0], want[1]); got != want[2] {
			t.Errorf("%q and %q: %q", want[0], want[1], got)
		}
	}
}

// TestDivide compares with what a window and its parts mean, start by start.
func TestDivide(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	instant := func(last uint64) uint64 {
		ns := rng.Uint64N(5*minute) / (minute / 4) * (minute / 4)
		if ns += rng.Uint64N(3); ns > 0 {
			ns--
		}
		return last - 5*minute + ns
	}
	for _, last := range []uint64{5 * minute, 1000*minute + 7, math.MaxUint64} {
		for range 5000 {
			w, oldest, newest := bounds{instant(last), instant(last)}, instant(last), instant(last)
			if w.to < w.from || newest < oldest || newest < w.from || oldest > w.to {
				continue
			}
			d := divide(w, oldest, newest)
			for range 30 {
				start := instant(last)
				in := start >= w.from && start <= w.to && start >= oldest && start <= newest
				byMinute := d.some && start/minute >= d.minutes.from && start/minute <= d.minutes.to
				if has := start >= oldest && start <= newest; has && (in != (byMinute || d.rest.has(start)) || byMinute && d.rest.has(start)) ||
					in != d.all.has(start) {
					t.Fatalf("%d of window %+v and rows from %d to %d: %+v", start, w, oldest, newest, d)
				}
			}
		}
	}
	if d := divide(bounds{minute - 1, 3 * minute}, 0, math.MaxUint64); fmt.Sprint(d.minutes) != "{1 2}" || len(d.rest) != 2 {
		t.Errorf("%+v", d)
	}
}
