package grpcapi

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/internal/translate/pagetoken"
	"github.com/tracing-backend/tracing/internal/translate/queryfilter"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/internal/wire/api_v3"
	"github.com/tracing-backend/tracing/internal/wire/expression_v1"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dial serves a store over gRPC and returns a connected client. Its limits are high unless change
// sets others.
func dial(t testing.TB, store core.Store, change ...func(*core.Options)) *grpc.ClientConn {
	t.Helper()
	b, _ := querytest.NewBackend(t, store, func(o *core.Options) {
		o.Limits = core.Limits{Timeout: 30 * time.Second, PatternTime: time.Minute, Traces: 10_000, TraceSize: 200_000, Scanned: 50_000_000,
			Aggregated: 200_000, Queries: 256, Names: 10_000, MetricsRange: 24 * time.Hour, MetricsPoints: 10_000, MetricsSeries: 1000}
		o.Memory, o.Now = pipeline.NewQueryBudget(512<<20), time.Now
		for _, f := range change {
			f(o)
		}
	})
	srv, err := New(querytest.Settings(t), server.DefaultGRPCConfig("localhost:0"), b)
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(srv.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), srv.Stop(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// receive returns all messages of a stream.
func receive[T any](stream grpc.ServerStreamingClient[T], err error) ([]*T, error) {
	if err != nil {
		return nil, err
	}
	var all []*T
	for {
		m, err := stream.Recv()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, m)
	}
}

// Failing calls have the codes and texts of the original services.
func TestGRPCErrors(t *testing.T) {
	good, broken := dial(t, querytest.NewStore(querytest.Shop())),
		dial(t, &querytest.Store{Spans: querytest.NewStore(querytest.Shop()).Spans, Fail: querytest.ErrStore})
	plain := dial(t, struct{ core.Store }{querytest.NewStore(querytest.Shop())})
	one, times := make([]byte, 16), &timestamppb.Timestamp{Seconds: 1}
	one[15] = 1
	year1 := timestamppb.New(time.Time{})
	unary := func(conn *grpc.ClientConn, method string, in proto.Message) error {
		return conn.Invoke(t.Context(), "/tracing."+method, in, &api_v2.ArchiveTraceResponse{})
	}
	stream := func(conn *grpc.ClientConn, method string, in proto.Message) error {
		s, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/tracing."+method)
		if err != nil {
			return err
		}
		_, err = receive[api_v2.SpansResponseChunk](&grpc.GenericClientStream[any, api_v2.SpansResponseChunk]{ClientStream: s},
			errors.Join(s.SendMsg(in), s.CloseSend()))
		return err
	}
	for _, c := range []struct {
		call   func(*grpc.ClientConn, string, proto.Message) error
		conn   *grpc.ClientConn
		method string
		in     proto.Message
		code   codes.Code
		text   string
	}{
		{stream, good, "api_v2.QueryService/GetTrace", &api_v2.GetTraceRequest{}, codes.InvalidArgument,
			"uninitialized TraceID is not allowed"},
		{stream, good, "api_v2.QueryService/GetTrace", &api_v2.GetTraceRequest{TraceId: make([]byte, 16)}, codes.InvalidArgument,
			"uninitialized TraceID is not allowed"},
		{stream, good, "api_v2.QueryService/GetTrace", &api_v2.GetTraceRequest{TraceId: one[:7]}, codes.Internal,
			"grpc: error unmarshalling request: invalid length for TraceID"},
		{stream, good, "api_v2.QueryService/GetTrace", &api_v2.GetTraceRequest{TraceId: []byte("sixteen letters!")},
			codes.NotFound, "trace not found"},
		{stream, good, "api_v2.QueryService/FindTraces", &api_v2.FindTracesRequest{}, codes.InvalidArgument, "missing query"},
		{unary, good, "api_v2.QueryService/ArchiveTrace", &api_v2.ArchiveTraceRequest{}, codes.InvalidArgument,
			"uninitialized TraceID is not allowed"},
		{unary, good, "api_v2.QueryService/ArchiveTrace", &api_v2.ArchiveTraceRequest{TraceId: one}, codes.Internal,
			"failed to archive trace: archive span storage was not configured"},
		{unary, good, "api_v2.QueryService/GetDependencies", &api_v2.GetDependenciesRequest{StartTime: year1, EndTime: times},
			codes.InvalidArgument, "StartTime and EndTime must be initialized."},
		{unary, plain, "api_v2.QueryService/GetDependencies", &api_v2.GetDependenciesRequest{StartTime: times, EndTime: times},
			codes.Unimplemented, "store does not support service dependencies"},
		{stream, broken, "api_v2.QueryService/GetTrace", &api_v2.GetTraceRequest{TraceId: one}, codes.Internal,
			"failed to fetch spans from the backend: disk on fire"},
		{stream, broken, "api_v2.QueryService/FindTraces", &api_v2.FindTracesRequest{Query: &api_v2.TraceQueryParameters{}},
			codes.Internal, "failed when searching for traces: disk on fire"},
		{unary, broken, "api_v2.QueryService/GetServices", &api_v2.GetServicesRequest{}, codes.Internal,
			"failed to fetch services: disk on fire"},
		{unary, broken, "api_v2.QueryService/GetOperations", &api_v2.GetOperationsRequest{}, codes.Internal,
			"failed to fetch operations: disk on fire"},
		{unary, broken, "api_v2.QueryService/GetDependencies", &api_v2.GetDependenciesRequest{StartTime: times, EndTime: times},
			codes.Internal, "failed to fetch dependencies: disk on fire"},
		{stream, good, "api_v3.QueryService/GetTrace", &api_v3.GetTraceRequest{TraceId: "zzz"}, codes.Unknown,
			`malform trace ID: invalid trace id "zzz": use 1 to 32 hexadecimal digits`},
		{stream, good, "api_v3.QueryService/GetTrace", &api_v3.GetTraceRequest{}, codes.InvalidArgument, "request has no trace_id"},
		{stream, good, "api_v3.QueryService/GetTrace", &api_v3.GetTraceRequest{TraceId: "77"}, codes.OK, ""},
		{stream, good, "api_v3.QueryService/FindTraces", &api_v3.FindTracesRequest{}, codes.InvalidArgument, "missing query"},
		{stream, good, "api_v3.QueryService/FindTraceSummaries", &api_v3.FindTraceSummariesRequest{},
			codes.InvalidArgument, "missing query"},
		{stream, good, "api_v3.QueryService/FindTraces",
			&api_v3.FindTracesRequest{Query: &api_v3.TraceQueryParameters{StartTimeMin: times}}, codes.InvalidArgument,
			"start time min and max are required parameters"},
		{stream, good, "api_v3.QueryService/FindTraces",
			&api_v3.FindTracesRequest{Query: &api_v3.TraceQueryParameters{StartTimeMin: times, StartTimeMax: times,
				Filter: &expression_v1.Call{Op: "exists"}}}, codes.InvalidArgument,
			`query.filter: operator "exists" takes 1 argument(s), got 0`},
		{stream, good, "api_v3.QueryService/FindTraces",
			&api_v3.FindTracesRequest{Query: &api_v3.TraceQueryParameters{StartTimeMin: times, StartTimeMax: times,
				Pagination: &api_v3.Pagination{PageToken: "x"}}}, codes.InvalidArgument,
			"query.pagination: " + pagetoken.ErrInvalid.Error()},
		{stream, good, "api_v3.QueryService/FindTraceSummaries",
			&api_v3.FindTraceSummariesRequest{Query: &api_v3.TraceQueryParameters{StartTimeMin: times, StartTimeMax: times,
				Pagination: &api_v3.Pagination{PageSize: -1}}}, codes.InvalidArgument, "query.pagination: page size must not be negative"},
		{unary, good, "api_v3.QueryService/GetDependencies", &api_v3.GetDependenciesRequest{}, codes.InvalidArgument,
			"start_time is required"},
		{unary, good, "api_v3.QueryService/GetDependencies", &api_v3.GetDependenciesRequest{StartTime: times}, codes.InvalidArgument,
			"end_time is required"},
		{unary, good, "api_v3.QueryService/GetDependencies", &api_v3.GetDependenciesRequest{StartTime: times, EndTime: times},
			codes.InvalidArgument, "end_time must be after start_time"},
		{stream, broken, "api_v3.QueryService/FindTraceSummaries",
			&api_v3.FindTraceSummariesRequest{Query: &api_v3.TraceQueryParameters{StartTimeMin: times, StartTimeMax: times}},
			codes.Internal, "failed when searching for traces: disk on fire"},
	} {
		if s := status.Convert(c.call(c.conn, c.method, c.in)); s.Code() != c.code || s.Message() != c.text {
			t.Errorf("%s(%v): %v %q, want %v %q", c.method, c.in, s.Code(), s.Message(), c.code, c.text)
		}
	}
}

// tracesOfSizes returns one trace for each number of spans.
func tracesOfSizes(sizes ...int) ptrace.Traces {
	td := ptrace.NewTraces()
	ss := querytest.AddService(td, "svc")
	for i, n := range sizes {
		for j := range n {
			querytest.AddSpan(ss, pcommon.TraceID{15: byte(i + 1)}, byte(j+1), 0, fmt.Sprint(j), time.Duration(i)*time.Second)
		}
	}
	return td
}

// A chunk has at most ten spans of one trace. A message of version 3 has spans of one trace.
func TestGRPCChunks(t *testing.T) {
	conn := dial(t, querytest.NewStore(tracesOfSizes(3, 25, 10)))
	var got []string
	chunks, err := receive(api_v2.NewQueryServiceClient(conn).FindTraces(t.Context(),
		&api_v2.FindTracesRequest{Query: &api_v2.TraceQueryParameters{ServiceName: "svc"}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chunks {
		got = append(got, fmt.Sprintf("%d of %d", len(c.Spans), c.Spans[0].TraceId[15]))
		for _, s := range c.Spans {
			if s.TraceId[15] != c.Spans[0].TraceId[15] || s.GetProcess().GetServiceName() != "svc" || s.ProcessId != "" {
				t.Errorf("unexpected span in a chunk: %v", s)
			}
		}
	}
	if want := []string{"10 of 3", "10 of 2", "10 of 2", "5 of 2", "3 of 1"}; !slices.Equal(got, want) {
		t.Errorf("chunks %v, want %v", got, want)
	}
	messages, err := receive(api_v3.NewQueryServiceClient(conn).FindTraces(t.Context(), &api_v3.FindTracesRequest{Query: allTraces()}))
	if err != nil || !slices.Equal(spanCounts(messages), []int{10, 25, 3}) {
		t.Errorf("messages of %v spans, %v", spanCounts(messages), err)
	}
}

// allTraces returns a query of version 3 for all traces.
func allTraces() *api_v3.TraceQueryParameters {
	return &api_v3.TraceQueryParameters{StartTimeMin: timestamppb.New(time.Unix(0, 0)), StartTimeMax: timestamppb.New(querytest.Noon)}
}

// TestGRPCFilters searches with filters, which replace the other conditions.
func TestGRPCFilters(t *testing.T) {
	client := api_v3.NewQueryServiceClient(dial(t, querytest.NewStore(querytest.Shop())))
	for _, c := range []struct {
		filter, service, want string
	}{
		{`{"op":"exists","args":[{"field":{"name":"parentSpanID","level":"span"}}]}`, "", "1"},
		{`{"op":"regex","args":[{"field":{"name":"service","level":"resource"}},{"scalar":{"value":"^w"}}]}`, "", "2 1"},
		{`{"op":"eq","args":[{"field":{"name":"spanID","level":"span"}},{"scalar":{"value":"4"}}]}`, "", "2"},
		{`{"op":"eq","args":[{"attr":{"key":"db"}},{"scalar":{"value":"none"}}]}`, "", ""},
		{`{"op":"exists","args":[{"attr":{"key":"db"}}]}`, "web", "query.filter: " + queryfilter.ErrNotAlone.Error()},
		{`{"op":"not"}`, "", `query.filter: operator "not" takes 1 argument(s), got 0`},
	} {
		q := allTraces()
		q.ServiceName, q.Filter = c.service, &expression_v1.Call{}
		if err := protojson.Unmarshal([]byte(c.filter), q.Filter); err != nil {
			t.Fatal(err)
		}
		var ids []string
		answers, err := receive(client.FindTraceSummaries(t.Context(), &api_v3.FindTraceSummariesRequest{Query: q}))
		for _, a := range answers {
			for _, s := range a.Summaries {
				ids = append(ids, s.TraceId[len(s.TraceId)-1:])
			}
		}
		messages, tracesErr := receive(client.FindTraces(t.Context(), &api_v3.FindTracesRequest{Query: q}))
		got := strings.Join(ids, " ")
		if status.Code(err) == codes.InvalidArgument && status.Convert(tracesErr).Message() == status.Convert(err).Message() {
			got = status.Convert(err).Message()
		} else if err != nil || tracesErr != nil || len(messages) != len(ids) {
			t.Errorf("%s: %d traces and %d summaries, %v, %v", c.filter, len(messages), len(ids), tracesErr, err)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.filter, got, c.want)
		}
	}
}

// TestGRPCPages reads the pages of a search: each trace once, newest first, with a token in the
// last message of each page.
func TestGRPCPages(t *testing.T) {
	client := api_v3.NewQueryServiceClient(dial(t, querytest.FilledMemory(t, tracesOfSizes(slices.Repeat([]int{1}, 250)...)),
		func(o *core.Options) { o.Limits.Traces = 120 }))
	q := allTraces()
	q.SearchDepth, q.Pagination = 110, &api_v3.Pagination{}
	var got []string
	for _, size := range []int32{0, 30, 1000} { // the first page has search_depth traces, the last one max_limit
		q.Pagination.PageSize = size
		first, err := receive(client.FindTraces(t.Context(), &api_v3.FindTracesRequest{Query: q}))
		if err != nil {
			t.Fatal(err)
		}
		messages, err := receive(client.FindTraceSummaries(t.Context(), &api_v3.FindTraceSummariesRequest{Query: q}))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for i, m := range messages {
			found += len(m.Summaries)
			for _, s := range m.Summaries {
				got = append(got, s.TraceId)
			}
			if last := i == len(messages)-1; last != (m.NextPageToken != "") && len(got) < 250 {
				t.Errorf("message %d of %d has the token %q", i, len(messages), m.NextPageToken)
			}
			q.Pagination.PageToken = m.NextPageToken
		}
		if len(first) != found {
			t.Errorf("%d traces and %d summaries on a page", len(first), found)
		}
	}
	want := make([]string, 250)
	for i := range want {
		want[i] = hex.EncodeToString(append(make([]byte, 15), byte(250-i)))
	}
	if !slices.Equal(got, want) || q.Pagination.PageToken != "" {
		t.Errorf("pages have %d traces, token %q", len(got), q.Pagination.PageToken)
	}
}

func spanCounts(messages []*tracepb.TracesData) (out []int) {
	for _, m := range messages {
		n := 0
		for _, rs := range m.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				n += len(ss.Spans)
			}
		}
		out = append(out, n)
	}
	return out
}

// Parameters of a search make the same store query as over HTTP. Absent ones, and times of the year
// 1, are no condition.
func TestGRPCParameters(t *testing.T) {
	var asked tracestore.Query
	store := querytest.NewStore(ptrace.NewTraces())
	store.OnFind = func(q tracestore.Query) { asked = q }
	conn := dial(t, store, func(o *core.Options) { o.Limits.Traces, o.Limits.Scanned, o.Limits.TraceSize = 500, 9, 5 })
	from, to := time.Unix(100, 1).UTC(), time.Unix(200, 2).UTC()
	for _, c := range []struct {
		in   *api_v2.TraceQueryParameters
		want tracestore.Query
	}{
		{&api_v2.TraceQueryParameters{StartTimeMin: timestamppb.New(time.Time{}), StartTimeMax: timestamppb.New(time.Time{})},
			tracestore.Query{Where: (&core.Search{}).Where(), Limit: core.DefaultSearchLimit}},
		{&api_v2.TraceQueryParameters{SearchDepth: 10_000}, tracestore.Query{Where: (&core.Search{}).Where(), Limit: 500}},
		{&api_v2.TraceQueryParameters{
			ServiceName: "web", OperationName: "GET", Tags: map[string]string{"a": "b", "error": "true"}, SearchDepth: 7,
			StartTimeMin: timestamppb.New(from), StartTimeMax: timestamppb.New(to),
			DurationMin: durationpb.New(time.Second), DurationMax: durationpb.New(time.Minute),
		}, tracestore.Query{From: from, To: to, Limit: 7, Where: (&core.Search{Service: "web", Operation: "GET",
			Tags: map[string]string{"a": "b", "error": "true"}, MinDuration: time.Second, MaxDuration: time.Minute}).Where()}},
	} {
		c.want.Budget = tracestore.Budget{Spans: 9, TraceSpans: 5}
		if _, err := receive(api_v2.NewQueryServiceClient(conn).FindTraces(t.Context(),
			&api_v2.FindTracesRequest{Query: c.in})); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(asked, c.want) {
			t.Errorf("%v\ngot  %+v\nwant %+v", c.in, asked, c.want)
		}
	}
	var refs []tracestore.TraceRef
	store.OnTraces = func(r []tracestore.TraceRef) { refs = append(refs, r...) }
	request := &api_v2.GetTraceRequest{TraceId: []byte("\x00\x00\x00\x00\x00\x00\x00\x05"), StartTime: timestamppb.New(from),
		EndTime: timestamppb.New(to)}
	if _, err := receive(api_v2.NewQueryServiceClient(conn).GetTrace(t.Context(), request)); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
	want := tracestore.TraceRef{From: from, To: to}
	want.ID[15] = 5
	if !reflect.DeepEqual(refs, []tracestore.TraceRef{want}) {
		t.Errorf("requested %+v, want %+v", refs, want)
	}
}

// In both versions, traces are adjusted unless the request is for raw traces.
func TestGRPCAdjusts(t *testing.T) {
	td := querytest.Shop()
	td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Links().AppendEmpty() // with an empty trace id
	conn := dial(t, querytest.NewStore(td))
	id := make([]byte, 16)
	id[15] = 1
	for _, raw := range []bool{false, true} {
		chunks, err := receive(api_v2.NewQueryServiceClient(conn).GetTrace(t.Context(),
			&api_v2.GetTraceRequest{TraceId: id, RawTraces: raw}))
		if err != nil || len(chunks) != 1 || len(chunks[0].Spans) != 2 {
			t.Fatalf("%v, %v", chunks, err)
		}
		if adjusted := slices.Contains(chunks[0].Spans[0].Warnings, "Invalid span link removed"); adjusted == raw {
			t.Errorf("version 2, raw %v: %v", raw, chunks[0])
		}
		messages, err := receive(api_v3.NewQueryServiceClient(conn).GetTrace(t.Context(),
			&api_v3.GetTraceRequest{TraceId: "1", RawTraces: raw}))
		if err != nil || len(messages) != 1 {
			t.Fatalf("%v, %v", messages, err)
		}
		if has := len(messages[0].ResourceSpans[0].ScopeSpans[0].Spans[0].Links) == 1; has != raw {
			t.Errorf("version 3, raw %v: %v", raw, messages[0])
		}
	}
}

// Incomplete responses have a trailer, and truncated traces a warning.
func TestGRPCIncompleteAnswersWarn(t *testing.T) {
	store := querytest.NewStore(tracesOfSizes(8, 1))
	store.Outcome = tracestore.Outcome{Reasons: tracestore.Because(tracestore.ReasonDamage, "gave up")}
	client := api_v2.NewQueryServiceClient(dial(t, store, func(o *core.Options) { o.Limits.TraceSize = 5 }))
	var trailer metadata.MD
	chunks, err := receive(client.FindTraces(t.Context(), &api_v2.FindTracesRequest{Query: &api_v2.TraceQueryParameters{}},
		grpc.Trailer(&trailer)))
	if err != nil || len(chunks) != 2 || !slices.Equal(trailer[WarningTrailer], []string{"result is incomplete: gave up"}) {
		t.Fatalf("%v, %v, %v", chunks, err, trailer)
	}
	if s := chunks[1].Spans; len(s) != 5 || !slices.Equal(s[0].Warnings,
		[]string{"trace has more than 5 spans, showing first 5 spans only"}) {
		t.Errorf("of a trace of 8 spans: %v", s)
	}
	request := &api_v2.GetDependenciesRequest{StartTime: timestamppb.New(querytest.Start), EndTime: timestamppb.New(querytest.Noon)}
	if _, err := client.GetDependencies(t.Context(), request, grpc.Trailer(&trailer)); err != nil || len(trailer[WarningTrailer]) != 1 {
		t.Errorf("%v, %v", err, trailer)
	}
}

// Lists of names that were cut have a trailer.
func TestGRPCCutNamesWarn(t *testing.T) {
	td := querytest.Shop()
	querytest.AddSpan(querytest.AddService(td, "web"), pcommon.TraceID{15: 1}, 1, 0, "another operation", 0)
	conn := dial(t, querytest.NewStore(td), func(o *core.Options) { o.Limits.Names = 1 })
	for _, call := range []func(grpc.CallOption) (int, error){
		func(o grpc.CallOption) (int, error) {
			r, err := api_v2.NewQueryServiceClient(conn).GetServices(t.Context(), &api_v2.GetServicesRequest{}, o)
			return len(r.GetServices()), err
		},
		func(o grpc.CallOption) (int, error) {
			r, err := api_v2.NewQueryServiceClient(conn).GetOperations(t.Context(), &api_v2.GetOperationsRequest{Service: "web"}, o)
			return len(r.GetOperations()), err
		},
		func(o grpc.CallOption) (int, error) {
			r, err := api_v3.NewQueryServiceClient(conn).GetServices(t.Context(), &api_v3.GetServicesRequest{}, o)
			return len(r.GetServices()), err
		},
		func(o grpc.CallOption) (int, error) {
			r, err := api_v3.NewQueryServiceClient(conn).GetOperations(t.Context(), &api_v3.GetOperationsRequest{Service: "web"}, o)
			return len(r.GetOperations()), err
		},
	} {
		var trailer metadata.MD
		n, err := call(grpc.Trailer(&trailer))
		if got := trailer.Get(WarningTrailer); err != nil || n != 1 || len(got) != 1 || !strings.Contains(got[0], "max_names is 1") {
			t.Errorf("%d names, trailer %q, %v", n, got, err)
		}
	}
}

// Names that are not valid UTF-8 are repaired.
func TestGRPCNamesAreValidUTF8(t *testing.T) {
	td := ptrace.NewTraces()
	querytest.AddSpan(querytest.AddService(td, "bad \xff"), pcommon.TraceID{15: 1}, 1, 0, "op", 0)
	querytest.AddSpan(querytest.AddService(td, "worse \xfe"), pcommon.TraceID{15: 1}, 2, 1, "op", 0)
	conn := dial(t, querytest.NewStore(td))
	v2, v3 := api_v2.NewQueryServiceClient(conn), api_v3.NewQueryServiceClient(conn)
	services, err := v2.GetServices(t.Context(), &api_v2.GetServicesRequest{})
	if err != nil || !slices.Equal(services.Services, []string{"bad \uFFFD", "worse \uFFFD"}) {
		t.Errorf("%v, %v", services, err)
	}
	deps, err := v3.GetDependencies(t.Context(), &api_v3.GetDependenciesRequest{StartTime: timestamppb.New(querytest.Start),
		EndTime: timestamppb.New(querytest.Noon)})
	if err != nil || len(deps.Dependencies) != 1 || deps.Dependencies[0].Parent != "bad \uFFFD" {
		t.Errorf("%v, %v", deps, err)
	}
	if messages, err := receive(v3.GetTrace(t.Context(), &api_v3.GetTraceRequest{TraceId: "1", RawTraces: true})); err != nil ||
		len(messages) != 1 {
		t.Errorf("%v, %v", messages, err)
	}
}

// A client that disconnects cancels the context of the store, and so does the timeout.
func TestGRPCCancelsStore(t *testing.T) {
	store := querytest.NewStore(tracesOfSizes(1, 1, 1))
	store.Hang, store.FailAt = true, 1
	conn := dial(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := api_v2.NewQueryServiceClient(conn).FindTraces(ctx, &api_v2.FindTracesRequest{Query: &api_v2.TraceQueryParameters{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel() // Stop, at the end of the test, waits for the handler
	if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
		t.Error(err)
	}
	conn = dial(t, store, func(o *core.Options) { o.Limits.Timeout = time.Second }) // the first trace takes less
	chunks, err := receive(api_v2.NewQueryServiceClient(conn).FindTraces(t.Context(),
		&api_v2.FindTracesRequest{Query: &api_v2.TraceQueryParameters{}}))
	if status.Code(err) != codes.DeadlineExceeded || len(chunks) != 1 || !strings.Contains(err.Error(), "query_timeout (1s)") {
		t.Errorf("%v, %v", chunks, err)
	}
}

// A client that does not read its response occupies a slot until the call times out. Others are
// rejected as overload until then.
func TestGRPCSlowReader(t *testing.T) {
	td := ptrace.NewTraces()
	ss := querytest.AddService(td, "svc")
	for i := range 200 {
		querytest.AddSpan(ss, pcommon.TraceID{15: 1}, byte(i), 0, "op", 0).Attributes().PutStr("k", strings.Repeat("x", 10_000))
	}
	store := querytest.NewStore(td)
	client := api_v3.NewQueryServiceClient(dial(t, store, func(o *core.Options) {
		o.Limits.Queries, o.Limits.Timeout = 1, 200*time.Millisecond
	}))
	slow, err := client.GetTrace(t.Context(), &api_v3.GetTraceRequest{TraceId: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Header(); err != nil { // the response has begun
		t.Fatal(err)
	}
	_, err = client.GetServices(t.Context(), &api_v3.GetServicesRequest{})
	if s := status.Convert(err); s.Code() != codes.ResourceExhausted || len(s.Details()) != 1 {
		t.Fatalf("call during a slow one: %v", err)
	}
	for err != nil { // until the slow call times out
		_, err = client.GetServices(t.Context(), &api_v3.GetServicesRequest{})
	}
	if _, err := receive(slow, nil); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("the slow call ended with %v", err)
	}
}

// TestGRPCDamagedTrace: a partly damaged trace is sent without these parts, with a trailer. If
// nothing of it can be read, the status is DataLoss.
func TestGRPCDamagedTrace(t *testing.T) {
	store := querytest.NewStore(tracesOfSizes(8, 1))
	store.Damage = "block 3 is gone"
	conn := dial(t, store)
	id := func(n byte) []byte { return append(make([]byte, 15), n) }
	v2 := func(n byte, o ...grpc.CallOption) (int, error) {
		m, err := receive(api_v2.NewQueryServiceClient(conn).GetTrace(t.Context(), &api_v2.GetTraceRequest{TraceId: id(n)}, o...))
		return len(m), err
	}
	v3 := func(n byte, o ...grpc.CallOption) (int, error) {
		in := &api_v3.GetTraceRequest{TraceId: hex.EncodeToString(id(n))}
		m, err := receive(api_v3.NewQueryServiceClient(conn).GetTrace(t.Context(), in, o...))
		return len(m), err
	}
	for name, get := range map[string]func(byte, ...grpc.CallOption) (int, error){"v2": v2, "v3": v3} {
		var trailer metadata.MD
		n, err := get(1, grpc.Trailer(&trailer))
		if err != nil || n == 0 || !slices.Equal(trailer[WarningTrailer], []string{"result is incomplete: block 3 is gone"}) {
			t.Errorf("%s: %d messages, %v, %v", name, n, err, trailer)
		}
		if _, err := get(77); status.Code(err) != codes.DataLoss || !strings.HasSuffix(err.Error(), "block 3 is gone") {
			t.Errorf("%s, a trace that cannot be read: %v", name, err)
		}
	}
}
