package tempo

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/internal/wire/streaming"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// metricSpan is a span as metrics queries count it.
type metricSpan struct {
	start, duration time.Duration // start: after querytest.Start
	color           string
	size            float64 // NaN: none
}

// randomSpans returns spans and the traces that contain them.
func randomSpans(r *rand.Rand) (list []metricSpan, td ptrace.Traces) {
	td = ptrace.NewTraces()
	ss := querytest.AddService(td, "svc")
	for i := range 300 {
		s := metricSpan{time.Duration(r.IntN(1000)) * 100 * time.Millisecond, time.Duration(1 + r.IntN(1e6)), "", math.NaN()}
		sp := querytest.AddSpan(ss, pcommon.TraceID{14: byte(i / 7), 15: 1}, byte(i), byte(i>>8), "op", s.start)
		sp.SetEndTimestamp(sp.StartTimestamp() + pcommon.Timestamp(s.duration))
		if r.IntN(4) > 0 {
			s.color = []string{"red", "green", "blue"}[r.IntN(3)]
			sp.Attributes().PutStr("color", s.color)
		}
		switch r.IntN(3) {
		case 0:
			s.size = float64(r.IntN(50) - 10)
			sp.Attributes().PutInt("size", int64(s.size))
		case 1:
			s.size = float64(r.IntN(100)) / 4
			sp.Attributes().PutDouble("size", s.size)
		}
		list = append(list, s)
	}
	return list, td
}

// metricsAnswer is the part of a response that the test reads.
type metricsAnswer struct {
	Series []struct {
		Labels []struct {
			Key   string
			Value struct {
				StringValue string
				DoubleValue float64
			}
		}
		Samples []struct {
			TimestampMs string
			Value       float64
		}
	}
}

// expected calculates the samples of a function of the spans of a part: values by the suffix of the
// name of a series. Numbers are in the unit of the response.
func expected(function string, numbers []float64, spans int, step time.Duration) map[string]float64 {
	out := make(map[string]float64)
	switch {
	case function == "count_over_time()":
		out[""] = float64(spans)
	case function == "rate()":
		out[""] = float64(spans) / step.Seconds()
	case len(numbers) == 0:
	case function[:3] == "sum", function[:3] == "avg":
		for _, n := range numbers {
			out[""] += n
		}
		if function[:3] == "avg" {
			out[""] /= float64(len(numbers))
		}
	case function[:3] == "min":
		out[""] = slices.Min(numbers)
	case function[:3] == "max":
		out[""] = slices.Max(numbers)
	case function[:3] == "qua":
		slices.Sort(numbers)
		for _, q := range []float64{0, 0.5, 1} {
			rank := max(int(math.Ceil(q*float64(len(numbers)))), 1)
			out[fmt.Sprint(" ", q)] = numbers[rank-1]
		}
	}
	return out
}

// TestRandomMetrics compares samples with their definition.
func TestRandomMetrics(t *testing.T) {
	r := rand.New(rand.NewPCG(soak.Seed(t), 1))
	for range 5 {
		list, td := randomSpans(r)
		h := api(t, querytest.FullStore{Store: querytest.NewStore(td)})
		for range 20 {
			checkMetrics(t, r, list, h)
		}
	}
}

