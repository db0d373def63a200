package storequery

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestExemplars checks that the picker returns the wanted number of spans, spread over starts and
// durations, and that the order of arrival does not matter.
func TestExemplars(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 5, 300, 20_000} {
		var all []tracestore.Exemplar
		for i := range n {
			e := tracestore.Exemplar{TraceID: otlpdata.TraceID{byte(i), byte(i >> 8)}, Name: "usual"}
			e.Start, e.Duration = rnd.Uint64N(1e12), 1000+rnd.Uint64N(100)
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
				if len(got) != min(n, want) || len(p.cells) > p.maxCells {
					t.Fatalf("%d of %d spans, want %d; %d cells", len(got), n, want, len(p.cells))
				}
				if before != nil && !slices.Equal(got, before) {
					t.Errorf("%d of %d spans: the picked spans depend on the order of arrival", len(got), n)
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

// TestMergedExemplars checks that pickers of parts pick the same spans together as one of all.
func TestMergedExemplars(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{10, 3000, 20_000} {
		one, parts := NewExemplarPicker(10), make([]*ExemplarPicker, 4)
		for i := range parts {
			parts[i] = NewExemplarPicker(10)
		}
		for i := range n {
			e := tracestore.Exemplar{TraceID: otlpdata.TraceID{byte(i), byte(i >> 8)}, Start: uint64(i) * 1e6, Duration: 1 + rnd.Uint64N(20)}
			one.Offer(e)
			parts[i*i*len(parts)/n/n].Offer(e) // the first is the largest
		}
		for _, p := range parts[1:] {
			parts[0].Merge(p)
		}
		if got, want := parts[0].Answer(), one.Answer(); !slices.Equal(got, want) {
			t.Errorf("%d spans: got %v\nwant %v", n, got, want)
		}
	}
}

// TestExemplarIntervals checks that the intervals are as short as the maximum number of cells
// permits.
func TestExemplarIntervals(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{100, 1000, 1500, 4000, 30_000} {
		var all []tracestore.Exemplar
		for i := range n {
			e := tracestore.Exemplar{TraceID: otlpdata.TraceID{byte(i), byte(i >> 8)}}
			e.Start, e.Duration = rnd.Uint64()>>rnd.IntN(64), 1+rnd.Uint64N(100)
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
				cells[exemplarCell{tracestore.HeatBucketOf(e.Duration), e.Start >> want}] = true
			}
			if len(cells) <= p.maxCells {
				break
			}
		}
		if p.shift != want {
			t.Errorf("%d spans: intervals of 2^%d ns, want 2^%d", n, p.shift, want)
		}
	}
}

// TestExemplarLongNames checks that long names are cut.
func TestExemplarLongNames(t *testing.T) {
	p := NewExemplarPicker(1)
	p.Offer(tracestore.Exemplar{Service: strings.Repeat("s", 300), Name: strings.Repeat("ü", 300)})
	if e := p.Answer()[0]; len(e.Service) != MaxFacetText || e.Name != strings.Repeat("ü", MaxFacetText/2) {
		t.Errorf("service of %d bytes, name of %d bytes", len(e.Service), len(e.Name))
	}
}
