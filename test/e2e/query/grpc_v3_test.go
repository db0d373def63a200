package query_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/internal/wire/api_v3"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// otlpLines returns the spans of OTLP messages as sorted lines of JSON, each with its resource and
// scope.
func otlpLines(t *testing.T, all ...ptrace.Traces) (lines []string) {
	t.Helper()
	for _, td := range all {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					one := ptrace.NewTraces()
					r := one.ResourceSpans().AppendEmpty()
					rs.Resource().CopyTo(r.Resource())
					sc := r.ScopeSpans().AppendEmpty()
					ss.Scope().CopyTo(sc.Scope())
					s.CopyTo(sc.Spans().AppendEmpty())
					b, err := (&ptrace.JSONMarshaler{}).MarshalTraces(one)
					if err != nil {
						t.Fatal(err)
					}
					lines = append(lines, string(b))
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// fromMessages decodes messages of version 3 as pdata.
func fromMessages(t *testing.T, messages []*tracepb.TracesData) (all []ptrace.Traces) {
	t.Helper()
	for _, m := range messages {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(b)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, td)
	}
	return all
}

// fromV3 gets traces from the HTTP API of version 3.
func fromV3(p *inprocess.Program, path string) ptrace.Traces {
	p.T.Helper()
	code, body := harness.Fetch(p.T, p.QueryURL()+path)
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal(body, &answer); err != nil || code != 200 {
		p.T.Fatalf("%s: %d %v %.1000s", path, code, err, body)
	}
	td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(answer.Result)
	if err != nil {
		p.T.Fatal(err)
	}
	return td
}

// TestQueryV3 checks that version 3 of the API returns the same over gRPC as over HTTP, under both
// names.
func TestQueryV3(t *testing.T) {
	harness.SkipIfShort(t)
	p, large := startWithTraces(t)
	c, ctx := dialQuery(p), t.Context()
	from, to := time.Now().Add(-time.Hour), time.Now()
	var services api_v3.GetServicesResponse
	if err := c.conn.Invoke(ctx, "/jaeger.api_v3.QueryService/GetServices", &api_v3.GetServicesRequest{}, &services); err != nil {
		t.Fatal(err)
	}
	checkSame(t, "services", services.Services, inprocess.Ask[[]string](p, "/api/services"))
	service := services.Services[0]
	params := &api_v3.TraceQueryParameters{ServiceName: service, SearchDepth: 5, StartTimeMin: timestamppb.New(from),
		StartTimeMax: timestamppb.New(to)}
	search := url.Values{"query.serviceName": {service}, "query.searchDepth": {"5"},
		"query.startTimeMin": {from.Format(time.RFC3339Nano)}, "query.startTimeMax": {to.Format(time.RFC3339Nano)}}.Encode()
	trace, found := otlpLines(t, fromV3(p, "/api/v3/traces/"+large)), otlpLines(t, fromV3(p, "/api/v3/traces?"+search))
	_, summaries := harness.Fetch(t, p.QueryURL()+"/api/v3/trace-summaries?"+search)
	wantSummaries := &api_v3.FindTraceSummariesResponse{}
	if err := protojson.Unmarshal(summaries, wantSummaries); err != nil || len(wantSummaries.Summaries) == 0 {
		t.Fatalf("%v in %.1000s", err, summaries)
	}
	for _, name := range []string{"/jaeger.api_v3.QueryService/", "/tracing.api_v3.QueryService/"} {
		messages, err := stream[tracepb.TracesData](c, name+"GetTrace", &api_v3.GetTraceRequest{TraceId: large})
		if err != nil || len(messages) < 2 {
			t.Fatalf("10,000 spans in %d messages, %v", len(messages), err)
		}
		checkSame(t, name+"GetTrace", otlpLines(t, fromMessages(t, messages)...), trace)
		messages, err = stream[tracepb.TracesData](c, name+"FindTraces", &api_v3.FindTracesRequest{Query: params})
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, name+"FindTraces", otlpLines(t, fromMessages(t, messages)...), found)
		got, err := stream[api_v3.FindTraceSummariesResponse](c, name+"FindTraceSummaries", &api_v3.FindTraceSummariesRequest{Query: params})
		if err != nil || len(got) != 1 || !proto.Equal(got[0], wantSummaries) {
			t.Errorf("%v, %v, want %v", got, err, wantSummaries)
		}
		var ops api_v3.GetOperationsResponse
		var deps api_v3.DependenciesResponse
		err = errors.Join(c.conn.Invoke(ctx, name+"GetOperations", &api_v3.GetOperationsRequest{Service: service}, &ops),
			c.conn.Invoke(ctx, name+"GetDependencies", &api_v3.GetDependenciesRequest{StartTime: params.StartTimeMin,
				EndTime: params.StartTimeMax}, &deps))
		if err != nil || len(ops.Operations) == 0 || len(deps.Dependencies) == 0 {
			t.Errorf("%v, %v, %v", &ops, &deps, err)
		}
		if got, want := len(ops.Operations), len(inprocess.Ask[[]any](p, "/api/operations?service="+url.QueryEscape(service))); got != want {
			t.Errorf("%d operations, want %d", got, want)
		}
	}
}
