package tempo

import (
	"math"
	"net/url"
	"strconv"
	"time"

	"google.golang.org/grpc"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/grpcapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/metricsquery"
	"github.com/tracing-backend/tracing/internal/translate/otlpchunks"
	"github.com/tracing-backend/tracing/internal/wire/streaming"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// failedMetrics is the beginning of the text of store errors.
const failedMetrics = "failed to run metrics query"

// metricsValues returns a request as parameters of the HTTP API. Times are in nanoseconds.
func metricsValues(query string, start, end uint64) url.Values {
	return url.Values{"q": {query}, "start": {strconv.FormatUint(start, 10)}, "end": {strconv.FormatUint(end, 10)}}
}

// MetricsQueryRange sends time series.
func (s *Streaming) MetricsQueryRange(
	r *streaming.QueryRangeRequest, stream grpc.ServerStreamingServer[streaming.QueryRangeResponse],
) error {
	v := metricsValues(r.GetQuery(), r.GetStart(), r.GetEnd())
	if n := r.GetStep(); n > 0 {
		v.Set("step", time.Duration(min(n, math.MaxInt64)).String())
	}
	if n := r.GetExemplars(); n > 0 {
		v.Set("exemplars", strconv.FormatUint(uint64(n), 10))
	}
	q, err := parseMetricsRange(s.backend.Language(stream.Context()), v, s.backend.Now(), s.backend.Limits())
	if err != nil {
		return invalidArgument(err)
	}
	return s.metrics(stream, &q)
}

// MetricsQueryInstant sends one value for each series.
func (s *Streaming) MetricsQueryInstant(
	r *streaming.QueryInstantRequest, stream grpc.ServerStreamingServer[streaming.QueryInstantResponse],
) error {
	v := metricsValues(r.GetQuery(), r.GetStart(), r.GetEnd())
	q, err := parseMetricsInstant(s.backend.Language(stream.Context()), v, s.backend.Now(), s.backend.Limits())
	if err != nil {
		return invalidArgument(err)
	}
	return s.metrics(stream, &q)
}

func (s *Streaming) metrics(stream grpc.ServerStream, q *metricsquery.Query) error {
	send := grpcapi.SendTo(stream)
	return s.calls.Run(stream.Context(), core.OpAggregate, failedMetrics, func(slot *core.Slot) (int, error) {
		found, err := metricsquery.Run(slot, q)
		if err != nil {
			return 0, err
		}
		var series, message []byte
		for i := range found.Series {
			series = appendProtoSeries(series[:0], &found, &found.Series[i], q.Step == 0)
			if len(message) > 0 && len(message)+len(series) > maxTraces {
				if err := send(appendMetricsEnd(message, &found)); err != nil {
					return i, err
				}
				message = message[:0]
			}
			message = append(message, series...)
		}
		return len(found.Series), send(appendMetricsEnd(message, &found))
	})
}

// appendMetricsEnd appends what each message has after the series: how much was searched, and what
// is missing.
func appendMetricsEnd(dst []byte, found *metricsquery.Result) []byte {
	const status, partial, text = 3, 1, 4
	dst = appendMetrics(dst, found.Scanned, 1)
	if found.Partial == "" {
		return dst
	}
	return protoenc.AppendString(protoenc.AppendUint(dst, status, partial), text, validText(found.Partial))
}

// appendProtoSeries appends a series as field 1 of a response. An instant series without a sample
// is left out.
func appendProtoSeries(dst []byte, found *metricsquery.Result, s *metricsquery.Series, instant bool) []byte {
	if instant && math.IsNaN(s.Samples[0]) {
		return dst
	}
	dst, at := protoenc.BeginMessage(dst, 1, lengthBytes)
	dst = appendProtoLabels(dst, s.Labels)
	if instant {
		dst = protoenc.AppendFixed64(dst, 2, math.Float64bits(s.Samples[0]))
		return protoenc.EndMessage(dst, at, lengthBytes)
	}
	for i, v := range s.Samples {
		if math.IsNaN(v) {
			continue
		}
		var sample int
		dst, sample = protoenc.BeginMessage(dst, 2, 1)
		dst = protoenc.AppendFixed64(dst, 1, math.Float64bits(v))
		dst = protoenc.AppendUint(dst, 2, uint64(found.Times[i].UnixMilli()))
		dst = protoenc.EndMessage(dst, sample, 1)
	}
	for i := range s.Exemplars {
		e := &s.Exemplars[i]
		var exemplar int
		dst, exemplar = protoenc.BeginMessage(dst, 4, 1)
		dst = appendProtoLabels(dst, e.Labels)
		dst = protoenc.AppendFixed64(dst, 2, math.Float64bits(e.Value))
		dst = protoenc.AppendUint(dst, 3, uint64(e.Time.UnixMilli()))
		dst = protoenc.EndMessage(dst, exemplar, 1)
	}
	return protoenc.EndMessage(dst, at, lengthBytes)
}

func appendProtoLabels(dst []byte, labels []metricsquery.Label) []byte {
	for _, l := range labels {
		v := l.Value
		if k := v.Kind(); k != otlpdata.ValueInt && k != otlpdata.ValueDouble && k != otlpdata.ValueBool {
			v = otlpdata.StringValue(v.AsString())
		}
		dst = otlpchunks.AppendAttributes(dst, 1, []otlpdata.KeyValue{{Key: l.Key, Value: v}})
	}
	return dst
}
