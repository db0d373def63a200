package stats

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// span is a span as a segment writer counts it, with names instead of ids.
type span struct {
	series          Series
	start, duration uint64
	parent          string // service of the parent
	kind            EdgeKind
	trace           otlpdata.TraceID // if not zero, the span is an orphan
	parentID        otlpdata.SpanID
	extra           uint64 // number of further calls for which it stands
}

// randomSpans returns spans with few names and arbitrary starts.
func randomSpans(seed uint64, n int) []span {
	r := rand.New(rand.NewPCG(seed, 9))
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	out := make([]span, n)
	for i := range out {
		s := &out[i]
		s.series = Series{pick("", "t1", "t2"), pick("a", "b", "", "c\xff"), pick("GET /", "PUT /x", "other"), pick("client", "server", ""),
			r.IntN(4) == 0, false}
		s.parent, s.kind = pick("a", "b", "", "d"), EdgeKind(r.IntN(4)|r.IntN(tracestore.Connections)<<connectionShift)
		s.start, s.duration = 1_700_000_000e9+r.Uint64N(200e9), 1+r.Uint64N(1<<r.IntN(50))
		if r.IntN(20) == 0 {
			s.start, s.duration = r.Uint64()>>r.IntN(64), r.Uint64()>>r.IntN(64)
		}
		if r.IntN(4) == 0 {
			s.trace[0], s.trace[15], s.parentID[7] = byte(r.IntN(3)), byte(1+r.IntN(3)), byte(r.IntN(2))
		}
	}
	return out
}

// collect adds spans to a collector like a segment writer.
func collect(spans []span) *Collector {
	c := NewCollector()
	for i := range spans {
		s := &spans[i]
		series := c.SeriesID(s.series)
		c.AddSpan(series, s.start, s.duration)
		if s.extra > 0 {
			c.AddUnsampled(series, s.start, s.duration, s.extra)
		}
		child := c.ServiceID(s.series.Tenant, s.series.Service)
		if !s.trace.IsZero() {
			c.AddOrphan(s.trace, s.parentID, child, s.kind, s.start, s.duration, s.series.Error)
			continue
		}
		c.AddEdge(c.ServiceID(s.series.Tenant, s.parent), child, s.kind, s.start, s.duration, s.series.Error)
	}
	return c
}

type seriesMinute struct {
	Series
	minute uint64
}

func decodeSeries(t *testing.T, section []byte) map[seriesMinute]string {
	t.Helper()
	s, err := DecodeSeries(section)
	if err != nil {
		t.Fatal(err)
	}
	out := map[seriesMinute]string{}
	before := SeriesPoint{}
	for p := range s.Points(0, math.MaxUint64) {
		if p.Minute < before.Minute || p.Minute == before.Minute && p.Series <= before.Series && len(out) > 0 {
			t.Errorf("series %d of minute %d comes after series %d of %d", p.Series, p.Minute, before.Series, before.Minute)
		}
		before.Minute, before.Series = p.Minute, p.Series
		out[seriesMinute{s.Series[p.Series], p.Minute}] = fmt.Sprint(buckets(&p.Durations), p.Durations.Sum)
	}
	return out
}

// seriesOf returns the expected result of decodeSeries. of returns the series of a span and how
// often it counts.
func seriesOf(spans []span, of func(s *span) (Series, uint64)) map[seriesMinute]string {
	all := map[seriesMinute]*tracestore.Histogram{}
	for i := range spans {
		s := &spans[i]
		series, n := of(s)
		if n == 0 {
			continue
		}
		k := seriesMinute{series, s.start / 60e9}
		if all[k] == nil {
			all[k] = &tracestore.Histogram{}
		}
		all[k].ObserveN(s.duration, n)
	}
	texts := map[seriesMinute]string{}
	for k, h := range all {
		texts[k] = fmt.Sprint(buckets(h), h.Sum)
	}
	return texts
}

