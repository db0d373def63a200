package query

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	metricspb "github.com/tracing-backend/tracing/internal/wire/api_v2/metrics"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// queryRates is api_v2.metrics.MetricsQueryService: what GET /api/metrics/... tells.
type queryRates struct {
	metricspb.UnimplementedMetricsQueryServiceServer
	grpcQuery
}

// GetLatencies tells a quantile of durations in milliseconds.
func (q *queryRates) GetLatencies(ctx context.Context, r *metricspb.GetLatenciesRequest) (*metricspb.GetMetricsResponse, error) {
	if !isQuantile(r.Quantile) {
		return nil, status.Error(codes.InvalidArgument, errBadQuantile.Error())
	}
	return q.measured(ctx, latencies(r.Quantile), r.BaseRequest)
}

// GetCallRates tells calls per second.
func (q *queryRates) GetCallRates(ctx context.Context, r *metricspb.GetCallRatesRequest) (*metricspb.GetMetricsResponse, error) {
	return q.measured(ctx, callRates(), r.BaseRequest)
}

// GetErrorRates tells the share of calls that failed.
func (q *queryRates) GetErrorRates(ctx context.Context, r *metricspb.GetErrorRatesRequest) (*metricspb.GetMetricsResponse, error) {
	return q.measured(ctx, errorRates(), r.BaseRequest)
}

// GetMinStepDuration tells the shortest step.
func (q *queryRates) GetMinStepDuration(ctx context.Context, _ *metricspb.GetMinStepDurationRequest) (
	*metricspb.GetMinStepDurationResponse, error,
) {
	err := q.ask(ctx, opGetMinStep, "failed to fetch min step duration", func(*turn) (int, error) {
		if _, ok := q.store.(tracestore.Metrics); !ok {
			return 0, errNoRates
		}
		return 0, nil
	})
	return &metricspb.GetMinStepDurationResponse{MinStep: durationpb.New(leastRateStep)}, err
}

func (q *queryRates) measured(ctx context.Context, m measurement, r *metricspb.MetricsQueryBaseRequest) (
	*metricspb.GetMetricsResponse, error,
) {
	now := q.now()
	question, err := rateQuestionOf(r, now)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	grid, err := newRateGrid(question, now)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	out := &metricspb.GetMetricsResponse{}
	err = q.ask(ctx, m.op, m.doing, func(t *turn) (int, error) {
		a, err := q.rates(t, m, question, grid)
		if err == nil {
			warn(t, a.missing)
			out.Metrics = a.message()
		}
		return 0, err
	})
	return out, err
}

// rateQuestionOf reads a request; nil is an empty one.
func rateQuestionOf(r *metricspb.MetricsQueryBaseRequest, now time.Time) (*rateQuestion, error) {
	q := &rateQuestion{services: r.GetServiceNames(), byOperation: r.GetGroupByOperation(), end: now}
	if len(q.services) == 0 {
		return nil, errNoRateService
	}
	if t := r.GetEndTime(); t != nil {
		q.end = t.AsTime()
	}
	for _, k := range r.GetSpanKinds() {
		if _, ok := metricspb.SpanKind_name[int32(k)]; !ok {
			return nil, fmt.Errorf("unsupported span kind: '%d'", k)
		}
		q.kinds = append(q.kinds, (&otlpdata.Span{Kind: int32(k)}).KindName())
	}
	if len(q.kinds) == 0 {
		q.kinds = []string{defaultRateKind}
	}
	var errs [3]error
	q.lookback, errs[0] = rateDuration("lookback", r.GetLookback(), defaultRateLookback)
	q.step, errs[1] = rateDuration("step", r.GetStep(), defaultRateStep)
	q.per, errs[2] = rateDuration("ratePer", r.GetRatePer(), defaultRatePer)
	return q, errors.Join(errs[:]...)
}

func rateDuration(name string, d *durationpb.Duration, absent time.Duration) (time.Duration, error) {
	if d == nil {
		return absent, nil
	}
	if d.AsDuration() < 0 {
		return 0, fmt.Errorf("%s %w", name, errNegative)
	}
	return d.AsDuration(), nil
}

// message returns the answer as a family of OpenMetrics.
func (a *rateAnswer) message() *metricspb.MetricFamily {
	f := &metricspb.MetricFamily{Name: a.name, Type: metricspb.MetricType_GAUGE, Help: a.help}
	for i := range a.series {
		s := &a.series[i]
		m := &metricspb.Metric{MetricPoints: make([]*metricspb.MetricPoint, 0, a.grid.pointsOf(s))}
		for _, l := range a.labels(s) {
			m.Labels = append(m.Labels, &metricspb.Label{Name: l.name, Value: asText(l.value)})
		}
		for at, value := range a.all(s) {
			gauge := &metricspb.GaugeValue{Value: &metricspb.GaugeValue_DoubleValue{DoubleValue: value}}
			m.MetricPoints = append(m.MetricPoints, &metricspb.MetricPoint{
				Value: &metricspb.MetricPoint_GaugeValue{GaugeValue: gauge}, Timestamp: &timestamppb.Timestamp{Seconds: at}})
		}
		f.Metrics = append(f.Metrics, m)
	}
	return f
}
