package jaegerapi

import (
	"math"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/spanmetrics"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// appendMetrics appends a result. Empty members are omitted, as in the JSON form of protobuf. spill
// is Stream.Spill.
func appendMetrics(dst []byte, answer *spanmetrics.Answer, spill func([]byte) ([]byte, error)) (_ []byte, err error) {
	dst = append(append(dst, `{"name":"`...), answer.Name...)
	dst = otlpdata.AppendJSONString(append(dst, `","type":"GAUGE","help":`...), answer.Help)
	separator := `,"metrics":[`
	for i := range answer.Len() {
		series := answer.Series(i)
		dst = appendLabels(append(dst, separator...), series.Labels)
		separator = `,"metricPoints":[`
		for at, value := range series.Points() {
			if dst, err = spill(appendGauge(append(dst, separator...), at, value)); err != nil {
				return dst, err
			}
			separator = ","
		}
		dst = append(dst, "]}"...)
	}
	if answer.Len() > 0 {
		dst = append(dst, ']')
	}
	return append(dst, '}'), nil
}

// appendLabels appends the beginning of a series.
func appendLabels(dst []byte, labels []spanmetrics.Label) []byte {
	for i, l := range labels {
		begin := `{"labels":[{"name":"`
		if i > 0 {
			begin = `,{"name":"`
		}
		dst = append(append(append(dst, begin...), l.Name...), `","value":`...)
		dst = append(otlpdata.AppendJSONString(dst, l.Value), '}')
	}
	return append(dst, ']')
}

// appendGauge appends a point. NaN is a string, since JSON has no number for it.
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
