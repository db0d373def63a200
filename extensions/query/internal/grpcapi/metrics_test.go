package grpcapi

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/jaegerapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	metricspb "github.com/tracing-backend/tracing/internal/wire/api_v2/metrics"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// rates calls a method of the service by its original name.
func rates(t *testing.T, conn *grpc.ClientConn, method string, in proto.Message, opts ...grpc.CallOption) (*metricspb.MetricFamily, error) {
	t.Helper()
	out := &metricspb.GetMetricsResponse{}
	err := conn.Invoke(t.Context(), "/jaeger.api_v2.metrics.MetricsQueryService/"+method, in, out, opts...)
	return out.Metrics, err
}

// gRPC and HTTP give the same response, over HTTP as the JSON form of the protobuf message.
func TestMetricsEqualHTTP(t *testing.T) {
	store := querytest.NewStore(querytest.Shop())
	b, _ := querytest.NewBackend(t, store)
	h := httpapi.NewMux("", jaegerapi.New(b).Routes())
	conn := dial(t, store)
	base := func(kinds ...metricspb.SpanKind) *metricspb.MetricsQueryBaseRequest {
		return &metricspb.MetricsQueryBaseRequest{ServiceNames: []string{"web", "a/b"}, GroupByOperation: true, SpanKinds: kinds,
			EndTime: timestamppb.New(querytest.Start.Add(3 * time.Minute)), Lookback: durationpb.New(3 * time.Minute),
			Step:    durationpb.New(time.Second),
			RatePer: durationpb.New(time.Minute)}
	}
	params := url.Values{"service": {"web", "a/b"}, "groupByOperation": {"true"}, "quantile": {"0.95"},
		"endTs": {"1714557780000"}, "lookback": {"180000"},
		"step": {"1000"}, "ratePer": {"60000"}}
	for _, c := range []struct {
		method, path string
		kinds        []string
		in           proto.Message
	}{
		{"GetLatencies", "latencies", nil, &metricspb.GetLatenciesRequest{BaseRequest: base(), Quantile: 0.95}},
		{"GetCallRates", "calls", []string{"server", "client"}, &metricspb.GetCallRatesRequest{
			BaseRequest: base(metricspb.SpanKind_SPAN_KIND_SERVER, metricspb.SpanKind_SPAN_KIND_CLIENT)}},
		{"GetErrorRates", "errors", []string{"unspecified", "internal"}, &metricspb.GetErrorRatesRequest{
			BaseRequest: base(metricspb.SpanKind_SPAN_KIND_UNSPECIFIED, metricspb.SpanKind_SPAN_KIND_INTERNAL)}},
	} {
		got, err := rates(t, conn, c.method, c.in)
		if err != nil || len(got.GetMetrics()) == 0 {
			t.Errorf("%s: %v, %v", c.method, got, err)
			continue
		}
		params["spanKind"] = c.kinds
		want := &metricspb.MetricFamily{}
		body := querytest.Ask(t, h, http.MethodGet, "/api/metrics/"+c.path+"?"+params.Encode()).Body.Bytes()
		if err := protojson.Unmarshal(body, want); err != nil || got.String() != want.String() {
			t.Errorf("%s: got %v\nwant %v, %v", c.method, got, want, err)
		}
	}
}

func TestMetricsDefaults(t *testing.T) {
	store := querytest.NewStore(querytest.Shop())
	asked := make(chan tracestore.MetricsQuery, 1)
	store.OnMetrics = func(q tracestore.MetricsQuery) { asked <- q }
	conn := dial(t, store)
	before := time.Now()
	if _, err := rates(t, conn, "GetCallRates",
		&metricspb.GetCallRatesRequest{BaseRequest: &metricspb.MetricsQueryBaseRequest{ServiceNames: []string{"web"}}}); err != nil {
		t.Fatal(err)
	}
	q := <-asked
	// 60 points, the first for 10 minutes, or one fewer point while the last minute
	// settles. Both ends are inclusive.
	if d := q.To.Sub(q.From) + 1; d < 68*time.Minute || d > 70*time.Minute || q.To.Before(before.Add(-2*time.Minute)) ||
		q.To.After(time.Now()) ||
		strings.Join(q.Kinds, " ") != "server" || q.ByOperation || q.Step != time.Minute {
		t.Errorf("store query %+v", q)
	}
	var step metricspb.GetMinStepDurationResponse
	err := conn.Invoke(t.Context(), "/tracing.api_v2.metrics.MetricsQueryService/GetMinStepDuration",
		&metricspb.GetMinStepDurationRequest{}, &step)
	if err != nil || step.MinStep.AsDuration() != time.Minute {
		t.Errorf("minimum step %v, %v", &step, err)
	}
}

