package remotestorage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/internal/translate/pagetoken"
	"github.com/tracing-backend/tracing/internal/translate/queryfilter"
	"github.com/tracing-backend/tracing/internal/translate/remotestore"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/internal/wire/expression_v1"
	"github.com/tracing-backend/tracing/internal/wire/storage_v1"
	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// id returns the bytes of a trace id.
func id(n byte) []byte { return append(make([]byte, 15), n) }

func nativeSpan(n byte) *storage_v1.WriteSpanRequest {
	return &storage_v1.WriteSpanRequest{Span: &api_v2.Span{TraceId: id(n), SpanId: id(1)[8:], OperationName: "op",
		StartTime: &timestamppb.Timestamp{Seconds: 1}, Process: &api_v2.Process{ServiceName: "shop"}}}
}

func export(n byte, spans int) *coltracepb.ExportTraceServiceRequest {
	ss := &tracepb.ScopeSpans{}
	for i := range spans {
		spanID := []byte{1, 0, 0, 0, 0, 0, byte(i >> 8), byte(i)}
		ss.Spans = append(ss.Spans, &tracepb.Span{TraceId: id(n), SpanId: spanID, Name: "a name of typical length"})
	}
	return &coltracepb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{ss}}}}
}

// TestHealthNames checks that the health service knows the services by both names.
func TestHealthNames(t *testing.T) {
	conn := serve(t, &store{}, nil)
	for _, name := range []string{"storage.v1.SpanWriterPlugin", "storage.v1.StreamingSpanWriterPlugin", "storage.v1.SpanReaderPlugin",
		"storage.v1.ArchiveSpanWriterPlugin", "storage.v1.ArchiveSpanReaderPlugin", "storage.v1.DependenciesReaderPlugin",
		"storage.v1.PluginCapabilities", "storage.v2.TraceReader", "storage.v2.DependencyReader", "storage.v2.TraceWriter",
		"storage.v2.Capabilities"} {
		for _, prefix := range []string{"tracing.", "jaeger."} {
			resp, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: prefix + name})
			if err != nil || resp.GetStatus() != healthpb.HealthCheckResponse_SERVING {
				t.Errorf("%s%s: %v, %v", prefix, name, resp, err)
			}
		}
	}
}

// TestWrites checks that writes succeed after the store has accepted the spans, and return the
// errors of the store.
func TestWrites(t *testing.T) {
	s := &store{}
	conn := serve(t, s, func(c *Config) { c.Archive = pipeline.BoundRef[Archive](s) })
	writers := map[string]func() error{
		"v2": func() error {
			_, err := coltracepb.NewTraceServiceClient(conn).Export(t.Context(), export(1, 3))
			return err
		},
		"v1": func() error {
			_, err := storage_v1.NewSpanWriterPluginClient(conn).WriteSpan(t.Context(), nativeSpan(1))
			return err
		},
		"archive": func() error {
			_, err := storage_v1.NewArchiveSpanWriterPluginClient(conn).WriteArchiveSpan(t.Context(), nativeSpan(1))
			return err
		},
		"stream": func() error {
			stream, err := storage_v1.NewStreamingSpanWriterPluginClient(conn).WriteSpanStream(t.Context())
			for n := byte(1); n < 100 && err == nil; n++ {
				err = stream.Send(nativeSpan(n))
			}
			if err != nil && err != io.EOF {
				return err
			}
			_, err = stream.CloseAndRecv()
			return err
		},
	}
	for name, want := range map[string]int{"v2": 3, "v1": 1, "archive": 1, "stream": 99} {
		write := writers[name]
		s.refuse = nil
		before := s.spans()
		if err := write(); err != nil || s.spans()-before != want {
			t.Errorf("%s: %d spans stored, error %v", name, s.spans()-before, err)
		}
		for code, refusal := range map[codes.Code]error{codes.InvalidArgument: pipeline.Permanent(errors.New("no")),
			codes.ResourceExhausted: pipeline.Overloaded(errors.New("no"), time.Second), codes.Unavailable: errors.New("no")} {
			s.refuse = func() error { return refusal }
			if err := write(); status.Code(err) != code {
				t.Errorf("%s: error %v of the store is returned as %v", name, refusal, err)
			}
		}
	}
	s.refuse = func() error { return &pipeline.Partial{Rejected: 2, Err: errors.New("too old")} }
	resp, err := coltracepb.NewTraceServiceClient(conn).Export(t.Context(), export(1, 3))
	if err != nil || resp.GetPartialSuccess().GetRejectedSpans() != 2 ||
		!strings.Contains(resp.GetPartialSuccess().GetErrorMessage(), "too old") {
		t.Errorf("%v, %v", resp, err)
	}
}