func checkMetrics(t *testing.T, r *rand.Rand, list []metricSpan, h http.Handler) {
	t.Helper()
	pick := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	field := pick("duration", "span.size")
	function := pick("rate()", "count_over_time()", "sum_over_time("+field+")", "avg_over_time("+field+")", "min_over_time("+field+")",
		"max_over_time("+field+")", "quantile_over_time("+field+", 0, .5, 1)")
	by, where := pick("", " by (span.color)"), pick("{}", `{ span.color = "red" }`, "{ duration < 500us }")
	step := time.Duration(1+r.IntN(40)) * time.Second
	from := querytest.Start.Add(time.Duration(r.IntN(50)) * time.Second)
	to := from.Add(time.Duration(1+r.IntN(60)) * time.Second)
	q := where + " | " + function + by
	path := fmt.Sprintf("/tempo/api/metrics/query_range?q=%s&start=%d&end=%d&step=%d&exemplars=0", url.QueryEscape(q), from.Unix(), to.Unix(),
		int(step.Seconds()))
	w := querytest.Ask(t, h, http.MethodGet, path)
	var got metricsAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s: %v", q, w.Code, w.Body, err)
	}
	samples := make(map[string]float64)
	for _, s := range got.Series {
		name := ""
		for _, l := range s.Labels {
			switch l.Key {
			case "span.color":
				name += l.Value.StringValue
			case "p":
				name += fmt.Sprint(" ", l.Value.DoubleValue)
			}
		}
		for _, p := range s.Samples {
			if p.Value != 0 {
				samples[p.TimestampMs+" "+name] = p.Value
			}
		}
	}
	first, last := from.Unix()/int64(step.Seconds()), (to.Unix()-1)/int64(step.Seconds())+1
	for at := first; at <= last; at++ {
		end := time.Unix(at*int64(step.Seconds()), 0)
		numbers, spans := make(map[string][]float64), make(map[string]int)
		for _, s := range list {
			start := querytest.Start.Add(s.start)
			if !start.After(end.Add(-step)) || start.After(end) || where == "{ duration < 500us }" && s.duration >= 500*time.Microsecond ||
				where == `{ span.color = "red" }` && s.color != "red" {
				continue
			}
			name := ""
			if by != "" {
				name = s.color
				if name == "" {
					name = "nil"
				}
			}
			n := s.size
			if field == "duration" {
				n = s.duration.Seconds()
			}
			if spans[name]++; !math.IsNaN(n) {
				numbers[name] = append(numbers[name], n)
			}
		}
		for name, n := range spans {
			for suffix, want := range expected(function, numbers[name], n, step) {
				key := strconv.FormatInt(end.UnixMilli(), 10) + " " + name + suffix
				got := samples[key]
				delete(samples, key)
				tolerance := 1e-9
				if suffix != "" { // a quantile
					tolerance += 0.023 * math.Abs(want)
				}
				if math.Abs(got-want) > tolerance {
					t.Errorf("%s, step %s, sample %q: %g, want %g", q, step, key, got, want)
				}
			}
		}
	}
	for key, v := range samples {
		t.Errorf("%s, step %s: sample %q is %g, want none", q, step, key, v)
	}
}

func TestTooManySeries(t *testing.T) {
	h := api(t, marketStore(t, ""), func(o *core.Options) { o.Limits.MetricsSeries = 1 })
	w := querytest.Ask(t, h, http.MethodGet, "/tempo/api/metrics/query?start=1714557590&end=1714557620&q="+
		url.QueryEscape("{} | count_over_time() by (name)"))
	const want = `{"series":[{"labels":[{"key":"name","value":{"stringValue":"cron"}}],"value":2}],` +
		`"metrics":{"inspectedSpans":"5","completedJobs":1,"totalJobs":1},"status":"PARTIAL",` +
		`"message":"1 of 4 series are returned (max_metrics_series); use topk or more conditions"}`
	if w.Body.String() != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestMetricsTimes(t *testing.T) {
	now := time.Unix(1714557610, 0)
	limits := core.Limits{MetricsRange: 24 * time.Hour, MetricsPoints: 10_000}
	for query, want := range map[string]string{
		"start=1714550007&end=1714551200&step=60s":                  "1714549980 1714551240 60", // extended to whole steps
		"start=1714550040&end=1714551240&step=60":                   "1714550040 1714551240 60",
		"start=1714550040000000000&end=1714551240000000000&step=1m": "1714550040 1714551240 60",
		"start=1714557300&end=1714557660&step=60s":                  "1714557300 1714557540 60", // without the last 30 s
		"start=1714557000&end=1714557600&step=600s":                 "1714557000 1714557600 600",
		"start=1714557100&end=1714557600&step=7200s":                "1714550400 1714557600 7200", // at least one step
		"end=1714551240":                  "1714547640 1714551240 15",
		"since=20m&end=1714551240":        "1714550040 1714551240 5",
		"start=1714550040&end=1714550100": "1714550040 1714550100 1",
		"start=1714528800&end=1714550400": "1714528800 1714550400 60",
		"start=1714464000&end=1714550400": "1714464000 1714550400 300",
		"start=1714550040&end=1714550052": "1714550040 1714550052 0.05",
	} {
		v, err := url.ParseQuery(query + "&q=" + url.QueryEscape("{} | rate()"))
		if err != nil {
			t.Fatal(err)
		}
		q, err := parseMetricsRange(traceql.Language{}, v, now, limits)
		if got := fmt.Sprint(q.From.Unix(), q.To.Unix(), q.Step.Seconds()); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", query, got, err, want)
		}
	}
}

