package query

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// warningHeader tells what is missing in an answer that has no place to say so.
const warningHeader = "Tracing-Warning"

// The answers to GET /api/metrics/{latencies,calls,errors}.

func (h *handler) latencies(w http.ResponseWriter, r *http.Request) {
	h.measured(w, r, func(v url.Values) (measurement, error) {
		quantile, err := strconv.ParseFloat(v.Get("quantile"), 64)
		if err == nil && !isQuantile(quantile) {
			err = errBadQuantile
		}
		if err != nil {
			err = paramError("quantile", err)
		}
		return latencies(quantile), err
	})
}

func (h *handler) callRates(w http.ResponseWriter, r *http.Request) {
	h.measured(w, r, func(url.Values) (measurement, error) { return callRates(), nil })
}

func (h *handler) errorRates(w http.ResponseWriter, r *http.Request) {
	h.measured(w, r, func(url.Values) (measurement, error) { return errorRates(), nil })
}

// leastStep answers GET /api/metrics/minstep, in milliseconds.
func (h *handler) leastStep(w http.ResponseWriter, r *http.Request) {
	if !h.hasRates(w) {
		return
	}
	l := newList(w, r)
	defer l.close()
	_ = h.measure(opGetMinStep, func() (int, error) { return 0, nil }) // what is always known cannot fail
	h.finish(l, strconv.FormatInt(leastRateStep.Milliseconds(), 10), tail{})
}

// hasRates answers a request where the store knows nothing of calls.
func (h *handler) hasRates(w http.ResponseWriter) bool {
	_, ok := h.store.(tracestore.Metrics)
	if !ok {
		writeError(w, http.StatusNotImplemented, "trace metrics are currently disabled - no metrics backend configured")
	}
	return ok
}

func (h *handler) measured(w http.ResponseWriter, r *http.Request, which func(url.Values) (measurement, error)) {
	if !h.hasRates(w) {
		return
	}
	m, q, grid, err := parseRates(r, which, h.now())
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	turn, err := h.admit(r.Context())
	if err != nil {
		h.failed(w, r, err)
		return
	}
	defer turn.done()
	var a *rateAnswer
	err = h.measure(m.op, func() (_ int, err error) {
		a, err = h.rates(turn, m, q, grid)
		return 0, err
	})
	if err != nil {
		h.failed(w, r, err)
		return
	}
	if a.missing != "" {
		w.Header().Set(warningHeader, a.missing)
	}
	h.writeRates(w, r, a)
}

func parseRates(r *http.Request, which func(url.Values) (measurement, error), now time.Time) (
	m measurement, q *rateQuestion, g rateGrid, err error,
) {
	params, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return m, q, g, err
	}
	if m, err = which(params); err != nil {
		return m, q, g, err
	}
	if q, err = parseRateQuestion(params, now); err != nil {
		return m, q, g, err
	}
	g, err = newRateGrid(q, now)
	return m, q, g, err
}

// parseRateQuestion reads the parameters that all have in common.
func parseRateQuestion(v url.Values, now time.Time) (q *rateQuestion, err error) {
	q = &rateQuestion{services: v["service"]}
	if len(q.services) == 0 {
		return nil, paramError("service", errNoRateService)
	}
	if p := v.Get("groupByOperation"); p != "" {
		if q.byOperation, err = strconv.ParseBool(p); err != nil {
			return nil, paramError("groupByOperation", err)
		}
	}
	if q.kinds, err = parseKinds(v["spanKind"]); err != nil {
		return nil, err
	}
	return q, q.parseTimes(v, now)
}

// parseTimes reads the times, which are milliseconds.
func (q *rateQuestion) parseTimes(v url.Values, now time.Time) error {
	end, err := millisParam(v, "endTs", now.UnixMilli())
	if err != nil {
		return err
	}
	q.end = time.UnixMilli(end)
	for _, p := range []struct {
		name   string
		absent time.Duration
		to     *time.Duration
	}{{"lookback", defaultRateLookback, &q.lookback}, {"step", defaultRateStep, &q.step}, {"ratePer", defaultRatePer, &q.per}} {
		if *p.to, err = millisDuration(v, p.name, p.absent); err != nil {
			return err
		}
	}
	return nil
}

// parseKinds returns the kinds of spans as stores name them.
func parseKinds(names []string) ([]string, error) {
	if len(names) == 0 {
		return []string{defaultRateKind}, nil
	}
	kinds := make([]string, len(names))
	for i, name := range names {
		switch name {
		case "unspecified":
		case "internal", "server", "client", "producer", "consumer":
			kinds[i] = name
		default:
			return nil, paramError("spanKind", fmt.Errorf("unsupported span kind: '%s'", name))
		}
	}
	return kinds, nil
}

// millisDuration reads a number of milliseconds that is not below 0. What is too long for a Duration is the longest one.
func millisDuration(v url.Values, name string, absent time.Duration) (time.Duration, error) {
	const most = math.MaxInt64 / int64(time.Millisecond)
	ms, err := millisParam(v, name, absent.Milliseconds())
	if err == nil && ms < 0 {
		err = paramError(name, errNegative)
	}
	return time.Duration(min(ms, most)) * time.Millisecond, err
}

// writeRates writes a family of OpenMetrics as JSON of protobuf: what is empty is left out.
func (h *handler) writeRates(w http.ResponseWriter, r *http.Request, a *rateAnswer) {
	s := newStream(w, r)
	defer s.close()
	err := s.add(func(dst []byte) ([]byte, error) { return a.appendJSON(dst, s.spill) })
	if err == nil {
		err = s.flush()
	}
	h.delivered(err)
}

// appendJSON appends the answer. spill takes what is long enough, and returns what to append to.
func (a *rateAnswer) appendJSON(dst []byte, spill func([]byte) ([]byte, error)) (_ []byte, err error) {
	dst = append(append(dst, `{"name":"`...), a.name...)
	dst = otlpdata.AppendJSONString(append(dst, `","type":"GAUGE","help":`...), a.help)
	mark := `,"metrics":[`
	for i := range a.series {
		s := &a.series[i]
		dst = a.appendLabels(append(dst, mark...), s)
		mark = `,"metricPoints":[`
		for at, value := range a.all(s) {
			if dst, err = spill(appendGauge(append(dst, mark...), at, value)); err != nil {
				return dst, err
			}
			mark = ","
		}
		dst = append(dst, "]}"...)
	}
	if len(a.series) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, '}'), nil
}

// appendLabels appends the beginning of a series.
func (a *rateAnswer) appendLabels(dst []byte, s *tracestore.MetricSeries) []byte {
	for i, l := range a.labels(s) {
		begin := `{"labels":[{"name":"`
		if i > 0 {
			begin = `,{"name":"`
		}
		dst = append(append(append(dst, begin...), l.name...), `","value":`...)
		dst = append(otlpdata.AppendJSONString(dst, l.value), '}')
	}
	return append(dst, ']')
}

// appendGauge appends a point. JSON has no number for what is none.
func appendGauge(dst []byte, at int64, value float64) []byte {
	dst = append(dst, `{"gaugeValue":{"doubleValue":`...)
	if math.IsNaN(value) {
		dst = append(dst, `"NaN"`...)
	} else {
		dst = strconv.AppendFloat(dst, value, 'g', -1, 64)
	}
	dst = append(dst, `},"timestamp":"`...)
	dst = time.Unix(at, 0).UTC().AppendFormat(dst, time.RFC3339)
	return append(dst, `"}`...)
}
