package query_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/jaegertracing/jaeger-idl/model/v1"
	"github.com/jaegertracing/jaeger-idl/proto-gen/api_v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/wire/api_v3"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// TestJaegerQueryClient checks that a Jaeger client gets the same over gRPC as over the JSON API.
// Every method has two names: Jaeger's and this project's.
func TestJaegerQueryClient(t *testing.T) {
	harness.SkipIfShort(t)
	p, large := startWithTraces(t, "exporters::memory::max_bytes=64MiB", "extensions::query::archive_storage=memory")
	c := dialQuery(p, grpc.WithDefaultCallOptions(grpc.ForceCodecV2(gogoCodec{})))
	stub, ctx := api_v2.NewQueryServiceClient(c.conn), t.Context()
	id, err := model.TraceIDFromString(large)
	if err != nil {
		t.Fatal(err)
	}
	const ours = "/tracing.api_v2.QueryService/"

	services, err := stub.GetServices(ctx, &api_v2.GetServicesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, "services", services.Services, inprocess.Ask[[]string](p, "/api/services"))
	service := services.Services[0]

	for _, raw := range []bool{false, true} {
		want := canonicalJSON(inprocess.Ask[[]harness.UITrace](p, "/api/traces/"+large+"?raw="+strconv.FormatBool(raw)))
		get := &api_v2.GetTraceRequest{TraceID: id, RawTraces: raw}
		s, err := stub.GetTrace(ctx, get)
		if err != nil {
			t.Fatal(err)
		}
		chunks, err := receiveAll(s.Recv)
		if err != nil || len(want) != 10_000 {
			t.Fatalf("%d spans, %v", len(want), err)
		}
		checkSame(t, "trace", canonicalChunks(chunks), want)
		chunks, err = stream[api_v2.SpansResponseChunk](c, ours+"GetTrace", get)
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, "trace by the other name", canonicalChunks(chunks), want)
	}

	find := &api_v2.FindTracesRequest{Query: &api_v2.TraceQueryParameters{
		ServiceName: service, StartTimeMin: time.Now().Add(-time.Hour), StartTimeMax: time.Now(), SearchDepth: 5,
	}}
	want := canonicalJSON(inprocess.Ask[[]harness.UITrace](p, "/api/traces?limit=5&service="+url.QueryEscape(service)))
	found, err := stub.FindTraces(ctx, find)
	if err != nil {
		t.Fatal(err)
	}
	chunks, err := receiveAll(found.Recv)
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, "search", canonicalChunks(chunks), want)
	chunks, err = stream[api_v2.SpansResponseChunk](c, ours+"FindTraces", find)
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, "search by the other name", canonicalChunks(chunks), want)

	compareCatalog(p, c, stub, service)
	compareDependencies(p, c, stub)
	archiveByClient(c, stub, id)
}

// compareCatalog compares services and operations.
func compareCatalog(p *inprocess.Program, c *queryClient, stub api_v2.QueryServiceClient, service string) {
	t, ctx := p.T, p.T.Context()
	var want []string
	for _, op := range inprocess.Ask[[]struct{ Name, SpanKind string }](p, "/api/operations?service="+url.QueryEscape(service)) {
		want = append(want, op.Name+"/"+op.SpanKind)
	}
	for _, byName := range []bool{false, true} {
		out := &api_v2.GetOperationsResponse{}
		in, err := &api_v2.GetOperationsRequest{Service: service}, error(nil)
		if byName {
			err = c.conn.Invoke(ctx, "/tracing.api_v2.QueryService/GetOperations", in, out)
		} else {
			out, err = stub.GetOperations(ctx, in)
		}
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, op := range out.Operations {
			got = append(got, op.Name+"/"+op.SpanKind)
		}
		checkSame(t, "operations", got, want)
		asked := inprocess.Ask[[]string](p, "/api/services/"+url.PathEscape(service)+"/operations")
		checkSame(t, "names of operations", out.OperationNames, asked)
	}
	out := &api_v2.GetServicesResponse{}
	if err := c.conn.Invoke(ctx, "/tracing.api_v2.QueryService/GetServices", &api_v2.GetServicesRequest{}, out); err != nil {
		t.Fatal(err)
	}
	checkSame(t, "services by the other name", out.Services, inprocess.Ask[[]string](p, "/api/services"))
}

// compareDependencies compares the calls between services.
func compareDependencies(p *inprocess.Program, c *queryClient, stub api_v2.QueryServiceClient) {
	t, ctx := p.T, p.T.Context()
	now := time.Now()
	var want []string
	for _, d := range inprocess.Ask[[]struct {
		Parent, Child string
		CallCount     uint64
	}](p, fmt.Sprintf("/api/dependencies?endTs=%d&lookback=3600000", now.UnixMilli())) {
		want = append(want, fmt.Sprint(d.Parent, d.Child, d.CallCount))
	}
	in := &api_v2.GetDependenciesRequest{StartTime: now.Add(-time.Hour), EndTime: now}
	out, err := stub.GetDependencies(ctx, in)
	again := &api_v2.GetDependenciesResponse{}
	if err := errors.Join(err, c.conn.Invoke(ctx, "/tracing.api_v2.QueryService/GetDependencies", in, again)); err != nil {
		t.Fatal(err)
	}
	for _, links := range [][]model.DependencyLink{out.Dependencies, again.Dependencies} {
		var got []string
		for _, d := range links {
			got = append(got, fmt.Sprint(d.Parent, d.Child, d.CallCount))
		}
		checkSame(t, "dependencies", got, want)
	}
}

// archiveByClient archives a trace.
func archiveByClient(c *queryClient, stub api_v2.QueryServiceClient, id model.TraceID) {
	t, ctx := c.t, c.t.Context()
	in := &api_v2.ArchiveTraceRequest{TraceID: id}
	_, err := stub.ArchiveTrace(ctx, in)
	if err := errors.Join(err, c.conn.Invoke(ctx, "/tracing.api_v2.QueryService/ArchiveTrace", in,
		&api_v2.ArchiveTraceResponse{})); err != nil {
		t.Error(err)
	}
	in.TraceID.Low++
	_, err = stub.ArchiveTrace(ctx, in)
	if s := status.Convert(err); s.Code() != codes.NotFound || s.Message() != "trace not found: trace not found" {
		t.Errorf("archiving an unknown trace: %v", err)
	}
}

// TestQueryOverGRPCHealthAndTenants checks the health service and the tenancy of the gRPC listener.
func TestQueryOverGRPCHealthAndTenants(t *testing.T) {
	p := inprocess.Start(t, "extensions::query::grpc::tenancy::enabled=true")
	c := dialQuery(p)
	for _, name := range []string{"jaeger.api_v2.QueryService", "tracing.api_v2.QueryService",
		"jaeger.api_v3.QueryService", "tracing.api_v3.QueryService"} {
		h, err := healthpb.NewHealthClient(c.conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
		if err != nil || h.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%s: %v, %v", name, h, err)
		}
		err = c.conn.Invoke(context.WithoutCancel(t.Context()), "/"+name+"/GetServices", &api_v3.GetServicesRequest{},
			&api_v3.GetServicesResponse{})
		if s := status.Convert(err); s.Message() != "missing tenant header" {
			t.Errorf("%s without a tenant: %v", name, err)
		}
	}
}