// spansAt returns a trace with a span for each text "second key=value ...", after querytest.Start.
// Values that look like numbers are integers unless they are in quotes; "status" is the status
// message.
func spansAt(t *testing.T, texts ...string) ptrace.Traces {
	t.Helper()
	td := ptrace.NewTraces()
	ss := querytest.AddService(td, "svc")
	for i, text := range texts {
		words := strings.Fields(text)
		second, err := strconv.Atoi(words[0])
		if err != nil {
			t.Fatal(err)
		}
		sp := querytest.AddSpan(ss, pcommon.TraceID{15: byte(i + 1)}, byte(i+1), 0, "op", time.Duration(second)*time.Second)
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			if n, err := strconv.Atoi(value); err == nil {
				sp.Attributes().PutInt(key, int64(n))
			} else if value = strings.Trim(value, `"`); key == "status" {
				sp.Status().SetMessage(value)
			} else {
				sp.Attributes().PutStr(key, value)
			}
		}
	}
	return td
}

// series30 returns the series of a query at 0, 30 and 60 seconds after querytest.Start.
func series30(t *testing.T, h http.Handler, q string, exemplars int) *streaming.QueryRangeResponse {
	t.Helper()
	path := fmt.Sprintf("/tempo/api/metrics/query_range?q=%s&start=%d&end=%d&step=30&exemplars=%d", url.QueryEscape(q),
		querytest.Start.Unix(), querytest.Start.Unix()+60, exemplars)
	w := querytest.Ask(t, h, http.MethodGet, path)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", q, w.Code, w.Body)
	}
	return decodeSeries(t, w.Body.Bytes())
}

// textOfSeries returns the values of the labels, the key of the last label, and the samples.
func textOfSeries(s *streaming.TimeSeries) string {
	text := ""
	for i, l := range s.Labels {
		if i == len(s.Labels)-1 {
			text += l.Key + "="
		}
		switch v := l.Value; {
		case v.GetIntValue() != 0:
			text += fmt.Sprint(v.GetIntValue(), " ")
		case v.GetDoubleValue() != 0:
			text += fmt.Sprint(v.GetDoubleValue(), " ")
		default:
			text += strconv.Quote(v.GetStringValue()) + " "
		}
	}
	for _, p := range s.Samples {
		text += fmt.Sprint(p.Value, " ")
	}
	return strings.TrimSpace(text)
}

// TestCompareValues checks which values of an attribute compare(...) returns, and their types.
func TestCompareValues(t *testing.T) {
	var texts []string
	for part, counts := range [][2]int{{5, 4}, {5, 7}} {
		texts = append(texts, slices.Repeat([]string{fmt.Sprint(part*30+1, " m=a")}, counts[0])...)
		texts = append(texts, slices.Repeat([]string{fmt.Sprint(part*30+1, " m=b")}, counts[1])...)
	}
	texts = append(texts, `1 status=x text="10" number=10 code=500`, `1 status=x text="10" number=10 code="007"`, `1`, `1 status=y`)
	h := api(t, querytest.FullStore{Store: querytest.NewStore(spansAt(t, texts...))})
	for q, want := range map[string][]string{
		`{} | compare({ name = "nope" }, 1)`: {`"baseline" span.m="b" 0 4 7`, `"baseline_total" span.m="nil" 0 9 12`},
		`{} | compare({ .m = "a" }, 1)`: {`"baseline" span.m="b" 0 4 7`, `"baseline_total" span.m="nil" 0 4 7`,
			`"selection" span.m="a" 0 5 5`, `"selection_total" span.m="nil" 0 5 5`},
		`{ root } >> {} || { root } | compare({ name = "nope" }, 1)`: {`"baseline" span.m="b" 0 4 7`, `"baseline_total" span.m="nil" 0 9 12`},
		`{ .m = nil } | compare({ name = "nope" }, 2)`: {`"baseline" span.code=500 0 1 0`, `"baseline" span.code="007" 0 1 0`,
			`"baseline" span.number=10 0 2 0`, `"baseline" span.text="10" 0 2 0`,
			`"baseline" statusMessage="x" 0 2 0`, `"baseline" statusMessage="y" 0 1 0`, `"baseline_total" statusMessage="nil" 0 3 0`, `"baseline_total" status="nil" 0 4 0`},
	} {
		var got []string
		for _, s := range series30(t, h, q, 0).Series {
			got = append(got, textOfSeries(s))
		}
		for _, one := range want {
			if !slices.Contains(got, one) {
				t.Errorf("%s: no series %s in\n%s", q, one, strings.Join(got, "\n"))
			}
		}
		if strings.Contains(q, ", 1)") {
			got = slices.DeleteFunc(got, func(text string) bool { return !strings.Contains(text, "span.m") })
			if len(got) != len(want) {
				t.Errorf("%s: %q, want %q", q, got, want)
			}
		}
	}
}

