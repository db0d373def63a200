package storequery

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestMetricPoints checks that points begin at multiples of the step, and that spans and histograms
// of a minute belong to the same point.
func TestMetricPoints(t *testing.T) {
	const minute = uint64(time.Minute)
	c := NewMetricsCounter(tracestore.MetricsQuery{Step: 7 * time.Minute, ByOperation: true})
	series, _ := c.Series("cart", "read", "server")
	var h tracestore.Histogram
	h.Observe(100)
	h.Observe(200)
	for _, start := range []uint64{7 * minute, 14*minute - 1, 0, 7*minute - 1, math.MaxUint64} {
		c.AddSpan(series, start, 500, 2, start%2 == 0)
		c.AddHistogram(series, start/minute*minute, &h, true)
	}
	a := c.Answer()
	if len(a.Series) != 1 || !a.Complete() || a.Step != 7*minute {
		t.Fatalf("%+v", a)
	}
	var got []string
	for _, p := range a.Series[0].Points {
		got = append(got, fmt.Sprintf("%d %d %d %d %d", p.Start/minute, p.Calls, p.Errors, p.Durations.Count(), p.Durations.Sum))
	}
	want := []string{"0 8 6 8 2600", "7 8 6 8 2600", "307445733 4 2 4 1300"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAddPoint checks that the points of two answers add up.
func TestAddPoint(t *testing.T) {
	const minute = uint64(time.Minute)
	c := NewMetricsCounter(tracestore.MetricsQuery{})
	series, _ := c.Series("cart", "", "")
	p := tracestore.MetricPoint{Start: 3 * minute, Calls: 5, Errors: 2}
	p.Durations.ObserveN(100, 5)
	c.AddPoint(series, &p)
	c.AddPoint(series, &p)
	p.Start = 4 * minute
	c.AddPoint(series, &p)
	got := c.Answer().Series[0].Points
	if len(got) != 2 || got[0].Calls != 10 || got[0].Errors != 4 || got[0].Durations.Count() != 10 || got[0].Durations.Sum != 1000 ||
		got[1].Calls != 5 || p.Durations.Count() != 5 {
		t.Errorf("%+v", got)
	}
}

func TestOtherOperations(t *testing.T) {
	c := NewMetricsCounter(tracestore.MetricsQuery{ByOperation: true})
	for i := range tracestore.MaxOperations + 10 {
		for _, service := range []string{"a", "b"} {
			series, ok := c.Series(service, fmt.Sprint(i), "")
			if !ok {
				t.Fatal("maximum number of series reached")
			}
			c.AddSpan(series, 0, 1, 1, false)
		}
	}
	a := c.Answer()
	others := 0
	for _, s := range a.Series {
		if s.Operation == tracestore.OtherOperation && s.Points[0].Calls == 10 {
			others++
		}
	}
	if len(a.Series) != 2*(tracestore.MaxOperations+1) || others != 2 || !a.Complete() {
		t.Errorf("%d series, %d others, complete is %t", len(a.Series), others, a.Complete())
	}
}

// TestMetricsLimit checks that a result with too many points is incomplete.
func TestMetricsLimit(t *testing.T) {
	const limit = 100
	counter := func() *MetricsCounter {
		c := NewMetricsCounter(tracestore.MetricsQuery{})
		c.limit = limit
		return c
	}
	check := func(what string, c *MetricsCounter, want bool) {
		t.Helper()
		a := c.Answer()
		points := 0
		for _, s := range a.Series {
			points += len(s.Points)
		}
		if points != limit || a.Complete() != want || strings.Contains(a.Text(), "narrow the time range") == want {
			t.Errorf("%s: %d points, complete is %t %q", what, points, a.Complete(), a.Text())
		}
	}
	for more := range 2 {
		c := counter()
		series, _ := c.Series("a", "", "")
		for i := range uint64(limit + more) {
			c.AddSpan(series, i*uint64(time.Minute), 1, 1, false)
		}
		check("minutes", c, more == 0)
	}
	c := counter()
	for i := range limit + 1 {
		if series, ok := c.Series(fmt.Sprint(i), "", ""); ok {
			c.AddSpan(series, 0, 1, 1, false)
		}
	}
	check("services", c, false)
}
