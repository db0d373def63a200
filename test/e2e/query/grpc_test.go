package query_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jaegertracing/jaeger-idl/model/v1"
	"github.com/jaegertracing/jaeger-idl/proto-gen/api_v2"
	"go.opentelemetry.io/collector/pdata/ptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/internal/wire/api_v3"
	"github.com/tracing-backend/tracing/test/bench"
	"github.com/tracing-backend/tracing/test/harness"
)

// gogoCodec encodes the messages of jaeger-idl, which gogo/protobuf has generated.
type gogoCodec struct{}

func (gogoCodec) Name() string { return "proto" }

func (gogoCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, err := v.(interface{ Marshal() ([]byte, error) }).Marshal()
	return mem.BufferSlice{mem.SliceBuffer(b)}, err
}

func (gogoCodec) Unmarshal(data mem.BufferSlice, v any) error {
	return v.(interface{ Unmarshal([]byte) error }).Unmarshal(data.Materialize())
}

// queryClient calls the query API over gRPC.
type queryClient struct {
	t    testing.TB
	conn *grpc.ClientConn
}

// dialQuery connects to the query API of a program.
func dialQuery(p *harness.Program, opts ...grpc.DialOption) *queryClient {
	p.T.Helper()
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(4<<20))) // the default of clients
	conn, err := grpc.NewClient(p.Addr("query", "grpc"), opts...)
	if err != nil {
		p.T.Fatal(err)
	}
	p.T.Cleanup(func() {
		if err := conn.Close(); err != nil {
			p.T.Error(err)
		}
	})
	return &queryClient{p.T, conn}
}

// receiveAll receives all messages of a stream.
func receiveAll[T any](recv func() (T, error)) (all []T, _ error) {
	for {
		m, err := recv()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, m)
	}
}

// stream calls a streaming method by its full name and returns all messages.
func stream[T any](c *queryClient, method string, in any) ([]*T, error) {
	s, err := c.conn.NewStream(c.t.Context(), &grpc.StreamDesc{ServerStreams: true}, method)
	if err == nil {
		err = errors.Join(s.SendMsg(in), s.CloseSend())
	}
	if err != nil {
		return nil, err
	}
	return receiveAll(func() (*T, error) { m := new(T); return m, s.RecvMsg(m) })
}

// canonical returns a span as one line of text, which is the same for every API.
func canonical(s *harness.UISpan, p *harness.UIProcess) string {
	var refs, logs []string
	for _, r := range s.References {
		refs = append(refs, fmt.Sprint(r))
	}
	for _, l := range s.Logs {
		logs = append(logs, fmt.Sprint(l.Timestamp, harness.TagStrings(l.Fields)))
	}
	return fmt.Sprint(s.TraceID, s.SpanID, s.Flags, s.OperationName, s.StartTime, s.Duration, refs, harness.TagStrings(s.Tags), logs,
		p.ServiceName, harness.TagStrings(p.Tags), s.Warnings)
}

// canonicalJSON returns the spans of the JSON API as sorted lines.
func canonicalJSON(traces []harness.UITrace) (lines []string) {
	for _, tr := range traces {
		for _, s := range tr.Spans {
			for i := range s.Tags {
				normalize(&s.Tags[i])
			}
			for _, l := range s.Logs {
				for i := range l.Fields {
					normalize(&l.Fields[i])
				}
			}
			p := tr.Processes[s.ProcessID]
			lines = append(lines, canonical(&s, &p))
		}
	}
	slices.Sort(lines)
	return lines
}

// normalize writes numbers and strings in the syntax of Go.
func normalize(t *harness.UITag) {
	switch t.Type {
	case "float64":
		if f, err := strconv.ParseFloat(string(t.Value), 64); err == nil {
			t.Value = json.RawMessage(fmt.Sprint(f))
		}
	case "int64":
		t.Value = json.RawMessage(strings.Trim(string(t.Value), `"`))
	case "string":
		var s string
		if json.Unmarshal(t.Value, &s) == nil {
			t.Value = json.RawMessage(strconv.Quote(s))
		}
	}
}

// canonicalChunks returns the spans of the gRPC API as sorted lines.
func canonicalChunks(chunks []*api_v2.SpansResponseChunk) (lines []string) {
	for _, c := range chunks {
		for i := range c.Spans {
			s := &c.Spans[i]
			out := harness.UISpan{
				TraceID: s.TraceID.String(), SpanID: s.SpanID.String(), Flags: uint32(s.Flags), OperationName: s.OperationName,
				StartTime: s.StartTime.UnixMicro(), Duration: s.Duration.Microseconds(), Tags: jaegerTags(s.Tags), Warnings: s.Warnings,
			}
			for _, r := range s.References {
				out.References = append(out.References, harness.UIReference{RefType: r.RefType.String(),
					TraceID: r.TraceID.String(), SpanID: r.SpanID.String()})
			}
			for _, l := range s.Logs {
				out.Logs = append(out.Logs, harness.UILog{Timestamp: l.Timestamp.UnixMicro(), Fields: jaegerTags(l.Fields)})
			}
			lines = append(lines, canonical(&out, &harness.UIProcess{ServiceName: s.Process.ServiceName, Tags: jaegerTags(s.Process.Tags)}))
		}
	}
	slices.Sort(lines)
	return lines
}

