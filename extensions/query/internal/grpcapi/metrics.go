package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/spanmetrics"
	metricspb "github.com/tracing-backend/tracing/internal/wire/api_v2/metrics"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// metricsQuery is api_v2.metrics.MetricsQueryService, the gRPC form of GET /api/metrics/...
type metricsQuery struct {
	metricspb.UnimplementedMetricsQueryServiceServer
	calls Calls
}

// GetLatencies returns a quantile of durations, in milliseconds.
func (q *metricsQuery) GetLatencies(ctx context.Context, r *metricspb.GetLatenciesRequest) (*metricspb.GetMetricsResponse, error) {
	if !spanmetrics.IsQuantile(r.Quantile) {
		return nil, status.Error(codes.InvalidArgument, spanmetrics.ErrBadQuantile.Error())
	}
	return q.metrics(ctx, spanmetrics.Latencies(r.Quantile), r.BaseRequest)
}

// GetCallRates returns calls per second.
func (q *metricsQuery) GetCallRates(ctx context.Context, r *metricspb.GetCallRatesRequest) (*metricspb.GetMetricsResponse, error) {
	return q.metrics(ctx, spanmetrics.CallRates(), r.BaseRequest)
}

// GetErrorRates returns the fraction of calls that failed.
func (q *metricsQuery) GetErrorRates(ctx context.Context, r *metricspb.GetErrorRatesRequest) (*metricspb.GetMetricsResponse, error) {
	return q.metrics(ctx, spanmetrics.ErrorRates(), r.BaseRequest)
}

// GetMinStepDuration returns the minimum time between two points.
func (q *metricsQuery) GetMinStepDuration(ctx context.Context, _ *metricspb.GetMinStepDurationRequest) (
	*metricspb.GetMinStepDurationResponse, error,
) {
	err := q.calls.Run(ctx, core.OpGetMinStep, "failed to fetch min step duration", func(slot *core.Slot) (int, error) {
		if _, ok := core.SlotAs[tracestore.Metrics](slot); !ok {
			return 0, spanmetrics.ErrUnsupported
		}
		return 0, nil
	})
	return &metricspb.GetMinStepDurationResponse{MinStep: durationpb.New(spanmetrics.MinStep)}, err
}

func (q *metricsQuery) metrics(ctx context.Context, m spanmetrics.Metric, r *metricspb.MetricsQueryBaseRequest) (
	*metricspb.GetMetricsResponse, error,
) {
	now := q.calls.backend.Now()
	question, err := metricsQueryOf(r, now)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	grid, err := spanmetrics.NewGrid(question, now)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	out := &metricspb.GetMetricsResponse{}
	err = q.calls.Run(ctx, m.Operation, m.Failure, func(slot *core.Slot) (int, error) {
		a, err := spanmetrics.Fetch(slot, &m, question, grid)
		if err == nil {
			Warn(slot.Context(), core.IncompleteMessage(a.Incomplete))
			out.Metrics = metricFamily(a)
		}
		return 0, err
	})
	return out, err
}

// metricsQueryOf parses a request. A nil request is an empty one.
func metricsQueryOf(r *metricspb.MetricsQueryBaseRequest, now time.Time) (*spanmetrics.Query, error) {
	q := &spanmetrics.Query{Services: r.GetServiceNames(), ByOperation: r.GetGroupByOperation(), End: now}
	if len(q.Services) == 0 {
		return nil, spanmetrics.ErrNoService
	}
	if t := r.GetEndTime(); t != nil {
		q.End = t.AsTime()
	}
	for _, k := range r.GetSpanKinds() {
		if _, ok := metricspb.SpanKind_name[int32(k)]; !ok {
			return nil, fmt.Errorf("unsupported span kind: '%d'", k)
		}
		q.Kinds = append(q.Kinds, (&otlpdata.Span{Kind: int32(k)}).KindName())
	}
	if len(q.Kinds) == 0 {
		q.Kinds = []string{spanmetrics.DefaultKind}
	}
	var errs [3]error
	q.Lookback, errs[0] = durationOr("lookback", r.GetLookback(), spanmetrics.DefaultLookback)
	q.Step, errs[1] = durationOr("step", r.GetStep(), spanmetrics.DefaultStep)
	q.RatePer, errs[2] = durationOr("ratePer", r.GetRatePer(), spanmetrics.DefaultRatePer)
	return q, errors.Join(errs[:]...)
}

// durationOr returns a duration, or the default if it is absent. Negative durations are an error.
func durationOr(name string, d *durationpb.Duration, absent time.Duration) (time.Duration, error) {
	if d == nil {
		return absent, nil
	}
	if d.AsDuration() < 0 {
		return 0, fmt.Errorf("%s must not be negative", name)
	}
	return d.AsDuration(), nil
}

// metricFamily returns the result as a metric family of OpenMetrics.
func metricFamily(a *spanmetrics.Answer) *metricspb.MetricFamily {
	f := &metricspb.MetricFamily{Name: a.Name, Type: metricspb.MetricType_GAUGE, Help: a.Help}
	for i := range a.Len() {
		series := a.Series(i)
		m := &metricspb.Metric{MetricPoints: make([]*metricspb.MetricPoint, 0, series.Len())}
		for _, l := range series.Labels {
			m.Labels = append(m.Labels, &metricspb.Label{Name: l.Name, Value: validText(l.Value)})
		}
		for at, value := range series.Points() {
			gauge := &metricspb.GaugeValue{Value: &metricspb.GaugeValue_DoubleValue{DoubleValue: value}}
			m.MetricPoints = append(m.MetricPoints, &metricspb.MetricPoint{
				Value: &metricspb.MetricPoint_GaugeValue{GaugeValue: gauge}, Timestamp: &timestamppb.Timestamp{Seconds: at}})
		}
		f.Metrics = append(f.Metrics, m)
	}
	return f
}