// TestStreamIsStoredImmediately checks that spans of a stream are stored before the stream ends.
func TestStreamIsStoredImmediately(t *testing.T) {
	s := &store{}
	conn := serve(t, s, nil)
	stream, err := storage_v1.NewStreamingSpanWriterPluginClient(conn).WriteSpanStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 4; n++ {
		if err := stream.Send(nativeSpan(byte(n))); err != nil {
			t.Fatal(err)
		}
		for s.spans() < n && t.Context().Err() == nil {
			runtime.Gosched()
		}
	}
	if _, err := stream.CloseAndRecv(); err != nil {
		t.Error(err)
	}
}

// TestStopEndsStreams checks that an open stream does not block Stop.
func TestStopEndsStreams(t *testing.T) {
	s := &store{}
	conn, stop := serveAndStop(t, s, nil)
	stream, err := storage_v1.NewStreamingSpanWriterPluginClient(conn).WriteSpanStream(t.Context())
	if err == nil {
		err = stream.Send(nativeSpan(1))
	}
	if err != nil {
		t.Fatal(err)
	}
	for s.spans() < 1 && t.Context().Err() == nil {
		runtime.Gosched()
	}
	stop()
	if _, err := stream.CloseAndRecv(); status.Code(err) != codes.Unavailable {
		t.Errorf("error %v", err)
	}
}

