package spanmetrics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

// Points are at whole units that have ended, and not before the lookback.
func TestGrid(t *testing.T) {
	f := func(q Query, now string, want string) {
		t.Helper()
		clock := func(text string) time.Time {
			at, err := time.Parse(time.TimeOnly, text)
			if err != nil {
				t.Fatal(err)
			}
			return at.AddDate(2024, 0, 0)
		}
		at := clock(now)
		if q.End.IsZero() {
			q.End = at
		}
		g, err := NewGrid(&q, at)
		if err != nil {
			t.Fatal(err)
		}
		got := "none"
		if g.points() > 0 {
			show := func(units int64) string { return time.Unix(units*g.unit*60, 0).UTC().Format("15:04") }
			from, to := g.times()
			got = fmt.Sprintf("%d: %s to %s, of %s to %s by %s", g.points(), show(g.first), show(g.last), from.UTC().Format(time.TimeOnly),
				to.UTC().Format("15:04:05.999999999"), g.unitLength())
		}
		if got != want {
			t.Errorf("%+v: got %s, want %s", q, got, want)
		}
	}
	const hour, minute = time.Hour, time.Minute
	f(Query{Lookback: hour, Step: 5 * time.Second, RatePer: 10 * minute}, "12:34:56",
		"60: 11:35 to 12:34, of 11:25:00 to 12:33:59.999999999 by 1m0s")
	// At 12:34:00, the calls of the last minute are not reported yet.
	f(Query{Lookback: hour, Step: minute, RatePer: minute}, "12:34:00", "60: 11:34 to 12:33, of 11:33:00 to 12:32:59.999999999 by 1m0s")
	f(Query{Lookback: hour, Step: minute + 1, RatePer: 1}, "12:34:10", "30: 11:36 to 12:34, of 11:35:00 to 12:33:59.999999999 by 1m0s")
	f(Query{Lookback: hour, Step: 20 * minute, RatePer: 10 * minute}, "12:34:56",
		"3: 11:50 to 12:30, of 11:40:00 to 12:29:59.999999999 by 10m0s")
	f(Query{Lookback: 6 * hour, Step: 2 * hour, RatePer: 4 * hour}, "12:34:56",
		"3: 08:00 to 12:00, of 04:00:00 to 11:59:59.999999999 by 1h0m0s")
	f(Query{Lookback: 0, Step: minute, RatePer: minute}, "12:34:56", "none")
	f(Query{Lookback: hour, Step: hour, RatePer: 0, End: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}, "12:34:56", "none")
	f(Query{Lookback: hour, Step: minute, RatePer: minute, End: time.Unix(90, 0)}, "12:34:56",
		"2: 00:00 to 00:01, of 00:00:00 to 00:00:59.999999999 by 1m0s")
	f(Query{Lookback: hour, End: time.Unix(math.MinInt64, 0)}, "12:34:56", "none")
	f(Query{Lookback: math.MaxInt64, Step: math.MaxInt64, RatePer: math.MaxInt64, End: time.Unix(math.MaxInt64, 0)}, "12:34:56", "none")
	_, err := NewGrid(&Query{Lookback: maxSteps*minute + minute, End: noon}, noon)
	if err == nil || err.Error() != "lookback has 11001 steps of 1 minutes, which is more than 11000" {
		t.Errorf("error %v", err)
	}
}

// randomSeries returns points at the given minutes with random numbers of calls and errors.
func randomSeries(r *rand.Rand, units ...int64) (s tracestore.MetricSeries) {
	for _, u := range units {
		p := tracestore.MetricPoint{Start: uint64(u) * uint64(time.Minute), Calls: 1 + r.Uint64N(5)}
		p.Errors = r.Uint64N(p.Calls + 1)
		for range p.Calls {
			p.Durations.Observe(r.Uint64N(1e9))
		}
		s.Points = append(s.Points, p)
	}
	return s
}

// The sliding window gives the same points as adding up each window separately.
func TestPointsEqualNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		g := Grid{unit: 1, step: 1 + r.Int64N(7), window: 1 + r.Int64N(12), first: 20}
		g.last = g.first + g.step*r.Int64N(15)
		var units []int64
		for u := max(g.first-g.window, 0); u < g.last; u++ {
			if r.IntN(3) == 0 {
				units = append(units, u)
			}
		}
		s := randomSeries(r, units...)
		for _, m := range []Metric{CallRates(), ErrorRates(), Latencies(0.9)} {
			a := Answer{grid: g, value: m.value, series: []tracestore.MetricSeries{s}}
			points := a.Series(0)
			var got, want []string
			for at, v := range points.Points() {
				got = append(got, fmt.Sprint(at, v))
			}
			for u := g.first; u <= g.last; u += g.step {
				if len(units) > 0 && u > units[0] {
					want = append(want, fmt.Sprint(u*60, naive(&s, m.Operation, u-g.window, u)))
				}
			}
			if !slices.Equal(got, want) || int64(len(got)) != g.pointsOf(&s) {
				t.Fatalf("%s of %v at %+v: got %v, want %v", m.Operation, units, g, got, want)
			}
		}
	}
}

// naive measures the calls of the units from a up to, but not including, b.
func naive(s *tracestore.MetricSeries, op core.Operation, a, b int64) float64 {
	var calls, errors float64
	var durations tracestore.Histogram
	for i := range s.Points {
		if p := &s.Points[i]; int64(p.Start) >= a*int64(time.Minute) && int64(p.Start) < b*int64(time.Minute) {
			calls, errors = calls+float64(p.Calls), errors+float64(p.Errors)
			durations.Add(&p.Durations)
		}
	}
	switch {
	case op == core.OpGetCallRates:
		return calls / float64(60*(b-a))
	case calls == 0:
		return math.NaN()
	case op == core.OpGetErrorRates:
		return errors / calls
	}
	return durations.Quantile(0.9) / 1e6
}

// A response has as many whole series as fit, and a warning if some do not.
func TestAnswerLimit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all := []tracestore.MetricSeries{randomSeries(r, 0), {}, randomSeries(r, 9), randomSeries(r, 4), randomSeries(r, 5)}
	g := Grid{unit: 1, first: 1, last: 10, step: 1, window: 1} // 10, 0, 1, 6 and 5 points
	for most, want := range map[int64]int{22: 4, 21: 3, 17: 3, 16: 2, 10: 1, 9: 0} {
		a := Answer{grid: g}
		a.limit(all, most)
		if len(a.series) != want || a.Incomplete.Complete() != (want == 4) {
			t.Errorf("%d points: %d series, %+v", most, len(a.series), a.Incomplete)
		}
	}
	a := Answer{grid: g, Incomplete: tracestore.Because(tracestore.ReasonUnavailable, "down").Of("b")}
	if a.limit(all, 9); !strings.HasPrefix(a.Incomplete.Text(), "store b: down; a response has at most 9 points") {
		t.Errorf("%+v", a.Incomplete)
	}
}
