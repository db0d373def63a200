package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Points are at whole units, each of which is over, and none lies before the lookback.
func TestRateGrid(t *testing.T) {
	f := func(q rateQuestion, now string, want string) {
		t.Helper()
		clock := func(text string) time.Time {
			at, err := time.Parse(time.TimeOnly, text)
			if err != nil {
				t.Fatal(err)
			}
			return at.AddDate(2024, 0, 0)
		}
		at := clock(now)
		if q.end.IsZero() {
			q.end = at
		}
		g, err := newRateGrid(&q, at)
		if err != nil {
			t.Fatal(err)
		}
		got := "none"
		if g.points() > 0 {
			show := func(units int64) string { return time.Unix(units*g.unit*60, 0).UTC().Format("15:04") }
			from, to := g.times()
			got = fmt.Sprintf("%d: %s to %s, of %s to %s by %s", g.points(), show(g.first), show(g.last), from.UTC().Format(time.TimeOnly),
				to.UTC().Format("15:04:05.999999999"), g.length())
		}
		if got != want {
			t.Errorf("%+v: got %s, want %s", q, got, want)
		}
	}
	const hour, minute = time.Hour, time.Minute
	f(rateQuestion{lookback: hour, step: 5 * time.Second, per: 10 * minute}, "12:34:56", "60: 11:35 to 12:34, of 11:25:00 to 12:33:59.999999999 by 1m0s")
	f(rateQuestion{lookback: hour, step: minute, per: minute}, "12:34:00", "60: 11:34 to 12:33, of 11:33:00 to 12:32:59.999999999 by 1m0s") // not settled
	f(rateQuestion{lookback: hour, step: minute + 1, per: 1}, "12:34:10", "30: 11:36 to 12:34, of 11:35:00 to 12:33:59.999999999 by 1m0s")
	f(rateQuestion{lookback: hour, step: 20 * minute, per: 10 * minute}, "12:34:56", "3: 11:50 to 12:30, of 11:40:00 to 12:29:59.999999999 by 10m0s")
	f(rateQuestion{lookback: 6 * hour, step: 2 * hour, per: 4 * hour}, "12:34:56", "3: 08:00 to 12:00, of 04:00:00 to 11:59:59.999999999 by 1h0m0s")
	f(rateQuestion{lookback: 0, step: minute, per: minute}, "12:34:56", "none")
	f(rateQuestion{lookback: hour, step: hour, per: 0, end: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}, "12:34:56", "none")
	f(rateQuestion{lookback: hour, step: minute, per: minute, end: time.Unix(90, 0)}, "12:34:56", "2: 00:00 to 00:01, of 00:00:00 to 00:00:59.999999999 by 1m0s")
	f(rateQuestion{lookback: hour, end: time.Unix(math.MinInt64, 0)}, "12:34:56", "none")
	f(rateQuestion{lookback: math.MaxInt64, step: math.MaxInt64, per: math.MaxInt64, end: time.Unix(math.MaxInt64, 0)}, "12:34:56", "none")
	_, err := newRateGrid(&rateQuestion{lookback: maxRateSteps*minute + minute, end: noon}, noon)
	if err == nil || err.Error() != "lookback has 11001 steps of 1 minutes, which is more than 11000" {
		t.Errorf("error %v", err)
	}
}

// seriesOf returns points at units of minutes, whose numbers of calls, and errors, are random.
func seriesOf(r *rand.Rand, units ...int64) (s tracestore.MetricSeries) {
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

// Every point is what one gets that adds up the time before it anew.
func TestRatesSlide(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		g := rateGrid{unit: 1, step: 1 + r.Int64N(7), window: 1 + r.Int64N(12), first: 20}
		g.last = g.first + g.step*r.Int64N(15)
		var units []int64
		for u := max(g.first-g.window, 0); u < g.last; u++ {
			if r.IntN(3) == 0 {
				units = append(units, u)
			}
		}
		s := seriesOf(r, units...)
		for _, m := range []measurement{callRates(), errorRates(), latencies(0.9)} {
			a := rateAnswer{grid: g, value: m.value}
			var got, want []string
			for at, v := range a.all(&s) {
				got = append(got, fmt.Sprint(at, v))
			}
			for u := g.first; u <= g.last; u += g.step {
				if len(units) > 0 && u > units[0] {
					want = append(want, fmt.Sprint(u*60, naive(&s, m.op, u-g.window, u)))
				}
			}
			if !slices.Equal(got, want) || int64(len(got)) != g.pointsOf(&s) {
				t.Fatalf("%s of %v at %+v: got %v, want %v", m.op, units, g, got, want)
			}
		}
	}
}

