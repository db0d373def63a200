package jaegerapi

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/spanmetrics"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// WarningHeader is the header that says what is missing in a response whose body has no member for
// it.
const WarningHeader = "Tracing-Warning"

// latencies serves GET /api/metrics/latencies.
func (a *API) latencies(w http.ResponseWriter, r *http.Request) {
	a.metrics(w, r, func(v url.Values) (spanmetrics.Metric, error) {
		quantile, err := strconv.ParseFloat(v.Get("quantile"), 64)
		if err == nil && !spanmetrics.IsQuantile(quantile) {
			err = spanmetrics.ErrBadQuantile
		}
		if err != nil {
			err = httpapi.ParamError("quantile", err)
		}
		return spanmetrics.Latencies(quantile), err
	})
}

// callRates serves GET /api/metrics/calls.
func (a *API) callRates(w http.ResponseWriter, r *http.Request) {
	a.metrics(w, r, func(url.Values) (spanmetrics.Metric, error) { return spanmetrics.CallRates(), nil })
}

// errorRates serves GET /api/metrics/errors.
func (a *API) errorRates(w http.ResponseWriter, r *http.Request) {
	a.metrics(w, r, func(url.Values) (spanmetrics.Metric, error) { return spanmetrics.ErrorRates(), nil })
}

// minStep serves GET /api/metrics/minstep, in milliseconds.
func (a *API) minStep(w http.ResponseWriter, r *http.Request) {
	if !a.supportsMetrics(w, r) {
		return
	}
	l := httpapi.NewList(w, r)
	defer l.Close()
	a.backend.Observe(core.OpGetMinStep, 0, 0, nil)
	a.backend.LogUndelivered(l.Finish(strconv.FormatInt(spanmetrics.MinStep.Milliseconds(), 10), httpapi.Footer{}))
}

// supportsMetrics responds with an error and returns false if the store does not count calls.
func (a *API) supportsMetrics(w http.ResponseWriter, r *http.Request) bool {
	_, ok := core.StoreAs[tracestore.Metrics](r.Context(), a.backend)
	if !ok {
		httpapi.WriteError(w, http.StatusNotImplemented, "trace metrics are currently disabled - no metrics backend configured")
	}
	return ok
}

// metrics serves a request for the metric that parse returns.
func (a *API) metrics(w http.ResponseWriter, r *http.Request, parse func(url.Values) (spanmetrics.Metric, error)) {
	if !a.supportsMetrics(w, r) {
		return
	}
	q, err := parseMetrics(r, parse, a.backend.Now())
	if err != nil {
		httpapi.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	slot, err := a.backend.Admit(r.Context(), q.metric.Operation)
	if err != nil {
		httpapi.Fail(a.backend, w, r, err)
		return
	}
	defer slot.Release()
	var answer *spanmetrics.Answer
	err = slot.Measure(func() (_ int, err error) {
		answer, err = spanmetrics.Fetch(slot, &q.metric, &q.query, q.grid)
		return 0, err
	})
	if err != nil {
		httpapi.Fail(a.backend, w, r, err)
		return
	}
	if message := core.IncompleteMessage(answer.Incomplete); message != "" {
		w.Header().Set(WarningHeader, message)
	}
	a.writeMetrics(w, r, answer)
}

// writeMetrics writes a metric family of OpenMetrics in the JSON form of its protobuf message.
func (a *API) writeMetrics(w http.ResponseWriter, r *http.Request, answer *spanmetrics.Answer) {
	s := httpapi.NewStream(w, r)
	defer s.Close()
	err := s.Add(func(dst []byte) ([]byte, error) { return appendMetrics(dst, answer, s.Spill) })
	if err == nil {
		err = s.Flush()
	}
	a.backend.LogUndelivered(err)
}

// metricsRequest is a parsed request.
type metricsRequest struct {
	metric spanmetrics.Metric
	query  spanmetrics.Query
	grid   spanmetrics.Grid
}

func parseMetrics(r *http.Request, parse func(url.Values) (spanmetrics.Metric, error), now time.Time) (q metricsRequest, err error) {
	params, err := httpapi.Query(r)
	if err != nil {
		return q, err
	}
	if q.metric, err = parse(params); err != nil {
		return q, err
	}
	if q.query, err = parseMetricsQuery(params, now); err != nil {
		return q, err
	}
	q.grid, err = spanmetrics.NewGrid(&q.query, now)
	return q, err
}