func jaegerTags(kvs []model.KeyValue) (tags []harness.UITag) {
	for _, kv := range kvs {
		t := harness.UITag{Key: kv.Key, Type: strings.ToLower(kv.VType.String())}
		switch kv.VType {
		case model.ValueType_STRING:
			t.Value = json.RawMessage(strconv.Quote(kv.VStr))
		case model.ValueType_BINARY:
			t.Value = json.RawMessage(strconv.Quote(base64.StdEncoding.EncodeToString(kv.VBinary)))
		default:
			t.Value = json.RawMessage(fmt.Sprint(kv.Value()))
		}
		tags = append(tags, t)
	}
	return tags
}

// startWithTraces starts a program with the traces of the data set and one trace of 10,000 spans,
// whose id it returns.
func startWithTraces(t *testing.T, settings ...string) (p *harness.Program, large string) {
	t.Helper()
	p = harness.Start(t, settings...)
	now := time.Now().Add(-time.Minute)
	first, spans := [16]byte{}, 0
	for r := range bench.New(3, now).Requests(12_000, 500) {
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if spans++; spans == 1 {
						first = s.TraceID()
					}
					if spans <= 10_000 {
						s.SetTraceID(first)
					}
				}
			}
		}
		body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		if err != nil {
			t.Fatal(err)
		}
		if code, answer := harness.Request(t, http.MethodPost, "http://"+p.OTLPHTTP()+"/v1/traces", string(body), "Content-Type", "application/x-protobuf"); code != 200 {
			t.Fatalf("%d %s", code, answer)
		}
	}
	return p, fmt.Sprintf("%x", first)
}

// checkSame compares lines of text.
func checkSame(t testing.TB, what string, got, want []string) {
	t.Helper()
	if len(want) == 0 {
		t.Errorf("%s: nothing to compare", what)
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			line := func(lines []string) []string { return lines[min(i, len(lines)):min(i+1, len(lines))] }
			t.Errorf("%s: %d lines, want %d\ngot  %.2000s\nwant %.2000s", what, len(got), len(want), line(got), line(want))
			return
		}
	}
}

// TestJaegerQueryClient checks that a Jaeger client gets the same over gRPC as over the JSON API.
// Every method has two names: that of Jaeger and that of this project.
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
	checkSame(t, "services", services.Services, harness.Ask[[]string](p, "/api/services"))
	service := services.Services[0]

	for _, raw := range []bool{false, true} {
		want := canonicalJSON(harness.Ask[[]harness.UITrace](p, "/api/traces/"+large+"?raw="+strconv.FormatBool(raw)))
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
	want := canonicalJSON(harness.Ask[[]harness.UITrace](p, "/api/traces?limit=5&service="+url.QueryEscape(service)))
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
func compareCatalog(p *harness.Program, c *queryClient, stub api_v2.QueryServiceClient, service string) {
	t, ctx := p.T, p.T.Context()
	var want []string
	for _, op := range harness.Ask[[]struct{ Name, SpanKind string }](p, "/api/operations?service="+url.QueryEscape(service)) {
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
		checkSame(t, "names of operations", out.OperationNames, harness.Ask[[]string](p, "/api/services/"+url.PathEscape(service)+"/operations"))
	}
	out := &api_v2.GetServicesResponse{}
	if err := c.conn.Invoke(ctx, "/tracing.api_v2.QueryService/GetServices", &api_v2.GetServicesRequest{}, out); err != nil {
		t.Fatal(err)
	}
	checkSame(t, "services by the other name", out.Services, harness.Ask[[]string](p, "/api/services"))
}

// compareDependencies compares the calls between services.
func compareDependencies(p *harness.Program, c *queryClient, stub api_v2.QueryServiceClient) {
	t, ctx := p.T, p.T.Context()
	now := time.Now()
	var want []string
	for _, d := range harness.Ask[[]struct {
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
func fromV3(p *harness.Program, path string) ptrace.Traces {
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
	checkSame(t, "services", services.Services, harness.Ask[[]string](p, "/api/services"))
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
		if got, want := len(ops.Operations), len(harness.Ask[[]any](p, "/api/operations?service="+url.QueryEscape(service))); got != want {
			t.Errorf("%d operations, want %d", got, want)
		}
	}
}

// TestQueryOverGRPCHealthAndTenants checks the health service and the tenancy of the gRPC listener.
func TestQueryOverGRPCHealthAndTenants(t *testing.T) {
	p := harness.Start(t, "extensions::query::grpc::tenancy::enabled=true")
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
