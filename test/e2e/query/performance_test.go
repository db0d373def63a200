package query_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// rateAnswer is a response of /api/metrics.
type rateAnswer struct {
	Metrics []struct {
		Labels       []struct{ Name, Value string }
		MetricPoints []struct {
			GaugeValue struct{ DoubleValue any }
			Timestamp  time.Time
		}
	}
}

// minuteKey identifies the calls of an operation that start within one minute. The operation "" is
// the whole service.
type minuteKey struct {
	service, operation string
	minute             int64
}

// minuteCalls are the durations and errors of these calls.
type minuteCalls struct {
	durations []time.Duration // sorted
	errors    int
}

// callsOf returns the calls of the data set that have a span of the given kind, by minute.
func callsOf(d *bench.Dataset, spans int, kind int32) map[minuteKey]*minuteCalls {
	out := map[minuteKey]*minuteCalls{}
	for i := range d.Traces(spans) {
		for _, s := range d.Trace(i) {
			if s.Kind != kind {
				continue
			}
			for _, operation := range []string{"", s.Name} {
				key := minuteKey{d.Resources()[s.Resource].Service, operation, time.Unix(0, int64(s.Start)).Unix() / 60}
				if out[key] == nil {
					out[key] = &minuteCalls{}
				}
				out[key].durations = append(out[key].durations, time.Duration(s.End-s.Start))
				if s.StatusCode == otlpdata.StatusError {
					out[key].errors++
				}
			}
		}
	}
	for _, c := range out {
		slices.Sort(c.durations)
	}
	return out
}

// TestServicePerformance checks that every store counts every call and error once, and returns
// quantiles of durations within 6 %, when spans arrive in random order, and after a restart.
func TestServicePerformance(t *testing.T) {
	spans := 20_000
	if testing.Short() {
		spans = 2_000
	}
	data := bench.New(7, time.Now().Truncate(time.Minute).Add(-3*time.Minute-5*time.Second))
	testDataset(t, data, spans, func(p *inprocess.Program) { checkRates(p, data, spans) })
}

// checkRates compares the rates of both span kinds, by service and by operation, with the data set.
func checkRates(p *inprocess.Program, data *bench.Dataset, spans int) {
	p.T.Helper()
	for kind, name := range map[int32]string{otlpdata.KindServer: "server", otlpdata.KindClient: "client"} {
		truth := callsOf(data, spans, kind)
		for _, grouped := range []bool{false, true} {
			want := map[minuteKey]*minuteCalls{}
			for key, c := range truth {
				if (key.operation != "") == grouped {
					want[key] = c
				}
			}
			params := url.Values{"service": data.Services(), "spanKind": {name}, "groupByOperation": {fmt.Sprint(grouped)},
				"step": {"60000"}, "ratePer": {"60000"}, "lookback": {"600000"}}
			checkRatesOf(p, params, want)
		}
	}
}

// checkRatesOf compares the answers for params with the expected calls.
func checkRatesOf(p *inprocess.Program, params url.Values, want map[minuteKey]*minuteCalls) {
	p.T.Helper()
	calls := rates(p, "calls", params)
	if len(want) < 40 || !slices.Equal(sortedKeys(calls), sortedKeys(want)) {
		p.T.Fatalf("%v: %d points, want %d", params, len(calls), len(want))
	}
	errors := rates(p, "errors", params)
	var quantiles []map[minuteKey]float64
	shares := []float64{0.5, 0.95, 0.99}
	for _, q := range shares {
		params.Set("quantile", fmt.Sprint(q))
		quantiles = append(quantiles, rates(p, "latencies", params))
	}
	for key, c := range want {
		n := float64(len(c.durations))
		if got := calls[key] * 60; math.Abs(got-n) > 1e-6 {
			p.T.Errorf("%v: %v calls, want %v", key, got, n)
		}
		if got := errors[key] * n; math.Abs(got-float64(c.errors)) > 1e-6 {
			p.T.Errorf("%v: %v errors, want %v", key, got, c.errors)
		}
		for i, q := range shares {
			exact := c.durations[int(math.Ceil(q*n))-1].Seconds() * 1000
			if got := quantiles[i][key]; math.Abs(got-exact) > 0.06*exact {
				p.T.Errorf("%v: p%v is %v ms, want %v", key, 100*q, got, exact)
			}
		}
	}
}

func sortedKeys[V any](m map[minuteKey]V) []string {
	var out []string
	for k := range maps.Keys(m) {
		out = append(out, fmt.Sprint(k))
	}
	slices.Sort(out)
	return out
}

// rates returns the points of a response that have calls. A point covers the minute before its
// timestamp.
func rates(p *inprocess.Program, what string, params url.Values) map[minuteKey]float64 {
	p.T.Helper()
	status, body := harness.Fetch(p.T, p.QueryURL()+"/api/metrics/"+what+"?"+params.Encode())
	var a rateAnswer
	if err := json.Unmarshal(body, &a); err != nil || status != http.StatusOK {
		p.T.Fatalf("%s: %d %v %s", what, status, err, body)
	}
	out := map[minuteKey]float64{}
	for _, m := range a.Metrics {
		labels := map[string]string{}
		for _, l := range m.Labels {
			labels[l.Name] = l.Value
		}
		for _, point := range m.MetricPoints {
			value, isNumber := point.GaugeValue.DoubleValue.(float64)
			if isNumber && (what != "calls" || value > 0) {
				out[minuteKey{labels["service_name"], labels["operation"], point.Timestamp.Unix()/60 - 1}] = value
			}
		}
	}
	return out
}
