package tempo

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/metricsquery"
	"github.com/tracing-backend/tracing/internal/traceql"
)

const (
	// defaultMetricsRange is the time range of a metrics query that has none.
	defaultMetricsRange = time.Hour
	// metricsCutoff is the time before now after which there are no samples, because spans are
	// still arriving.
	metricsCutoff = 30 * time.Second
)

// parseMetricsRange parses the parameters of GET /tempo/api/metrics/query_range. The errors are for
// the client.
func parseMetricsRange(l traceql.Language, v url.Values, now time.Time, limits core.Limits) (q metricsquery.Query, err error) {
	if q, err = parseMetrics(l, v, now, limits); err != nil {
		return q, err
	}
	if q.Step, err = stepParam(v, q.To.Sub(q.From)); err != nil {
		return q, err
	}
	length := q.To.Sub(q.From)
	if q.Step > limits.MetricsRange { // align extends the range to whole steps
		return q, fmt.Errorf("step of %s exceeds the maximum allowed duration of %s", q.Step, limits.MetricsRange)
	}
	if least := (length + time.Duration(limits.MetricsPoints) - 1) / time.Duration(limits.MetricsPoints); q.Step < least {
		return q, fmt.Errorf("step of %s is too small, minimum step for given range is %s", q.Step, least)
	}
	align(&q, now)
	return q, q.Check()
}

// parseMetricsInstant is like parseMetricsRange, for GET /tempo/api/metrics/query.
func parseMetricsInstant(l traceql.Language, v url.Values, now time.Time, limits core.Limits) (q metricsquery.Query, err error) {
	if q, err = parseMetrics(l, v, now, limits); err != nil {
		return q, err
	}
	return q, q.Check()
}

// align extends the time range to whole steps, without those that end less than metricsCutoff
// before now. At least one step remains.
func align(q *metricsquery.Query, now time.Time) {
	step := int64(q.Step)
	from, to := q.From.UnixNano()/step*step, q.To.UnixNano()
	if to%step != 0 {
		to = to/step*step + step
	}
	if newest := now.Add(-metricsCutoff).UnixNano(); to > newest {
		to = max(newest/step*step, from+step)
	}
	q.From, q.To = time.Unix(0, from), time.Unix(0, to)
}

// parseMetrics parses the parameters that both kinds of queries have.
func parseMetrics(l traceql.Language, v url.Values, now time.Time, limits core.Limits) (q metricsquery.Query, err error) {
	if q.MetricsQuery, err = parseMetricsQuery(l, v.Get("q")); err != nil {
		return q, err
	}
	if err := metricsWindow(&q, v, now); err != nil {
		return q, err
	}
	switch length := q.To.Sub(q.From); {
	case length <= 0:
		return q, errors.New("end must be greater than start")
	case length > limits.MetricsRange:
		return q, fmt.Errorf("time range of %s exceeds the maximum allowed duration of %s", length, limits.MetricsRange)
	}
	q.Exemplars, err = countParam(v, "exemplars", metricsquery.MaxExemplars, 0, metricsquery.MaxExemplars)
	return q, err
}

func parseMetricsQuery(l traceql.Language, text string) (traceql.MetricsQuery, error) {
	q, err := l.ParseMetrics(text)
	var mistake *traceql.Error
	if !errors.As(err, &mistake) {
		return q, err
	}
	if _, err := traceql.Parse(text); err == nil {
		return q, errors.New("not a metrics query: add a function, such as | rate()")
	}
	line, column := mistake.Position()
	return q, fmt.Errorf("parse error at line %d, col %d: %s", line, column, mistake.Msg)
}

// metricsWindow parses start, end and since.
func metricsWindow(q *metricsquery.Query, v url.Values, now time.Time) (err error) {
	length := defaultMetricsRange
	if since := v.Get("since"); since != "" {
		if length, err = time.ParseDuration(since); err != nil || length <= 0 {
			return invalid("since", fmt.Errorf("%q is not a duration above 0, such as 30m", clip(since)))
		}
	}
	if q.To, err = timeParam(v, "end"); err != nil {
		return err
	}
	if q.To.IsZero() {
		q.To = now
	}
	if q.From, err = timeParam(v, "start"); err != nil {
		return err
	}
	if q.From.IsZero() {
		q.From = q.To.Add(-length)
	}
	if q.From.UnixNano() < int64(math.MaxInt32) { // steps before it would have negative times
		return invalid("start", errors.New("must be after January 1970"))
	}
	return nil
}

// timeParam parses a time in seconds or nanoseconds since the Unix epoch.
func timeParam(v url.Values, name string) (time.Time, error) {
	p := v.Get(name)
	if p == "" {
		return time.Time{}, nil
	}
	const maxSeconds = math.MaxInt64 / int64(time.Second) / 2 // longer steps do not overflow
	n, err := strconv.ParseInt(p, 10, 64)
	switch {
	case err != nil || n < 0 || n > math.MaxInt64/2:
		return time.Time{}, invalid(name, fmt.Errorf("%q is not a number of seconds or nanoseconds since the Unix epoch", clip(p)))
	case n == 0:
		return time.Time{}, nil
	case n <= maxSeconds:
		return time.Unix(n, 0), nil
	}
	return time.Unix(0, n), nil
}

// stepParam parses the step, a duration or a number of seconds.
func stepParam(v url.Values, length time.Duration) (time.Duration, error) {
	p := v.Get("step")
	if p == "" {
		return defaultStep(length), nil
	}
	seconds, err := strconv.ParseFloat(p, 64)
	if err == nil && seconds > 0 && seconds < float64(math.MaxInt32) {
		return max(time.Duration(seconds*float64(time.Second)), 1), nil
	}
	step, err := time.ParseDuration(p)
	if err != nil {
		return 0, fmt.Errorf("cannot parse %q to a valid duration", clip(p))
	}
	if step <= 0 || step > math.MaxInt32*time.Second {
		return 0, invalid("step", fmt.Errorf("%s is not a duration above 0", step))
	}
	return step, nil
}

// defaultStep returns the step for a time range of some length: about 240 samples.
func defaultStep(length time.Duration) time.Duration {
	const samples, shortest = 240, 50 * time.Millisecond
	if length < time.Minute {
		return max((length / samples).Truncate(shortest), shortest)
	}
	for _, step := range []time.Duration{time.Hour, 5 * time.Minute, time.Minute, 15 * time.Second, 5 * time.Second} {
		if length/samples >= step {
			return step
		}
	}
	return time.Second
}