// naive measures the calls of units from a to before b.
func naive(s *tracestore.MetricSeries, op operation, a, b int64) float64 {
	var calls, errors float64
	var durations tracestore.Histogram
	for i := range s.Points {
		if p := &s.Points[i]; int64(p.Start) >= a*int64(time.Minute) && int64(p.Start) < b*int64(time.Minute) {
			calls, errors = calls+float64(p.Calls), errors+float64(p.Errors)
			durations.Add(&p.Durations)
		}
	}
	switch {
	case op == opGetCallRates:
		return calls / float64(60*(b-a))
	case calls == 0:
		return math.NaN()
	case op == opGetErrorRates:
		return errors / calls
	}
	return durations.Quantile(0.9) / 1e6
}

// An answer holds whole series, as many as there is room for, and says what is missing.
func TestRatesBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all := []tracestore.MetricSeries{seriesOf(r, 0), {}, seriesOf(r, 9), seriesOf(r, 4), seriesOf(r, 5)}
	g := rateGrid{unit: 1, first: 1, last: 10, step: 1, window: 1} // 10, 0, 1, 6 and 5 points
	for most, want := range map[int64]int{22: 4, 21: 3, 17: 3, 16: 2, 10: 1, 9: 0} {
		a := rateAnswer{grid: g}
		a.choose(all, most)
		if len(a.series) != want || (a.missing == "") != (want == 4) {
			t.Errorf("%d points: %d series, %q", most, len(a.series), a.missing)
		}
	}
}

// Series that take more memory than answers may are a reason to come back later.
func TestRatesHoldMemory(t *testing.T) {
	const path = "/api/metrics/calls?service=web&endTs=1714557780000"
	for memory, status := range map[int64]int{100: http.StatusTooManyRequests, 1000: http.StatusOK} {
		budget := pipeline.NewBudget(memory)
		h, _ := api(t, newFakeStore(shop()), func(h *handler) { h.memory = budget })
		if w := ask(t, h, http.MethodGet, path); w.Code != status || budget.Used() != 0 {
			t.Errorf("of %d bytes: %d %s, %d bytes stay in use", memory, w.Code, w.Body, budget.Used())
		}
	}
}

// The store is asked for whole units, which begin a window before the first point.
func TestRatesAsk(t *testing.T) {
	var asked []tracestore.MetricsQuery
	store := newFakeStore(shop())
	store.askedRates = func(q tracestore.MetricsQuery) { asked = append(asked, q) }
	h, _ := api(t, store)
	for _, path := range []string{"calls?service=web",
		"errors?service=a&service=b&groupByOperation=true&spanKind=unspecified&spanKind=consumer&endTs=1714557899999&lookback=600000&step=120000&ratePer=180001"} {
		if w := ask(t, h, http.MethodGet, "/api/metrics/"+path); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	want := []tracestore.MetricsQuery{
		{Services: []string{"web"}, Kinds: []string{"server"}, From: noon.Add(-70 * time.Minute), To: noon.Add(-time.Minute - 1), Step: time.Minute},
		{Services: []string{"a", "b"}, Kinds: []string{"", "consumer"}, ByOperation: true,
			From: start.Add(-8 * time.Minute), To: start.Add(4*time.Minute - 1), Step: 2 * time.Minute},
	}
	for i := range asked {
		asked[i].From, asked[i].To = asked[i].From.UTC(), asked[i].To.UTC()
	}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("asked %v\nwant  %v", asked, want)
	}
}
