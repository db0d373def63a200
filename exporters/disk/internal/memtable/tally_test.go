package memtable

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

type seriesMinute struct {
	stats.Series
	minute uint64
}

// tallied returns calls and sums of durations by series and minute, from Tally.
func tallied(tb testing.TB, src source.Source) map[seriesMinute][2]uint64 {
	tb.Helper()
	out := make(map[seriesMinute][2]uint64)
	ok, err := src.(source.Tally).Tally(context.Background(), func(c *stats.Collector, oldest, newest uint64) {
		wanted := make([]bool, len(c.AllSeries()))
		for i := range wanted {
			wanted[i] = true
		}
		c.EachPoint(stats.MinuteOf(oldest), stats.MinuteOf(newest), wanted, func(i int, minute uint64, durations *tracestore.Histogram) {
			k := seriesMinute{c.AllSeries()[i], minute}
			out[k] = [2]uint64{out[k][0] + durations.Count(), addUpTo(out[k][1], durations.Sum)}
		})
	})
	if !ok || err != nil {
		tb.Fatalf("Tally: %t, %v", ok, err)
	}
	return out
}

// seriesOf returns the expected result of tallied.
func seriesOf(tb testing.TB, batches ...*otlpdata.Batch) map[seriesMinute][2]uint64 {
	tb.Helper()
	out, seen := make(map[seriesMinute][2]uint64), map[string]*storequery.Dedup{}
	for _, b := range batches {
		tenant := b.Meta().Tenant
		if seen[tenant] == nil {
			seen[tenant] = storequery.NewDedup()
		}
		err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
			if !seen[tenant].First(s) {
				return nil
			}
			at := seriesMinute{stats.Series{Tenant: tenant, Service: s.Resource.Service, Operation: s.Operation(), Kind: s.KindName(),
				Error: s.StatusCode == otlpdata.StatusError}, stats.MinuteOf(s.Start)}
			duration, _ := s.Duration()
			out[at] = [2]uint64{out[at][0] + 1, addUpTo(out[at][1], duration)}
			if n := s.AdjustedCount() - 1; n > 0 {
				var times tracestore.Histogram
				times.ObserveN(duration, n)
				at.Unsampled = true
				out[at] = [2]uint64{out[at][0] + n, addUpTo(out[at][1], times.Sum)}
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return out
}

func addUpTo(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return ^uint64(0)
}

// TestTally checks that each span is counted once, even if duplicates are added after it was
// counted.
func TestTally(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 1))
		table := New(tight())
		var sent []*otlpdata.Batch
		for _, b := range randomBatches(t, seed, 20) {
			if sent = append(sent, b); rng.IntN(2) == 0 {
				sent = append(sent, sent[rng.IntN(len(sent))])
			}
		}
		for i, b := range sent {
			fill(t, table, []*otlpdata.Batch{b})
			if rng.IntN(2) == 0 || i == len(sent)-1 {
				old := table.Source()
				want := seriesOf(t, sent[:i+1]...)
				if got := tallied(t, old); !maps.Equal(got, want) {
					t.Fatalf("seed %d, %d batches:\n got %v\nwant %v", seed, i+1, got, want)
				}
			}
		}
		if got := tallied(t, table.Source()); !maps.Equal(got, seriesOf(t, sent...)) {
			t.Errorf("seed %d: second call returned %v", seed, got)
		}
	}
}

// TestTallyOfManyDuplicates repeats requests until the duplicate filter is full.
func TestTallyOfManyDuplicates(t *testing.T) {
	o := tight()
	o.MaxRows = 40
	table := New(o)
	g := newGenerator(1)
	var sent []*otlpdata.Batch
	for range 30 {
		b := g.batch(t, "", 12)
		sent = append(sent, b, b)
	}
	for _, b := range sent {
		if _, err := table.Append(b, 0); err != nil {
			t.Fatal(err)
		}
	}
	src := table.Source()
	rows, _, _ := src.Bounds()
	if got, want := tallied(t, src), seriesOf(t, sent...); rows < 400 || !maps.Equal(got, want) {
		t.Errorf("%d rows:\n got %v\nwant %v", rows, got, want)
	}
}

// TestNoTally checks that there is no tally for spans in too many minutes, for lost definitions,
// and after the context ended.
func TestNoTally(t *testing.T) {
	none := func(what string, table *Table) {
		t.Helper()
		for range 2 {
			ok, err := table.snapshot().Tally(t.Context(), func(*stats.Collector, uint64, uint64) { t.Errorf("%s: Tally called look", what) })
			if ok || err != nil || table.tally.collector != nil || table.tally.filter != nil {
				t.Errorf("%s: %t, %v", what, ok, err)
			}
		}
	}
	table := New(Options{})
	fill(t, table, hostile(t, 100, maxTallyCells/100+10, func(n, i int, _ *otlpdata.Resource, s *otlpdata.Span) {
		s.Start = uint64(n*1000+i) * uint64(time.Minute)
		s.End = s.Start + 10
	}))
	none("many minutes", table)

	batches := randomBatches(t, 1, 12)
	records := fill(t, New(tight()), batches)
	table = New(tight())
	for _, r := range records[1:] {
		if _, err := table.Replay(r); err != nil {
			t.Fatal(err)
		}
	}
	table.tables.Shapes = nil // as if all definitions were lost
	none("lost shapes", table)

	table = New(tight())
	fill(t, table, batches)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if ok, err := table.snapshot().Tally(ctx, func(*stats.Collector, uint64, uint64) {}); ok || err == nil {
		t.Errorf("ended context: %t, %v", ok, err)
	}
	if got := tallied(t, table.Source()); !maps.Equal(got, seriesOf(t, batches...)) {
		t.Errorf("after an ended context: %v", got)
	}
}

// TestTallyWhileSpansArrive checks that concurrent calls count all spans that were stored before.
func TestTallyWhileSpansArrive(t *testing.T) {
	batches := benchBatches(t, 6000, 300)
	table := New(Options{BlockRows: 128, Pool: NewPool(16<<10, 0)})
	spans := 0
	for _, b := range batches {
		spans += b.Len()
	}
	var all sync.WaitGroup
	for w := range 3 {
		all.Go(func() {
			for i := w; i < len(batches); i += 3 {
				if _, err := table.Append(batches[i], 0); err != nil {
					t.Error(err)
				}
				src := table.Source()
				rows, _, _ := src.Bounds()
				n := uint64(0)
				for _, v := range tallied(t, src) {
					n += v[0]
				}
				if n < uint64(rows) || n > uint64(spans) {
					t.Errorf("%d of %d spans are counted", n, rows)
				}
			}
		})
	}
	all.Wait()
	if got := tallied(t, table.Source()); !maps.Equal(got, seriesOf(t, batches...)) {
		t.Error("final tally is incomplete")
	}
}
