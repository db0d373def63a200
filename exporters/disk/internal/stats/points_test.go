package stats

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestSomePoints compares PointsOf and EachPoint for some series and minutes with the selection
// from all points.
func TestSomePoints(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		c := collect(randomSpans(seed, 500))
		s, err := DecodeSeries(c.AppendSeries(nil))
		if err != nil {
			t.Fatal(err)
		}
		first, last, _ := s.Minutes()
		first, last = first+rng.Uint64N(2), last-rng.Uint64N(2)
		asked := map[Series]bool{}
		for _, x := range s.Series {
			asked[x] = rng.IntN(2) == 0
		}
		want, got, live := map[seriesMinute]string{}, map[seriesMinute]string{}, map[seriesMinute]*tracestore.Histogram{}
		for p := range s.Points(first, last) {
			if x := s.Series[p.Series]; asked[x] {
				want[seriesMinute{x, p.Minute}] = fmt.Sprint(buckets(&p.Durations), p.Durations.Sum)
			}
		}
		for p := range s.PointsOf(first, last, selectedOf(s.Series, asked)) {
			got[seriesMinute{s.Series[p.Series], p.Minute}] = fmt.Sprint(buckets(&p.Durations), p.Durations.Sum)
		}
		c.EachPoint(first, last, selectedOf(c.AllSeries(), asked), func(i int, minute uint64, durations *tracestore.Histogram) {
			k := seriesMinute{c.AllSeries()[i], minute}
			if live[k] == nil {
				live[k] = &tracestore.Histogram{}
			}
			live[k].Add(durations)
		})
		if !maps.Equal(got, want) {
			t.Errorf("seed %d:\n got %v\nwant %v", seed, got, want)
		}
		clear(got)
		for k, h := range live {
			got[k] = fmt.Sprint(buckets(h), h.Sum)
		}
		if !maps.Equal(got, want) || len(want) == 0 {
			t.Errorf("seed %d: EachPoint:\n got %v\nwant %v", seed, got, want)
		}
	}
}

func selectedOf(series []Series, asked map[Series]bool) []bool {
	out := make([]bool, len(series))
	for i, s := range series {
		out[i] = asked[s]
	}
	return out
}
