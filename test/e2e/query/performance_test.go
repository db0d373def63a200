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
	"github.com/tracing-backend/tracing/test/bench/load"
	"github.com/tracing-backend/tracing/test/harness"
)

// uiRates is the answer of /api/metrics/...
type uiRates struct {
	Metrics []struct {
		Labels       []struct{ Name, Value string }
		MetricPoints []struct {
			GaugeValue struct{ DoubleValue any }
			Timestamp  time.Time
		}
	}
}

// minuteOf is the calls of an operation ("": of the service) that start within a minute.
type minuteOf struct {
	service, operation string
	minute             int64
}

// callsIn is how these calls went.
type callsIn struct {
	durations []time.Duration // sorted
	errors    int
}

// callsOf returns what the spans of a kind come to.
func callsOf(d *bench.Dataset, spans int, kind int32) map[minuteOf]*callsIn {
	out := map[minuteOf]*callsIn{}
	for i := range d.Traces(spans) {
		for _, s := range d.Trace(i) {
			if s.Kind != kind {
				continue
			}
			for _, operation := range []string{"", s.Name} {
				key := minuteOf{d.Resources()[s.Resource].Service, operation, time.Unix(0, int64(s.Start)).Unix() / 60}
				if out[key] == nil {
					out[key] = &callsIn{}
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

// TestServicePerformance: every store counts every call and error once, and knows durations within 6 %, in whatever order spans come, and
// after a restart.
func TestServicePerformance(t *testing.T) {
	spans := 20_000
	if testing.Short() {
		spans = 2_000
	}
	stores := map[string][]string{
		"memory": {"exporters::memory::max_bytes=256MiB",
			"service::pipelines::traces::exporters=[memory]", "extensions::query::storage=memory"},
		"disk":     nil,
		"segments": {"exporters::disk::memtable::max_spans=3000"},
	}
	for name, set := range stores {
		t.Run(name, func(t *testing.T) {
			data := bench.New(7, time.Now().Truncate(time.Minute).Add(-3*time.Minute-5*time.Second))
			dir := t.TempDir()
			p := harness.Start(t, append(set, "service::data_dir="+dir)...)
			r, err := load.Run(t.Context(), load.Options{Target: p.OTLPGRPC(), Connections: 2, InFlight: 2, Retry: time.Minute},
				harness.Shuffled(data.Requests(spans, 100)))
			if err != nil || r.Acked < spans {
				t.Fatalf("%d spans were acknowledged, %v", r.Acked, err)
			}
			checkRates(p, data, spans)
			if name == "memory" {
				return
			}
			if err := p.Stop(); err != nil {
				t.Fatal(err)
			}
			checkRates(harness.Start(t, append(set, "service::data_dir="+dir)...), data, spans)
		})
	}
}

func checkRates(p *harness.Program, data *bench.Dataset, spans int) {
	p.T.Helper()
	for kind, name := range map[int32]string{otlpdata.KindServer: "server", otlpdata.KindClient: "client"} {
		truth := callsOf(data, spans, kind)
		for _, grouped := range []bool{false, true} {
			want := map[minuteOf]*callsIn{}
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

func checkRatesOf(p *harness.Program, params url.Values, want map[minuteOf]*callsIn) {
	p.T.Helper()
	calls := rates(p, "calls", params)
	if len(want) < 40 || !slices.Equal(sortedKeys(calls), sortedKeys(want)) {
		p.T.Fatalf("%v: %d points, want %d", params, len(calls), len(want))
	}
	errors := rates(p, "errors", params)
	var quantiles []map[minuteOf]float64
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

func sortedKeys[V any](m map[minuteOf]V) []string {
	var out []string
	for k := range maps.Keys(m) {
		out = append(out, fmt.Sprint(k))
	}
	slices.Sort(out)
	return out
}

// rates returns the points of an answer that tell of calls: a point is about the minute before it.
func rates(p *harness.Program, what string, params url.Values) map[minuteOf]float64 {
	p.T.Helper()
	status, body := harness.Fetch(p.T, p.QueryURL()+"/api/metrics/"+what+"?"+params.Encode())
	var a uiRates
	if err := json.Unmarshal(body, &a); err != nil || status != http.StatusOK {
		p.T.Fatalf("%s: %d %v %s", what, status, err, body)
	}
	out := map[minuteOf]float64{}
	for _, m := range a.Metrics {
		labels := map[string]string{}
		for _, l := range m.Labels {
			labels[l.Name] = l.Value
		}
		for _, point := range m.MetricPoints {
			value, isNumber := point.GaugeValue.DoubleValue.(float64)
			if isNumber && (what != "calls" || value > 0) {
				out[minuteOf{labels["service_name"], labels["operation"], point.Timestamp.Unix()/60 - 1}] = value
			}
		}
	}
	return out
}