func TestSeriesAreExact(t *testing.T) {
	for seed := range uint64(20) {
		spans := randomSpans(seed, 1000)
		want := seriesOf(spans, func(s *span) (Series, uint64) { return s.series, 1 })
		if got := decodeSeries(t, collect(spans).AppendSeries(nil)); !maps.Equal(got, want) {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
	}
}

// sampled returns random spans. Some represent further calls.
func sampled(seed uint64, n int) []span {
	spans := randomSpans(seed, n)
	r := rand.New(rand.NewPCG(seed, 10))
	for i := range spans {
		if r.IntN(3) == 0 {
			spans[i].extra = 1 + r.Uint64N(1<<r.IntN(20))
		}
	}
	return spans
}

// TestUnsampledSeriesAreExact checks that unsampled series count the further calls, and that the
// other series do not change.
func TestUnsampledSeriesAreExact(t *testing.T) {
	for seed := range uint64(20) {
		spans := sampled(seed, 1000)
		extra := seriesOf(spans, func(s *span) (Series, uint64) {
			of := s.series
			of.Unsampled = true
			return of, s.extra
		})
		section := collect(spans).AppendSeries(nil)
		got := decodeSeries(t, section)
		for k, want := range extra {
			if got[k] != want {
				t.Fatalf("seed %d, %+v: got %v, want %v", seed, k, got[k], want)
			}
			delete(got, k)
		}
		for i := range spans {
			spans[i].extra = 0
		}
		plain := collect(spans).AppendSeries(nil)
		if want := decodeSeries(t, plain); !maps.Equal(got, want) {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
		for extra, b := range [][]byte{plain, section} {
			if s, err := DecodeSeries(b); err != nil || s.Unsampled != (extra > 0) {
				t.Errorf("unsampled series: %v, %v", extra > 0, err)
			}
		}
	}
}

// TestUnsampledCountsAreBounded checks the limits of buckets, sums and cells.
func TestUnsampledCountsAreBounded(t *testing.T) {
	c := NewCollector()
	for range tracestore.MaxOperations {
		series := c.SeriesID(Series{Operation: fmt.Sprint(len(c.series))})
		c.AddSpan(series, 0, 1)
	}
	others := c.SeriesID(Series{Operation: "one more"})
	c.AddSpan(others, 0, 1)
	for _, n := range []uint64{1, 1 << 24, math.MaxUint32 - 10, math.MaxUint64} {
		c.AddUnsampled(others, 60e9, math.MaxUint64/2, n)
	}
	c.AddUnsampled(0, 0, 5, 3)
	got := decodeSeries(t, c.AppendSeries(nil))
	big := seriesMinute{Series{Operation: tracestore.OtherOperation, Unsampled: true}, 1}
	long := uint64(tracestore.BucketOf(math.MaxUint64 / 2))
	if want := fmt.Sprint([][2]uint64{{long, 1 + 1<<24}}, uint64(math.MaxUint64)); got[big] != want {
		t.Errorf("got %v, want %v", got[big], want)
	}
	first := seriesMinute{Series{Operation: "0", Unsampled: true}, 0}
	if want := fmt.Sprint([][2]uint64{{uint64(tracestore.BucketOf(5)), 3}}, 15); got[first] != want {
		t.Errorf("got %v", got)
	}
	if c.Dropped() != 2 {
		t.Errorf("%d spans dropped because of full buckets, want 2", c.Dropped())
	}
	c.AddUnsampled(noID, 0, 1, 1)
	c.cells.used = maxCells
	c.AddUnsampled(1, 0, 1, 1) // needs a new cell
	c.AddUnsampled(0, 0, 5, 1) // has a cell
	if c.Dropped() != 4 {
		t.Errorf("%d spans dropped, want 4", c.Dropped())
	}
}

type edgeMinute struct {
	Edge
	minute uint64
}

func TestEdgesAreExact(t *testing.T) {
	for seed := range uint64(20) {
		spans := randomSpans(seed, 1000)
		type point struct {
			calls, errors, sum uint64
			durations          string
		}
		want, durations := map[edgeMinute]point{}, map[edgeMinute]*tracestore.Histogram{}
		for _, s := range spans {
			if !s.trace.IsZero() {
				continue
			}
			k := edgeMinute{Edge{s.series.Tenant, s.parent, s.series.Service, s.kind}, s.start / 60e9}
			v := want[k]
			v.calls++
			if s.series.Error {
				v.errors++
			}
			v.sum = saturatingAdd(v.sum, s.duration)
			if durations[k] == nil {
				durations[k] = new(tracestore.Histogram)
			}
			if s.kind&Inner == 0 {
				durations[k].Observe(s.duration)
			}
			v.durations = fmt.Sprint(buckets(durations[k]))
			want[k] = v
		}
		e, err := DecodeEdges(collect(spans).AppendEdges(nil))
		if err != nil {
			t.Fatal(err)
		}
		got := map[edgeMinute]point{}
		for p := range e.Points(0, math.MaxUint64) {
			got[edgeMinute{e.Edges[p.Edge], p.Minute}] = point{p.Calls, p.Errors, p.Sum, fmt.Sprint(buckets(&p.Durations))}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
	}
}

func TestOrphansAreExact(t *testing.T) {
	for seed := range uint64(20) {
		spans := randomSpans(seed, 1000)
		want := map[Orphan]int{}
		for _, s := range spans {
			if !s.trace.IsZero() {
				want[Orphan{s.series.Tenant, s.series.Service, s.trace, s.parentID, s.start / 60e9, s.duration, s.kind, s.series.Error}]++
			}
		}
		s, err := DecodeOrphans(collect(spans).AppendOrphans(nil))
		if err != nil {
			t.Fatal(err)
		}
		got, n := map[Orphan]int{}, 0
		for o := range s.Orphans(0, math.MaxUint64) {
			got[o]++
			n++
		}
		if !maps.Equal(got, want) || n != s.Len() {
			t.Fatalf("seed %d: got %d of %d: %v, want %v", seed, n, s.Len(), got, want)
		}
	}
}

// TestOrderDoesNotMatter also checks that the encoding is deterministic.
func TestOrderDoesNotMatter(t *testing.T) {
	spans := randomSpans(1, 2000)
	want := sections(collect(spans))
	rand.New(rand.NewPCG(4, 4)).Shuffle(len(spans), func(i, j int) { spans[i], spans[j] = spans[j], spans[i] })
	c := collect(spans)
	for range 2 {
		for i, got := range sections(c) {
			if !bytes.Equal(got, want[i]) {
				t.Errorf("section %d differs", i)
			}
		}
	}
}

func sections(c *Collector) [3][]byte {
	return [3][]byte{c.AppendSeries(nil), c.AppendEdges(nil), c.AppendOrphans(nil)}
}

func TestOperationsAreBounded(t *testing.T) {
	c := NewCollector()
	name := func(i int) Series { return Series{Service: "s", Operation: fmt.Sprint(i), Kind: "server"} }
	for i := range tracestore.MaxOperations + 100 {
		c.AddSpan(c.SeriesID(name(i)), 1, 1)
	}
	failed := name(7)
	failed.Error = true
	// A known operation in another series, then another service, tenant and kind.
	c.AddSpan(c.SeriesID(failed), 1, 1)
	c.AddSpan(c.SeriesID(Series{Service: "t", Operation: "1", Kind: "server"}), 1, 1)
	c.AddSpan(c.SeriesID(Series{Tenant: "x", Service: "s", Operation: "9999"}), 1, 1)
	c.AddSpan(c.SeriesID(Series{Service: "s", Operation: "new", Kind: "client"}), 60e9, 1)
	got := decodeSeries(t, c.AppendSeries(nil))
	if len(got) != tracestore.MaxOperations+5 {
		t.Errorf("%d series, want %d", len(got), tracestore.MaxOperations+5)
	}
	others := seriesMinute{Series{Service: "s", Operation: tracestore.OtherOperation, Kind: "server"}, 0}
	if want := fmt.Sprint([][2]uint64{{0, 100}}, 100); got[others] != want {
		t.Errorf("spans of other operations are not counted correctly")
	}
	if _, ok := got[seriesMinute{Series{Service: "s", Operation: tracestore.OtherOperation, Kind: "client"}, 1}]; !ok {
		t.Error("kinds of other operations are not distinguished")
	}
}

func TestDroppedSpansAreCounted(t *testing.T) {
	c := NewCollector()
	a, trace := c.ServiceID("", "a"), otlpdata.TraceID{1}
	c.AddSpan(c.SeriesID(Series{}), 0, 1)
	c.AddEdge(a, a, 0, 0, 1, false)
	c.cells.used, c.calls.used = maxCells, maxCells
	for range 3 {
		c.AddSpan(0, 0, 1)    // fits
		c.AddSpan(0, 60e9, 1) // does not fit
		c.AddEdge(a, a, 0, 0, 1, false)
		c.AddEdge(a, a, 0, 60e9, 1, false)
	}
	c.cells.used, c.calls.used = 1, 1
	c.AddSpan(noID, 0, 1)
	c.AddEdge(a, noID, 0, 0, 1, false)
	c.AddEdge(noID, a, 0, 0, 1, false)
	c.orphans = make([]orphan, maxOrphans-1)
	c.AddOrphan(trace, otlpdata.SpanID{1}, a, 0, 0, 1, false)
	c.AddOrphan(trace, otlpdata.SpanID{2}, a, 0, 0, 1, false)
	c.AddOrphan(trace, otlpdata.SpanID{3}, noID, 0, 0, 1, false)
	s, err := DecodeSeries(c.AppendSeries(nil))
	if err != nil || s.Dropped != 4 {
		t.Errorf("series: %+v, %v", s, err)
	}
	for p := range s.Points(0, math.MaxUint64) {
		if p.Minute != 0 || p.Durations.Count() != 4 {
			t.Errorf("%d spans in minute %d", p.Durations.Count(), p.Minute)
		}
	}
	e, err := DecodeEdges(c.AppendEdges(nil))
	if err != nil || e.Dropped != 5 {
		t.Errorf("edges: %+v, %v", e, err)
	}
	o, err := DecodeOrphans(c.AppendOrphans(nil))
	if err != nil || o.Dropped != 2 || o.Len() != maxOrphans {
		t.Errorf("orphans: %d, %d dropped, %v", o.Len(), o.Dropped, err)
	}
}

func TestWindows(t *testing.T) {
	c := NewCollector()
	a := c.ServiceID("", "a")
	for _, minute := range []uint64{3, 5, 6, 9} {
		c.AddSpan(c.SeriesID(Series{}), minute*60e9, 1)
		c.AddEdge(a, a, 0, minute*60e9+59e9, 1, false)
		c.AddOrphan(otlpdata.TraceID{1}, otlpdata.SpanID{}, a, 0, minute*60e9, 1, false)
	}
	s, err := DecodeSeries(c.AppendSeries(nil))
	if err != nil {
		t.Fatal(err)
	}
	e, err := DecodeEdges(c.AppendEdges(nil))
	if err != nil {
		t.Fatal(err)
	}
	o, err := DecodeOrphans(c.AppendOrphans(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		first, last uint64
		want        []uint64
	}{
		{0, 2, nil}, {4, 4, nil}, {10, math.MaxUint64, nil}, {6, 5, nil}, {math.MaxUint64, 0, nil},
		{0, 3, []uint64{3}}, {3, 5, []uint64{3, 5}}, {4, 8, []uint64{5, 6}}, {9, 9, []uint64{9}}, {0, math.MaxUint64, []uint64{3, 5, 6, 9}},
	} {
		var got [3][]uint64
		for p := range s.Points(w.first, w.last) {
			got[0] = append(got[0], p.Minute)
		}
		for p := range e.Points(w.first, w.last) {
			got[1] = append(got[1], p.Minute)
		}
		for p := range o.Orphans(w.first, w.last) {
			got[2] = append(got[2], p.Minute)
		}
		for i := range got {
			if !slices.Equal(got[i], w.want) {
				t.Errorf("section %d, minutes %d to %d: got %v, want %v", i, w.first, w.last, got[i], w.want)
			}
		}
	}
	for p := range s.Points(4, 9) {
		if p.Minute != 5 {
			t.Error("iteration continues after the caller stopped")
		}
		break
	}
	for _, minutes := range []func() (uint64, uint64, bool){s.Minutes, e.Minutes, o.Minutes} {
		if first, last, ok := minutes(); first != 3 || last != 9 || !ok {
			t.Errorf("minutes %d to %d, %t", first, last, ok)
		}
	}
}

func TestEdgeKindOf(t *testing.T) {
	for _, c := range []struct {
		parent, child int32
		want          EdgeKind
	}{
		{otlpdata.KindClient, otlpdata.KindServer, 0}, {otlpdata.KindInternal, otlpdata.KindInternal, 0},
		{otlpdata.KindProducer, otlpdata.KindInternal, Messaging}, {otlpdata.KindServer, otlpdata.KindConsumer, Messaging},
		{otlpdata.KindConsumer, otlpdata.KindClient, 0}, {otlpdata.KindServer, otlpdata.KindProducer, 0},
	} {
		parent, child := Side{Kind: c.parent}, Side{Service: "b", Kind: c.child}
		if got := EdgeKindOf(parent, child); got != c.want {
			t.Errorf("from %d to %d: got %d, want %d", c.parent, c.child, got, c.want)
		}
	}
	a := Side{Service: "a", Kind: otlpdata.KindClient, Connection: tracestore.ConnectionHTTP}
	b := Side{Service: "b", Kind: otlpdata.KindServer}
	if got := EdgeKindOf(a, b); got != 0 && got.Connection() != tracestore.ConnectionHTTP {
		t.Errorf("the connection of the parent is not used: %d", got)
	}
	if got := EdgeKindOf(b, a); got.Connection() != tracestore.ConnectionHTTP || got&Inner != 0 {
		t.Errorf("the connection of the child is not used: %d", got)
	}
	if got := EdgeKindOf(a, a); got != Inner {
		t.Errorf("call within a service: %d", got)
	}
	if got := OrphanKindOf(b); got != Server {
		t.Errorf("orphan of the kind server: %d", got)
	}
}

// buckets returns the buckets of a histogram with their counts.
func buckets(h *tracestore.Histogram) (out [][2]uint64) {
	first, counts := h.Counts()
	for i, n := range counts {
		if n > 0 {
			out = append(out, [2]uint64{uint64(first + i), n})
		}
	}
	return out
}

// TestManySeries checks the memory for many services, and that the order of their series is
// determined only once.
func TestManySeries(t *testing.T) {
	const services, operations = 2000, 10
	c := NewCollector()
	fill := func() {
		c.Reserve(services * operations)
		for i := range services * operations {
			s := Series{Tenant: "t", Service: fmt.Sprintf("service-%08x", uint32(i/operations)*2654435761), Operation: fmt.Sprint(i % operations)}
			if id := c.SeriesID(s); id != uint32(i) {
				t.Fatalf("series %d has the id %d", i, id)
			}
			if id := c.SeriesID(s); id != uint32(i) {
				t.Fatalf("series %d has the id %d when requested again", i, id)
			}
		}
	}
	// A series takes 72 bytes, its names about 40, the indexes at most 22, and a service about 100
	// in a map. With the race detector, calls copy series to the heap.
	if bytes := allocated(fill) / (services * operations); bytes > 400 {
		t.Errorf("%d bytes per series", bytes)
	}
	section := c.AppendSeries(nil)
	last := Series{}
	n := 0
	if bytes := allocated(func() {
		c.EachOperation(func(s *Series, _ bool) {
			if n > 0 && last.compare(s) >= 0 {
				t.Fatalf("%v precedes %v", last, *s)
			}
			last = *s
			n++
		})
	}); bytes > 10_000 || n != services*operations {
		t.Errorf("EachOperation visits %d operations and allocates %d bytes", n, bytes)
	}
	if got, err := DecodeSeries(section); err != nil || len(got.Series) != n {
		t.Errorf("section has %d series, error %v", len(got.Series), err)
	}
	c.SeriesID(Series{Tenant: "a"}) // in order although it was added later
	c.EachOperation(func(s *Series, _ bool) {
		if n++; n == services*operations+1 && s.Tenant != "a" {
			t.Errorf("the first series is %v", *s)
		}
	})
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestOtherOperation checks that operations beyond the limit are noticed if another operation of
// the service has the name of their series.
func TestOtherOperation(t *testing.T) {
	for _, extra := range []int{0, 1} {
		c := NewCollector()
		c.SeriesID(Series{Service: "s", Operation: tracestore.OtherOperation})
		for i := range tracestore.MaxOperations - 1 + extra {
			c.SeriesID(Series{Service: "s", Operation: fmt.Sprint(i)})
		}
		n := 0
		c.EachOperation(func(_ *Series, others bool) {
			if others {
				n++
			}
		})
		if n != extra {
			t.Errorf("%d operations beyond the limit: %d series of them", extra, n)
		}
	}
}