// TestCompareMany checks what compare(...) says about attributes with very many values.
func TestCompareMany(t *testing.T) {
	var texts []string
	for i := range 2 * (tracestore.MaxFacetValues + 1) {
		texts = append(texts, fmt.Sprintf("%d m=%d", 1+i%60, i/2))
	}
	store := querytest.FullStore{Store: querytest.NewStore(spansAt(t, texts...))}
	const q = `{} | compare({ .m = "1" })`
	if got := series30(t, api(t, store), q, 0); got.Message != "" {
		t.Errorf("message %q", got.Message)
	}
	for i := range texts {
		texts[i] = fmt.Sprintf("1 m=%d", i/2)
	}
	store = querytest.FullStore{Store: querytest.NewStore(spansAt(t, texts...))}
	const want = "rare values are left out of attributes with more than 1000 values in a sample"
	if got := series30(t, api(t, store), q, 0).Message; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

// sampledStore examines a sample of the spans, another share each time.
type sampledStore struct {
	querytest.FullStore
	budgets []int
}

func (s *sampledStore) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	s.budgets = append(s.budgets, q.Budget.Spans)
	found, err := s.FullStore.Aggregate(ctx, q, a)
	if found.Facets != nil {
		found.Facets.Share = 0.2 + 0.01*float64(len(s.budgets))
	}
	return found, err
}

// TestCompareSample checks that the samples of compare(...) share the limit of examined spans, and
// that the response states the smallest share of them once.
func TestCompareSample(t *testing.T) {
	store := &sampledStore{FullStore: querytest.FullStore{Store: querytest.NewStore(spansAt(t, "1 m=a", "31 m=b"))}}
	got := series30(t, api(t, store, func(o *core.Options) { o.Limits.Aggregated = 300 }), `{} | compare({ .m = "a" })`, 0)
	const want = "samples are estimates from 21 % of the spans (max_aggregated_spans); use a shorter time range or more conditions"
	if got.Message != want {
		t.Errorf("message %q, want %q", got.Message, want)
	}
	if store.budgets[0] != 100 {
		t.Errorf("budget of %d spans for each of 3 samples, want 100", store.budgets[0])
	}
}

// TestCompareCut checks that max_metrics_series keeps both sides of an attribute.
func TestCompareCut(t *testing.T) {
	store := querytest.FullStore{Store: querytest.NewStore(spansAt(t, "1 m=a", "1 m=b", "2 m=c"))}
	h := api(t, store, func(o *core.Options) { o.Limits.MetricsSeries = 9 })
	found := series30(t, h, `{} | compare({ .m = "a" })`, 0)
	sides := make(map[string][]string)
	for _, s := range found.Series {
		sides[s.Labels[1].Key] = append(sides[s.Labels[1].Key], s.Labels[0].Value.GetStringValue())
	}
	for key, got := range sides {
		got = slices.Compact(slices.Sorted(slices.Values(got)))
		if want := []string{"baseline", "baseline_total", "selection", "selection_total"}; !slices.Equal(got, want) {
			t.Errorf("%s has the series %q, want %q", key, got, want)
		}
	}
	const message = "2 of 5 attributes are compared (max_metrics_series); use more conditions or fewer values"
	if len(sides) != 2 || found.Message != message {
		t.Errorf("%d attributes, %q", len(sides), found.Message)
	}
}