func TestInvalidRequests(t *testing.T) {
	conn := serve(t, &store{}, nil)
	ctx := t.Context()
	first := func(stream grpc.ClientStream, err error) error {
		if err == nil {
			err = stream.RecvMsg(&storage_v1.SpansResponseChunk{})
		}
		return err
	}
	v1, v2 := storage_v1.NewSpanReaderPluginClient(conn), storage_v2.NewTraceReaderClient(conn)
	badSpan := nativeSpan(1)
	badSpan.Span.TraceId = []byte{1}
	for _, c := range []struct {
		name string
		call func() error
		code codes.Code
		text string
	}{
		{"unknown trace", func() error { return first(v1.GetTrace(ctx, &storage_v1.GetTraceRequest{TraceId: id(9)})) }, codes.NotFound,
			"trace not found"},
		{"bad id", func() error { return first(v1.GetTrace(ctx, &storage_v1.GetTraceRequest{TraceId: []byte{1}})) },
			codes.InvalidArgument, "invalid length for TraceID"},
		{"no query", func() error { return first(v1.FindTraces(ctx, &storage_v1.FindTracesRequest{})) }, codes.InvalidArgument,
			"missing query"},
		{"no archive", func() error {
			return first(storage_v1.NewArchiveSpanReaderPluginClient(conn).GetArchiveTrace(ctx,
				&storage_v1.GetTraceRequest{TraceId: id(1)}))
		}, codes.Unimplemented, "not implemented"},
		{"no archive for writing", func() error {
			_, err := storage_v1.NewArchiveSpanWriterPluginClient(conn).WriteArchiveSpan(ctx, nativeSpan(1))
			return err
		}, codes.Unimplemented, "not implemented"},
		{"close", func() error {
			_, err := storage_v1.NewSpanWriterPluginClient(conn).Close(ctx, &storage_v1.CloseWriterRequest{})
			return err
		}, codes.Unimplemented, "span writer does not support graceful shutdown"},
		{"bad span", func() error {
			_, err := storage_v1.NewSpanWriterPluginClient(conn).WriteSpan(ctx, badSpan)
			return err
		}, codes.Internal, "invalid length for TraceID"},
		{"v2 bad id", func() error {
			return first(v2.GetTraces(ctx, &storage_v2.GetTracesRequest{Query: []*storage_v2.GetTraceParams{{TraceId: []byte{1}}}}))
		}, codes.InvalidArgument, "invalid trace_id: must have 16 bytes"},
		{"v2 filter", func() error {
			query := &storage_v2.TraceQueryParameters{Filter: &expression_v1.Call{Op: "not"}}
			return first(v2.FindTraces(ctx, &storage_v2.FindTracesRequest{Query: query}))
		}, codes.InvalidArgument, `filter: operator "not" takes 1 argument(s), got 0`},
		{"v2 filter and service", func() error {
			query := &storage_v2.TraceQueryParameters{ServiceName: "s", Filter: &expression_v1.Call{Op: "not"}}
			return first(v2.FindTraces(ctx, &storage_v2.FindTracesRequest{Query: query}))
		}, codes.InvalidArgument, queryfilter.ErrNotAlone.Error()},
		{"v2 page token", func() error {
			query := &storage_v2.TraceQueryParameters{Pagination: &storage_v2.Pagination{PageToken: "x"}}
			return first(v2.FindTraces(ctx, &storage_v2.FindTracesRequest{Query: query}))
		}, codes.InvalidArgument, pagetoken.ErrInvalid.Error()},
		{"v2 page size", func() error {
			query := &storage_v2.TraceQueryParameters{Pagination: &storage_v2.Pagination{PageSize: -1}}
			return first(v2.FindTraces(ctx, &storage_v2.FindTracesRequest{Query: query}))
		}, codes.InvalidArgument, "page_size must not be negative"},
		{"v2 bad time", func() error {
			query := &storage_v2.TraceQueryParameters{StartTimeMin: &timestamppb.Timestamp{Nanos: -1}}
			return first(v2.FindTraces(ctx, &storage_v2.FindTracesRequest{Query: query}))
		}, codes.InvalidArgument, "timestamp (nanos:-1) has out-of-range nanos"},
		{"v2 unknown trace", func() error {
			return first(v2.GetTraces(ctx, &storage_v2.GetTracesRequest{Query: []*storage_v2.GetTraceParams{{TraceId: id(9)}}}))
		}, codes.Unknown, "EOF"},
		{"two tenants", func() error {
			_, err := v2.GetServices(metadata.AppendToOutgoingContext(ctx, "x-tenant", "a", "x-tenant", "b"),
				&storage_v2.GetServicesRequest{})
			return err
		}, codes.PermissionDenied, "extra tenant header"},
	} {
		err := c.call()
		text := strings.ReplaceAll(status.Convert(err).Message(), "\u00a0", " ")
		if status.Code(err) != c.code || !strings.HasSuffix(text, c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestChunks checks that large traces are split into messages, each with spans of one trace.
func TestChunks(t *testing.T) {
	s := &store{}
	conn := serve(t, s, func(c *Config) { c.MaxChunk = 8 << 10 })
	for _, n := range []byte{1, 2} {
		if _, err := coltracepb.NewTraceServiceClient(conn).Export(t.Context(), export(n, 2500)); err != nil {
			t.Fatal(err)
		}
	}
	v2, err := storage_v2.NewTraceReaderClient(conn).FindTraces(t.Context(),
		&storage_v2.FindTracesRequest{Query: &storage_v2.TraceQueryParameters{}})
	if err != nil {
		t.Fatal(err)
	}
	spans := map[byte]int{}
	for m, err := v2.Recv(); err != io.EOF; m, err = v2.Recv() {
		if err != nil {
			t.Fatal(err)
		}
		all := m.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()
		spans[all[0].TraceId[15]] += len(all)
		if last := all[len(all)-1]; len(m.GetResourceSpans()) != 1 || last.TraceId[15] != all[0].TraceId[15] || len(all) > 8<<10/50 {
			t.Errorf("message with %d spans of traces %d and %d", len(all), all[0].TraceId[15], last.TraceId[15])
		}
	}
	if !reflect.DeepEqual(spans, map[byte]int{1: 2500, 2: 2500}) {
		t.Errorf("v2: %v", spans)
	}
	v1, err := storage_v1.NewSpanReaderPluginClient(conn).GetTrace(t.Context(), &storage_v1.GetTraceRequest{TraceId: id(2)})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for m, err := v1.Recv(); err != io.EOF; m, err = v1.Recv() {
		if err != nil || len(m.GetSpans()) > spansPerChunk || m.GetSpans()[0].GetProcess() == nil {
			t.Fatalf("%d spans, %v", len(m.GetSpans()), err)
		}
		n += len(m.GetSpans())
	}
	if n != 2500 {
		t.Errorf("v1: %d spans", n)
	}
}

// TestQueries checks that the query for the store is equivalent to the request.
func TestQueries(t *testing.T) {
	s := &store{outcome: tracestore.Outcome{Reasons: tracestore.Because(tracestore.ReasonDamage, "deadline exceeded ✂")}}
	conn := serve(t, s, func(c *Config) { c.MaxLimit = 50 })
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "acme")
	var trailer metadata.MD
	at := time.Unix(1_700_000_000, 5).UTC()
	_, err := storage_v2.NewTraceReaderClient(conn).FindTraceIDs(ctx,
		&storage_v2.FindTraceIDsRequest{Query: &storage_v2.TraceQueryParameters{
			ServiceName: "shop", OperationName: "op", StartTimeMin: timestamppb.New(at), DurationMin: durationpb.New(time.Second),
			SearchDepth: 70,
			Attributes: []*storage_v2.KeyValue{
				{Key: "error", Value: &storage_v2.AnyValue{Value: &storage_v2.AnyValue_BoolValue{BoolValue: true}}},
				{Key: "n", Value: &storage_v2.AnyValue{Value: &storage_v2.AnyValue_IntValue{IntValue: -5}}},
				{Key: "list", Value: &storage_v2.AnyValue{Value: &storage_v2.AnyValue_ArrayValue{ArrayValue: &storage_v2.ArrayValue{
					Values: []*storage_v2.AnyValue{{Value: &storage_v2.AnyValue_StringValue{StringValue: "x"}}}}}}},
			}}}, grpc.Trailer(&trailer))
	if err != nil || !slices.Equal(trailer.Get(remotestore.IncompleteTrailer), []string{"deadline exceeded ✂"}) {
		t.Errorf("trailer %v, error %v", trailer, err)
	}
	attribute := func(key, value string) tracestore.Expr { return storequery.TagCondition(key, value) }
	want := tracestore.Query{Tenant: "acme", From: at, Limit: 50, Budget: tracestore.Budget{Spans: 50_000_000}, Where: tracestore.And{
		equals(tracestore.Status, "error"), attribute("n", "-5"), attribute("list", `["x"]`), equals(tracestore.Service, "shop"), equals(tracestore.Name, "op"),
		tracestore.Cond{Field: tracestore.Field{Place: tracestore.Duration}, Op: tracestore.Ge, Value: tracestore.Number(1e9)}}}
	if len(s.queries) != 1 || !reflect.DeepEqual(s.queries[0], want) {
		t.Errorf("query %+v\nwant %+v", s.queries, want)
	}
	yearOne := timestamppb.New(time.Time{})
	_, err = storage_v1.NewSpanReaderPluginClient(conn).FindTraceIDs(t.Context(),
		&storage_v1.FindTraceIDsRequest{Query: &storage_v1.TraceQueryParameters{
			StartTimeMin: yearOne, StartTimeMax: yearOne, DurationMin: &durationpb.Duration{}, DurationMax: &durationpb.Duration{}}})
	if want := (tracestore.Query{Limit: 50, Budget: tracestore.Budget{Spans: 50_000_000}}); err != nil ||
		!reflect.DeepEqual(s.queries[1], want) {
		t.Errorf("query %+v, want %+v; error %v", s.queries[1], want, err)
	}
}

// TestDependencies checks that a response has the links of the protocol and, for clients of this
// program, all fields of the edges.
func TestDependencies(t *testing.T) {
	conn := serve(t, &store{}, nil)
	var trailer metadata.MD
	resp, err := storage_v2.NewDependencyReaderClient(conn).GetDependencies(t.Context(), &storage_v2.GetDependenciesRequest{},
		grpc.Trailer(&trailer))
	if err != nil || len(resp.GetDependencies()) != 1 || resp.GetDependencies()[0].GetCallCount() != 5 ||
		len(trailer.Get(remotestore.IncompleteTrailer)) != 1 {
		t.Errorf("%v, %v, trailer %v", resp, err, trailer)
	}
	if edges := remotestore.Edges(resp); len(edges) != 3 || !edges[2].Messaging {
		t.Errorf("%+v", edges)
	}
	old, err := storage_v1.NewDependenciesReaderPluginClient(conn).GetDependencies(t.Context(), &storage_v1.GetDependenciesRequest{})
	if err != nil || len(old.GetDependencies()) != 1 || len(remotestore.Edges(old)) != 3 {
		t.Errorf("%v, %v", old, err)
	}
}

// TestFilters checks that the store gets the condition of a filter, and that filters may use fields
// of the trace.
func TestFilters(t *testing.T) {
	s := &store{}
	conn := serve(t, s, nil)
	for id := range byte(3) {
		if _, err := coltracepb.NewTraceServiceClient(conn).Export(t.Context(), export(id+1, 2)); err != nil {
			t.Fatal(err)
		}
	}
	capabilities, err := storage_v2.NewCapabilitiesClient(conn).GetCapabilities(t.Context(), &storage_v2.GetCapabilitiesRequest{})
	if f := capabilities.GetSearch().GetFilter(); err != nil || !slices.Equal(f.GetLevels(), queryfilter.Levels()) ||
		!slices.Equal(f.GetOperators(), queryfilter.Operators()) {
		t.Errorf("%v, %v", capabilities, err)
	}
	find := func(field, value string) *storage_v2.FindTraceIDsResponse {
		t.Helper()
		resp, err := storage_v2.NewTraceReaderClient(conn).FindTraceIDs(t.Context(), &storage_v2.FindTraceIDsRequest{
			Query: &storage_v2.TraceQueryParameters{Filter: &expression_v1.Call{Op: "eq", Args: []*expression_v1.Expression{
				{Term: &expression_v1.Expression_Field{Field: &expression_v1.FieldReference{Name: field, Level: "span"}}},
				{Term: &expression_v1.Expression_Scalar{Scalar: &expression_v1.Scalar{Value: value}}},
			}}}})
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	find("name", "GET")
	want := tracestore.Cond{Field: tracestore.Field{Place: tracestore.Name}, Value: tracestore.Text("GET")}
	if got := s.queries[len(s.queries)-1].Where; !reflect.DeepEqual(got, want) {
		t.Errorf("the store got %+v, want %+v", got, want)
	}
	if found := find("traceID", fmt.Sprintf("%x", id(2))).GetTraceIds(); len(found) != 1 || !bytes.Equal(found[0].GetTraceId(), id(2)) {
		t.Errorf("found %v", found)
	}
}

// TestPages checks that the token of a page is the cursor of the next query, for both methods and
// only for the same tenant and conditions.
func TestPages(t *testing.T) {
	s := &store{outcome: tracestore.Outcome{Next: tracestore.Cursor{Start: 5, ID: otlpdata.TraceID(id(1)), Set: true}}}
	conn := serve(t, s, func(c *Config) {
		c.Tenancy = pipeline.Present(server.TenancyConfig{Enabled: true, Header: "x-tenant"})
	})
	client := storage_v2.NewTraceReaderClient(conn)
	as := func(tenant string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "x-tenant", tenant)
	}
	p := &storage_v2.TraceQueryParameters{ServiceName: "s", SearchDepth: 7}
	find := func(ctx context.Context) (string, tracestore.Query, error) {
		resp, err := client.FindTraceIDs(ctx, &storage_v2.FindTraceIDsRequest{Query: p})
		return resp.GetNextPageToken(), s.queries[len(s.queries)-1], err
	}
	if token, q, err := find(as("a")); token != "" || q.Limit != 7 || err != nil {
		t.Errorf("without pages: token %q, %+v, %v", token, q, err)
	}
	p.Pagination = &storage_v2.Pagination{PageSize: 3}
	token, q, err := find(as("a"))
	if token == "" || q.Limit != 3 || q.After.Set || err != nil {
		t.Errorf("first page: token %q, %+v, %v", token, q, err)
	}
	p.SearchDepth, p.Pagination = 9, &storage_v2.Pagination{PageToken: token}
	if again, q, err := find(as("a")); again != token || q.Limit != 9 || q.After != s.outcome.Next || err != nil {
		t.Errorf("second page: token %q, %+v, %v", again, q, err)
	}
	stream, err := client.FindTraceSummaries(as("a"), &storage_v2.FindTraceSummariesRequest{Query: p})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := stream.Recv(); err != nil || m.GetNextPageToken() != token || len(m.GetSummaries()) > 0 {
		t.Errorf("%v, %v", m, err)
	}
	if _, _, err := find(as("b")); status.Code(err) != codes.InvalidArgument {
		t.Errorf("another tenant: %v", err)
	}
	p.ServiceName = "other"
	if _, _, err := find(as("a")); status.Code(err) != codes.InvalidArgument {
		t.Errorf("another query: %v", err)
	}
}

func TestListsAndSummaries(t *testing.T) {
	s := &store{}
	conn := serve(t, s, nil)
	ops, err := storage_v1.NewSpanReaderPluginClient(conn).GetOperations(t.Context(), &storage_v1.GetOperationsRequest{Service: "a",
		SpanKind: "server"})
	if err != nil || !slices.Equal(ops.GetOperationNames(), []string{"a", "z"}) || len(ops.GetOperations()) != 3 ||
		ops.GetOperations()[2].GetSpanKind() != "server" {
		t.Errorf("%v, %v", ops, err)
	}
	var cut metadata.MD
	_, err = storage_v2.NewTraceReaderClient(conn).GetOperations(t.Context(), &storage_v2.GetOperationsRequest{Service: "huge"},
		grpc.Trailer(&cut))
	if err != nil || len(cut.Get(remotestore.IncompleteTrailer)) != 1 {
		t.Errorf("trailer of an incomplete list: %v, %v", cut, err)
	}
	invalid := &storage_v2.GetOperationsRequest{}
	invalid.Service = remotestore.PutName(invalid, "\xff") // the name of the operation is the same
	ops2, err := storage_v2.NewTraceReaderClient(conn).GetOperations(t.Context(), invalid)
	if err != nil || ops2.GetOperations()[0].GetName() != "\uFFFD" {
		t.Errorf("%v, %v", ops2, err)
	}
	if _, err := coltracepb.NewTraceServiceClient(conn).Export(t.Context(), export(1, 3)); err != nil {
		t.Fatal(err)
	}
	stream, err := storage_v2.NewTraceReaderClient(conn).FindTraceSummaries(t.Context(),
		&storage_v2.FindTraceSummariesRequest{Query: &storage_v2.TraceQueryParameters{}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.Recv()
	if err != nil || len(m.GetSummaries()) != 1 || m.GetSummaries()[0].GetSpanCount() != 3 ||
		m.GetSummaries()[0].GetRootOperationName() != "\uFFFD" {
		t.Errorf("%v, %v", m, err)
	}
}
