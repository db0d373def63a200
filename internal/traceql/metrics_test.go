package traceql

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// metricsExamples are valid metrics queries.
var metricsExamples = []string{
	`{} | rate()`,
	`{ status = error && service.name = "a" } | count_over_time() by (resource.service.name, name, span.http.route, kind, .x)`,
	`({ error } || { root }) | rate() by (rootName) with (sample=0.1, exemplars=false)`,
	`{ error } >> {} | quantile_over_time(duration, 0, .5, 1) by (name)`,
	`{} | histogram_over_time(span.bytes)`, `{} | avg_over_time(.x)`, `{} | min_over_time(span."a b")`, `{} | max_over_time(duration)`,
	`{} | sum_over_time(resource.n) by (span."a b")`,
	`({} | max_over_time(duration)) > 1m30s`, `{} | max_over_time(duration) < 100ms * 2`,
	`{} | rate() | topk(10) | bottomk(3) > 1 / 2 with(a="b c")`, `{} | rate() >= 5.5`, `{} | rate() != -3`,
	`{} | compare({ status = error })`, `{ span.a = "x" } | compare({ duration > 1s }, 7, 1714550000000000000, 1714560000000000000)`,
	`({} | rate()) / ({} | count_over_time())`, `(({} | rate()) * ({} | rate() > 6)) + ({} | rate()) - 1 | topk(2)`,
	`100 * ({ error } | rate()) / ({} | rate()) > 5`, `-1.5 - ({} | rate())`, `(1 + 2) * (({} | rate()) - -5)`, `({} | rate()) * 3 * 2`,
	`1 / ({} | rate()) / 2`, `({} | rate()) -2`, `({} | rate()) - (({} | rate()) - ({} | rate()))`, `(({} | rate() | topk(1)) + 1 > 2) * 3`,
}

func TestParseMetrics(t *testing.T) {
	for _, text := range metricsExamples {
		q, err := ParseMetrics(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		checkMetricsFormat(t, &q)
	}
}

// checkMetricsFormat checks that the text of a query means the same.
func checkMetricsFormat(t *testing.T, q *MetricsQuery) {
	t.Helper()
	text := formatMetrics(q)
	again, err := ParseMetrics(text)
	if err != nil {
		if len(text) <= MaxText {
			t.Fatalf("%s: %v", text, err)
		}
		return
	}
	if !reflect.DeepEqual(*q, again) {
		t.Fatalf("%s\nwas parsed as %s", text, formatMetrics(&again))
	}
}

func TestMetricsErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                                                 "column 1: not a metrics query",
		`{} | select(name)`:                                "column 1: not a metrics query",
		`1 + 2`:                                            "column 1: not a metrics query",
		`{} | rate(duration)`:                              "column 11: rate has no arguments",
		`{} | rate() by name`:                              "column 16: expected ( after by",
		`{} | rate() by (.a,.b,.c,.d,.e,.f)`:               "column 13: by(...) has 6 fields; the maximum is 5",
		`{ nothing = } | rate()`:                           "column 13: expected",
		`{} | sum_over_time()`:                             "column 20: expected a field",
		`{} | quantile_over_time(duration)`:                "column 33: expected a comma and quantiles",
		`{} | quantile_over_time(.a, 1.5)`:                 "column 29: expected a quantile from 0 to 1",
		`{} | rate() | topk(0)`:                            "column 20: limit must be greater than 0",
		`{} | rate() | topk`:                               "expected the number of series",
		`{} | rate() | rate()`:                             "column 15: expected topk(...) or bottomk(...)",
		`({} | rate()) * 1s`:                               "column 17: expected a number without a unit",
		`{} | rate() > ({} | rate())`:                      "column 13: samples can be compared only with numbers",
		`({} | rate()) / (1 / 0)`:                          "the result is not a finite number",
		`({} | rate()`:                                     "column 1: missing closing )",
		`{} | rate() + {} | rate()`:                        "column 13: put each operand of arithmetic in parentheses",
		`-({} | rate())`:                                   "- is allowed only before numbers",
		`{} | compare()`:                                   "column 14: expected",
		`{} | compare({}, 5, 6)`:                           "compare has a selection",
		`{} | compare({}, 5, 6, 6)`:                        "the end of compare must be after its start",
		`{} | compare({}, 0)`:                              "must be from 1 to 1000",
		`{} | compare({} >> {})`:                           "the selection of compare must be conditions in one { }",
		`{} | compare({}) by (name)`:                       "compare(...) has no by(...)",
		`{} | rate() with (a)`:                             "expected a hint",
		`{} | rate() by (text)`:                            "text is only for conditions",
		`{} | rate() by (parent.a)`:                        "column 17: attributes of the parent are only for conditions; write .a",
		`{} | sum_over_time(parent.span.n)`:                "column 20: attributes of the parent are only for conditions; write span.n",
		`{} with (sample=0.1) | rate()`:                    "column 22: put with (...) at the end of the query",
		`{} | compare({} with (sample=0.1))`:               "column 34: put with (...) at the end of the query",
		strings.Repeat("(", 100) + "{}|rate()":             "nested more than",
		"1" + strings.Repeat("+1", 100):                    "more than 64 operators",
		"({}|rate())" + strings.Repeat("+({}|rate())", 20): "more than 16 functions",
	} {
		if _, err := ParseMetrics(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseMetrics(f *testing.F) {
	for _, text := range metricsExamples {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := ParseMetrics(text)
		if err == nil {
			checkMetricsFormat(t, &q)
			return
		}
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%T: %v", err, err)
		}
		if e.Offset < 0 || e.Length < 0 || e.Offset+e.Length > len(e.Text) {
			t.Fatalf("error position: %d bytes at %d in a text of %d", e.Length, e.Offset, len(e.Text))
		}
	})
}