func TestMetricsErrors(t *testing.T) {
	good, plain := dial(t, querytest.NewStore(querytest.Shop())), dial(t, struct{ core.Store }{querytest.NewStore(querytest.Shop())})
	broken := querytest.NewStore(querytest.Shop())
	broken.Fail = querytest.ErrStore
	bad := dial(t, broken)
	base := func(change func(*metricspb.MetricsQueryBaseRequest)) *metricspb.MetricsQueryBaseRequest {
		r := &metricspb.MetricsQueryBaseRequest{ServiceNames: []string{"web"}}
		change(r)
		return r
	}
	web := base(func(*metricspb.MetricsQueryBaseRequest) {})
	for _, c := range []struct {
		conn   *grpc.ClientConn
		method string
		in     proto.Message
		code   codes.Code
		text   string
	}{
		{good, "GetCallRates", &metricspb.GetCallRatesRequest{}, codes.InvalidArgument, "please provide at least one service name"},
		{good, "GetLatencies", &metricspb.GetLatenciesRequest{BaseRequest: web}, codes.InvalidArgument,
			"please provide a quantile between (0, 1]"},
		{good, "GetLatencies", &metricspb.GetLatenciesRequest{BaseRequest: web, Quantile: 2}, codes.InvalidArgument,
			"please provide a quantile between (0, 1]"},
		{good, "GetErrorRates", &metricspb.GetErrorRatesRequest{BaseRequest: base(func(r *metricspb.MetricsQueryBaseRequest) {
			r.SpanKinds = []metricspb.SpanKind{9}
		})}, codes.InvalidArgument, "unsupported span kind: '9'"},
		{good, "GetErrorRates", &metricspb.GetErrorRatesRequest{BaseRequest: base(func(r *metricspb.MetricsQueryBaseRequest) {
			r.Step = durationpb.New(-1)
		})}, codes.InvalidArgument, "step must not be negative"},
		{good, "GetErrorRates", &metricspb.GetErrorRatesRequest{BaseRequest: base(func(r *metricspb.MetricsQueryBaseRequest) {
			r.EndTime, r.Lookback = timestamppb.New(querytest.Noon), durationpb.New(30*24*time.Hour)
		})}, codes.InvalidArgument, "lookback has 43201 steps of 1 minutes, which is more than 11000"},
		{plain, "GetCallRates", &metricspb.GetCallRatesRequest{BaseRequest: web}, codes.Unimplemented,
			"metrics querying is currently disabled"},
		{plain, "GetMinStepDuration", &metricspb.GetMinStepDurationRequest{}, codes.Unimplemented,
			"metrics querying is currently disabled"},
		{bad, "GetLatencies", &metricspb.GetLatenciesRequest{BaseRequest: web, Quantile: 1}, codes.Internal,
			"failed to fetch latencies: disk on fire"},
		{bad, "GetCallRates", &metricspb.GetCallRatesRequest{BaseRequest: web}, codes.Internal, "failed to fetch call rates: disk on fire"},
		{bad, "GetErrorRates", &metricspb.GetErrorRatesRequest{BaseRequest: web}, codes.Internal,
			"failed to fetch error rates: disk on fire"},
	} {
		_, err := rates(t, c.conn, c.method, c.in)
		if s := status.Convert(err); s.Code() != c.code || s.Message() != c.text {
			t.Errorf("%s(%v): %v %q, want %v %q", c.method, c.in, s.Code(), s.Message(), c.code, c.text)
		}
	}
}

func TestMetricsIncompleteAnswersWarn(t *testing.T) {
	store := querytest.NewStore(querytest.Shop())
	store.Outcome = tracestore.Outcome{Reasons: tracestore.Because(tracestore.ReasonDamage, "a part is gone")}
	var trailer metadata.MD
	in := &metricspb.GetCallRatesRequest{BaseRequest: &metricspb.MetricsQueryBaseRequest{ServiceNames: []string{"web"}}}
	_, err := rates(t, dial(t, store), "GetCallRates", in, grpc.Trailer(&trailer))
	if got := trailer.Get(WarningTrailer); err != nil || len(got) != 1 || got[0] != "result is incomplete: a part is gone" {
		t.Errorf("trailer %q, %v", got, err)
	}
}
