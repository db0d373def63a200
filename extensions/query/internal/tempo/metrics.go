package tempo

import (
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/metricsquery"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// metricsRange serves GET /tempo/api/metrics/query_range: samples at the multiples of a step.
func (a *API) metricsRange(w http.ResponseWriter, r *http.Request) {
	a.metrics(w, r, parseMetricsRange)
}

// metricsInstant serves GET /tempo/api/metrics/query: one sample for the time range.
func (a *API) metricsInstant(w http.ResponseWriter, r *http.Request) {
	a.metrics(w, r, parseMetricsInstant)
}

func (a *API) metrics(w http.ResponseWriter, r *http.Request,
	parse func(l traceql.Language, v url.Values, now time.Time, limits core.Limits) (metricsquery.Query, error),
) {
	params, err := httpapi.Query(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q, err := parse(a.backend.Language(r.Context()), params, a.backend.Now(), a.backend.Limits())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	slot, err := a.backend.Admit(r.Context(), core.OpAggregate)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	defer slot.Release()
	var found metricsquery.Result
	err = slot.Measure(func() (int, error) {
		var err error
		found, err = metricsquery.Run(slot, &q)
		return len(found.Series), err
	})
	if err != nil {
		a.fail(w, r, err)
		return
	}
	s := httpapi.NewStream(w, r)
	defer s.Close()
	out := metricsWriter{stream: s, found: &found, instant: q.Step == 0}
	if err := out.write(); err != nil && !httpapi.Gone(r, err) {
		a.backend.Abort(err)
	}
}

// metricsWriter writes the response of a metrics query.
type metricsWriter struct {
	stream  *httpapi.Stream
	found   *metricsquery.Result
	instant bool
	series  int
}

func (m *metricsWriter) write() error {
	s := m.stream
	s.Buf = append(s.Buf, `{"series":[`...)
	for i := range m.found.Series {
		err := s.Add(func(dst []byte) ([]byte, error) { return m.appendSeries(dst, &m.found.Series[i]), nil })
		if err != nil {
			return err
		}
	}
	s.Buf = append(s.Buf, `],"metrics":{"inspectedSpans":"`...)
	s.Buf = strconv.AppendInt(s.Buf, int64(m.found.Scanned), 10)
	s.Buf = append(s.Buf, `","completedJobs":1,"totalJobs":1}`...)
	if m.found.Partial != "" {
		s.Buf = otlpdata.AppendJSONString(append(s.Buf, `,"status":"PARTIAL","message":`...), m.found.Partial)
	}
	s.Buf = append(s.Buf, '}')
	return s.Flush()
}

// appendSeries appends a series. Values of 0 are left out, and instant series without a sample as a
// whole.
func (m *metricsWriter) appendSeries(dst []byte, s *metricsquery.Series) []byte {
	if m.instant && math.IsNaN(s.Samples[0]) {
		return dst
	}
	dst = append(httpapi.Comma(dst, m.series), '{')
	m.series++
	dst = appendLabels(dst, s.Labels)
	if m.instant {
		return append(appendValue(dst, s.Samples[0]), '}')
	}
	dst = append(dst, `,"samples":[`...)
	n := 0
	for i, v := range s.Samples {
		if !math.IsNaN(v) {
			dst = appendTime(append(httpapi.Comma(dst, n), '{'), m.found.Times[i])
			dst = append(appendValue(dst, v), '}')
			n++
		}
	}
	dst = append(dst, ']')
	if len(s.Exemplars) == 0 {
		return append(dst, '}')
	}
	dst = append(dst, `,"exemplars":[`...)
	for i, e := range s.Exemplars {
		dst = appendLabels(append(httpapi.Comma(dst, i), '{'), e.Labels)
		dst = append(appendTime(append(appendValue(dst, e.Value), ','), e.Time), '}')
	}
	return append(dst, "]}"...)
}

// appendLabels appends the member "labels".
func appendLabels(dst []byte, labels []metricsquery.Label) []byte {
	dst = append(dst, `"labels":[`...)
	for i, l := range labels {
		dst = otlpdata.AppendJSONString(append(httpapi.Comma(dst, i), `{"key":`...), l.Key)
		dst = append(dst, `,"value":{`...)
		switch l.Value.Kind() {
		case otlpdata.ValueInt:
			dst = append(strconv.AppendInt(append(dst, `"intValue":"`...), l.Value.Int(), 10), '"')
		case otlpdata.ValueDouble:
			dst = appendFloat(append(dst, `"doubleValue":`...), l.Value.Double())
		case otlpdata.ValueBool:
			dst = strconv.AppendBool(append(dst, `"boolValue":`...), l.Value.Bool())
		default:
			dst = otlpdata.AppendJSONString(append(dst, `"stringValue":`...), l.Value.AsString())
		}
		dst = append(dst, "}}"...)
	}
	return append(dst, ']')
}

// appendTime appends the member "timestampMs".
func appendTime(dst []byte, t time.Time) []byte {
	return append(strconv.AppendInt(append(dst, `"timestampMs":"`...), t.UnixMilli(), 10), '"')
}

// appendValue appends the member "value" after another one, unless it is 0.
func appendValue(dst []byte, v float64) []byte {
	if v == 0 {
		return dst
	}
	return appendFloat(append(dst, `,"value":`...), v)
}

// appendFloat appends a finite number.
func appendFloat(dst []byte, v float64) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return append(dst, '0') // cannot happen
	}
	return append(dst, text...)
}