// TestExemplars checks that exemplars are spans that samples count, with the value of the sample.
func TestExemplars(t *testing.T) {
	h := api(t, querytest.FullStore{Store: querytest.NewStore(spansAt(t, "1 n=5", "2", "31", "32 n=x", "33 m=1"))})
	for q, want := range map[string]string{
		`{} | sum_over_time(span.n)`:                                                         "1:5",
		`{} | max_over_time(span.n)`:                                                         "1:5",
		`{} | sum_over_time(span.n) by (name)`:                                               "1:5",
		`{ root } || { root } >> {} | sum_over_time(span.n)`:                                 "1:5",
		`{} | sum_over_time(childCount)`:                                                     "1:0 2:0 3:0 4:0 5:0",
		`{} | count_over_time()`:                                                             "1:2 2:2 3:3 4:3 5:3",
		`2 * ({} | count_over_time())`:                                                       "1:4 2:4 3:6 4:6 5:6",
		`1 / (({} | count_over_time()) - 2)`:                                                 "3:1 4:1 5:1",
		`({ .n != nil } | count_over_time()) / ({ .m != nil } | count_over_time())`:          "1:1 4:1 5:1",
		`({ .n != nil } | count_over_time()) * ({ .m != nil } | count_over_time() by (.m))`:  "5:1",
		`({ .m != nil } | rate() by (.m)) + ({} | rate())`:                                   "5:0.03333333333333333",
		`({ .n != nil } | rate() by (name)) + ({ .m != nil } | count_over_time() by (name))`: "1:0.03333333333333333 4:0.03333333333333333 5:1",
	} {
		var got []string
		for _, s := range series30(t, h, q, 20).Series {
			for _, e := range s.Exemplars {
				got = append(got, e.Labels[0].Value.GetStringValue()+":"+fmt.Sprint(e.Value))
			}
		}
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("%s has the exemplars %q, want %q", q, got, want)
		}
	}
	n := 0
	for _, s := range series30(t, h, `({} | rate()) / ({} | rate())`, 4).Series {
		n += len(s.Exemplars)
	}
	if n == 0 || n > 4 {
		t.Errorf("%d exemplars, want 1 to 4", n)
	}
}

// TestExemplarsOfDistributions checks that an exemplar belongs to the nearest quantile, or to its
// bucket of a histogram.
func TestExemplarsOfDistributions(t *testing.T) {
	h := api(t, querytest.FullStore{Store: querytest.NewStore(spansAt(t, "1 n=1 k=a", "2 n=2", "3 n=90", "4 n=100 k=a", "5 n=x", "31 n=7"))})
	for q, want := range map[string]string{
		`{} | quantile_over_time(span.n, .25, 1)`:           "0.25 1:1, 0.25 2:2, 0.25 6:7, 1 3:90, 1 4:100",
		`{} | quantile_over_time(span.n, .25, 1) by (.k)`:   "0.25 1:1, 0.25 2:2, 0.25 6:7, 1 3:90, 1 4:100",
		`{} | histogram_over_time(span.n)`:                  "1 1:1, 128 3:2, 128 4:2, 2 2:1, 8 6:1",
		`{} | histogram_over_time(span.n) by (.k)`:          "1 1:1, 128 3:1, 128 4:1, 2 2:1, 8 6:1",
		`{} | quantile_over_time(traceDuration, .5)`:        "",
		`{ .k = "a" } | quantile_over_time(duration, 1)`:    "1 1:0.1, 1 4:0.1",
		`{ root } | histogram_over_time(duration) by (.k)`:  "0.134217728 1:2, 0.134217728 2:3, 0.134217728 3:3, 0.134217728 4:2, 0.134217728 5:3, 0.134217728 6:1",
		`({} | histogram_over_time(span.n) by (.k)) > 1`:    "",
		`2 * ({ .k = "a" } | quantile_over_time(span.n,1))`: "1 1:2, 1 4:200",
	} {
		var got []string
		for _, s := range series30(t, h, q, 20).Series {
			last := s.Labels[len(s.Labels)-1].Value
			for _, e := range s.Exemplars {
				got = append(got, fmt.Sprint(last.GetDoubleValue())+" "+e.Labels[0].Value.GetStringValue()+":"+fmt.Sprint(e.Value))
			}
		}
		if slices.Sort(got); strings.Join(got, ", ") != want {
			t.Errorf("%s has the exemplars %q, want %q", q, strings.Join(got, ", "), want)
		}
	}
}

func TestMetricsRefused(t *testing.T) {
	h := api(t, marketStore(t, ""))
	const tooLong, asStored = "step of 25h0m0s exceeds the maximum allowed duration of 24h0m0s",
		"compare(...) counts spans as stored; leave out extrapolate=true"
	for path, want := range map[string]string{
		"metrics/query_range?step=25h&q={} | rate()":                             tooLong,
		"metrics/query_range?step=1h&q={} | compare({}) with (extrapolate=true)": asStored,
		"search?q={} | rate()": "invalid TraceQL query: metrics query; send it to api/metrics/query_range, or leave out the function",
	} {
		w := querytest.Ask(t, h, http.MethodGet, "/tempo/api/"+strings.ReplaceAll(path, " ", "%20"))
		if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusBadRequest || got != want {
			t.Errorf("%s: %d %s", path, w.Code, got)
		}
	}
}
