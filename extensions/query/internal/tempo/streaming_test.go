package tempo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/grpcapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/internal/wire/streaming"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// dial serves the streaming service over a backend and returns a connected client.
func dial(t *testing.T, b *core.Backend) *grpc.ClientConn {
	t.Helper()
	s, err := server.NewGRPC(querytest.Settings(t), "grpc", server.DefaultGRPCConfig("localhost:0"))
	if err != nil {
		t.Fatal(err)
	}
	RegisterStreaming(s, b)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(s.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), s.Stop(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// call calls a method by the service name that clients use, and returns its messages and warning.
func call[M any](t *testing.T, conn *grpc.ClientConn, method string, in proto.Message) (messages []*M, warning string, err error) {
	t.Helper()
	service := wire.Original(streaming.StreamingQuerier_ServiceDesc.ServiceName)
	s, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/"+service+"/"+method)
	if err == nil {
		err = errors.Join(s.SendMsg(in), s.CloseSend())
	}
	for err == nil {
		m := new(M)
		if err = s.RecvMsg(m); err == nil {
			messages = append(messages, m)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return messages, strings.Join(metadata.MD(s.Trailer()).Get(grpcapi.WarningTrailer), "; "), err
}

// The last message of a call is the same as the response of the HTTP API.
func TestStreamingIsTheSameAsHTTP(t *testing.T) {
	store := querytest.FullStore{Store: querytest.NewStore(querytest.Market())}
	b, _ := querytest.NewBackend(t, store)
	h, conn := routes(b), dial(t, b)
	const start, end = 1714550000, 1714560000
	const window = "start=1714550000&end=1714560000"
	compare := func(path string, got, want proto.Message) {
		t.Helper()
		w := querytest.Ask(t, h, http.MethodGet, "/tempo/api/"+path)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(w.Body.Bytes(), want); err != nil {
			t.Fatalf("%s: %v in %s", path, err, w.Body)
		}
		if !proto.Equal(got, want) {
			t.Errorf("%s: got\n%v\nwant\n%v", path, got, want)
		}
	}
	for _, r := range []*streaming.SearchRequest{
		{}, {Query: "{}", Limit: 2, SpansPerSpanSet: 1},
		{Query: `{ .nothing = "x" }`},
		{Query: "{ span.http.status_code >= 200 } | select(resource.service.name, kind, status, duration)", SpansPerSpanSet: 100},
		{Query: "{} >> {}", SpansPerSpanSet: 9},
		{MinDurationMs: 1, MaxDurationMs: 900_000}, {Tags: map[string]string{"name": "pay \"now\""}},
	} {
		r.Start, r.End = start, end
		got, warning, err := call[streaming.SearchResponse](t, conn, "Search", r)
		if err != nil || len(got) == 0 || warning != "" {
			t.Fatalf("%v: %v, warning %q", r, err, warning)
		}
		compare("search?"+searchValues(r).Encode(), got[len(got)-1], new(streaming.SearchResponse))
	}
	for _, r := range []*streaming.SearchTagsRequest{{}, {Scope: "intrinsic"}, {Scope: "span", MaxTagsPerScope: 1}} {
		r.Start, r.End = start, end
		query := fmt.Sprintf("search/tags?%s&scope=%s&limit=%d", window, r.Scope, r.MaxTagsPerScope)
		one, _, err1 := call[streaming.SearchTagsResponse](t, conn, "SearchTags", r)
		two, warning, err2 := call[streaming.SearchTagsV2Response](t, conn, "SearchTagsV2", r)
		if err := errors.Join(err1, err2); err != nil || len(one) != 1 || len(two) != 1 || (warning != "") != (r.MaxTagsPerScope == 1) {
			t.Fatalf("%v: %v, %d and %d messages, warning %q", r, err, len(one), len(two), warning)
		}
		compare(query, one[0], new(streaming.SearchTagsResponse))
		compare("v2/"+query, two[0], new(streaming.SearchTagsV2Response))
	}
	for _, r := range []*streaming.SearchTagValuesRequest{{TagName: "service.name"}, {TagName: "status"}, {TagName: "name", MaxTagValues: 1}} {
		r.Start, r.End = start, end
		query := fmt.Sprintf("search/tag/%s/values?%s&limit=%d", r.TagName, window, r.MaxTagValues)
		one, _, err := call[streaming.SearchTagValuesResponse](t, conn, "SearchTagValues", r)
		if err != nil || len(one) != 1 {
			t.Fatalf("%v: %v, %d messages", r, err, len(one))
		}
		compare(query, one[0], new(streaming.SearchTagValuesResponse))
	}
	for _, r := range []*streaming.SearchTagValuesRequest{
		{TagName: "resource.service.name"}, {TagName: "status"}, {TagName: "span.http.status_code"},
		{TagName: "name", Query: `{ resource.service.name = "shop" }`},
	} {
		r.Start, r.End = start, end
		query := fmt.Sprintf("v2/search/tag/%s/values?%s&q=%s", r.TagName, window, url.QueryEscape(r.Query))
		two, _, err := call[streaming.SearchTagValuesV2Response](t, conn, "SearchTagValuesV2", r)
		if err != nil || len(two) != 1 {
			t.Fatalf("%v: %v, %d messages", r, err, len(two))
		}
		compare(query, two[0], new(streaming.SearchTagValuesV2Response))
	}
}

func TestStreamingErrors(t *testing.T) {
	good, _ := querytest.NewBackend(t, querytest.NewStore(querytest.Market()))
	broken := querytest.NewStore(querytest.Many(3, querytest.Unchanged))
	broken.Fail, broken.FailAt = querytest.ErrStore, 2
	failing, _ := querytest.NewBackend(t, broken)
	for _, c := range []struct {
		b      *core.Backend
		method string
		in     proto.Message
		code   codes.Code
		text   string
	}{
		{good, "Search", &streaming.SearchRequest{Query: "{ broken"}, codes.InvalidArgument, "invalid TraceQL query"},
		{good, "Search", &streaming.SearchRequest{Query: "{}", Tags: map[string]string{"a": "b"}}, codes.InvalidArgument, "can't specify tags"},
		{good, "Search", &streaming.SearchRequest{Start: 2, End: 1}, codes.InvalidArgument, "start must be before end"},
		{good, "SearchTags", &streaming.SearchTagsRequest{Scope: "moon"}, codes.InvalidArgument, "invalid scope"},
		{good, "SearchTagsV2", &streaming.SearchTagsRequest{Start: 2, End: 1}, codes.InvalidArgument, "start must be before end"},
		{good, "SearchTagValues", &streaming.SearchTagValuesRequest{}, codes.InvalidArgument, "valid tagName"},
		{good, "SearchTagValuesV2", &streaming.SearchTagValuesRequest{TagName: "a,b"}, codes.InvalidArgument, "valid tagName"},
		{good, "MetricsQueryRange", &streaming.QueryRangeRequest{Query: "{}"}, codes.InvalidArgument, "not a metrics query"},
		{good, "MetricsQueryRange", &streaming.QueryRangeRequest{Query: "{} | rate()", Step: 1}, codes.InvalidArgument,
			"step of 1ns is too small"},
		{good, "MetricsQueryInstant", &streaming.QueryInstantRequest{Query: "{} | rate()", Start: 2e18, End: 1e18}, codes.InvalidArgument,
			"end must be greater than start"},
		{failing, "MetricsQueryInstant", &streaming.QueryInstantRequest{Query: "{} | rate()"}, codes.Unimplemented, ""},
		{failing, "Search", &streaming.SearchRequest{}, codes.Internal, "failed to search: disk on fire"},
	} {
		_, _, err := call[streaming.SearchResponse](t, dial(t, c.b), c.method, c.in)
		if status.Code(err) != c.code || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s %v: %v", c.method, c.in, err)
		}
	}
}

// waitingStore passes on the results of a search after the first ones only when it may go on.
type waitingStore struct {
	*querytest.Store
	first int
	goOn  chan bool
}

func (s waitingStore) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	found, err := s.Store.Find(ctx, q, want)
	if err != nil {
		return nil, err
	}
	all := found.All
	found.All = func(yield func(tracestore.Result, error) bool) {
		n := 0
		all(func(r tracestore.Result, err error) bool {
			if n == s.first {
				<-s.goOn
			}
			n++
			return yield(r, err)
		})
	}
	return found, nil
}

func ids(m *streaming.SearchResponse) (ids []string) {
	for _, t := range m.Traces {
		ids = append(ids, t.TraceID)
	}
	return ids
}

// Traces are sent while the search runs. The last message has all, and says that the search is
// complete.
func TestTracesAreSentWhileTheSearchRuns(t *testing.T) {
	store := waitingStore{querytest.NewStore(querytest.Many(5, querytest.Unchanged)), 2, make(chan bool)}
	store.Outcome.Scanned = 7
	b, _ := querytest.NewBackend(t, store)
	stream, err := streaming.NewStreamingQuerierClient(dial(t, b)).Search(t.Context(), &streaming.SearchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Traces) == 0 || len(first.Traces) > 2 || first.Metrics.CompletedJobs != 0 || first.Metrics.TotalJobs != 1 {
		t.Errorf("first message: %v", first)
	}
	close(store.goOn)
	var last *streaming.SearchResponse
	for {
		m, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		last = m
	}
	if len(ids(last)) != 5 || !slices.Equal(ids(last)[:len(first.Traces)], ids(first)) {
		t.Errorf("first message: %q, last: %q", ids(first), ids(last))
	}
	if m := last.Metrics; m.CompletedJobs != 1 || m.TotalJobs != 1 || m.InspectedSpans != 7 {
		t.Errorf("metrics %v", last.Metrics)
	}
}

// Traces that were found are kept when the time is over.
func TestStreamingSearchTimesOut(t *testing.T) {
	store := querytest.NewStore(querytest.Many(3, querytest.Unchanged))
	store.Hang, store.FailAt = true, 2
	b, _ := querytest.NewBackend(t, store, func(o *core.Options) { o.Limits.Timeout = 300 * time.Millisecond })
	got, warning, err := call[streaming.SearchResponse](t, dial(t, b), "Search", &streaming.SearchRequest{})
	if err != nil || len(got) == 0 || len(got[len(got)-1].Traces) != 2 {
		t.Fatalf("%v: %v", got, err)
	}
	if !strings.HasPrefix(warning, "result is incomplete: the store did not finish within query_timeout") {
		t.Errorf("warning %q", warning)
	}
}

// No message exceeds its limit, whatever is stored, and each trace is sent.
func TestSizeOfMessages(t *testing.T) {
	large := strings.Repeat("x", 20_000)
	td := querytest.Many(12, func(_ int, rs ptrace.ResourceSpans, s ptrace.Span) {
		for i := range 60 {
			other := rs.ScopeSpans().At(0).Spans().AppendEmpty()
			s.CopyTo(other)
			other.SetSpanID(pcommon.SpanID{9, byte(i)})
			other.Attributes().PutStr("k", large)
		}
	})
	many := querytest.AddService(td, "svc")
	for i := range 3000 {
		key := fmt.Sprintf("key.%04d.%s", i, strings.Repeat("y", 900))
		querytest.AddSpan(many, pcommon.TraceID{1, byte(i >> 8), byte(i)}, 1, 0, key, 0).Attributes().PutStr(key, "v")
	}
	b, _ := querytest.NewBackend(t, querytest.FullStore{Store: querytest.NewStore(td)}, func(o *core.Options) {
		o.Limits.Scanned, o.Limits.Traces, o.Limits.Aggregated, o.Limits.Names = 1e6, 10_000, 1e6, 10_000
	})
	conn := dial(t, b)
	found, _, err := call[streaming.SearchResponse](t, conn, "Search", &streaming.SearchRequest{Query: "{ .k != nil }", SpansPerSpanSet: 100})
	seen := make(map[string]bool)
	for _, m := range found {
		if n := proto.Size(m); n > maxMessage {
			t.Errorf("a message of %d bytes", n)
		}
		for _, trace := range m.Traces {
			seen[trace.TraceID] = true
			if set := trace.SpanSet; set.Matched != 60 || len(set.Spans) != 20 {
				t.Errorf("%d of %d spans, want 20 of 60", len(set.Spans), set.Matched)
			}
		}
	}
	if err != nil || len(seen) != 12 || len(found) < 12 {
		t.Errorf("%d traces in %d messages: %v", len(seen), len(found), err)
	}
	names, _, err := call[streaming.SearchTagsV2Response](t, conn, "SearchTagsV2", &streaming.SearchTagsRequest{Scope: "span"})
	tags := 0
	for _, m := range names {
		if n := proto.Size(m); n > maxMessage {
			t.Errorf("a message of %d bytes", n)
		}
		for _, s := range m.Scopes {
			tags += len(s.Tags)
		}
	}
	if err != nil || tags < 3000 || len(names) < 3 {
		t.Errorf("%d tags in %d messages: %v", tags, len(names), err)
	}
}

// Series are sent in messages of limited size, each once.
func TestSizeOfMetricsMessages(t *testing.T) {
	td := querytest.Many(200, func(i int, _ ptrace.ResourceSpans, s ptrace.Span) {
		s.SetName(fmt.Sprintf("%04d%s", i, strings.Repeat("x", 900)))
	})
	b, _ := querytest.NewBackend(t, querytest.FilledMemory(t, td), func(o *core.Options) {
		o.Limits.Scanned, o.Limits.Aggregated = 1e6, 1e6
		o.Now = func() time.Time { return querytest.Start.Add(time.Hour) }
	})
	got, _, err := call[streaming.QueryRangeResponse](t, dial(t, b), "MetricsQueryRange", &streaming.QueryRangeRequest{
		Query: "{} | rate() by (name)", Start: uint64(querytest.Start.UnixNano()), End: uint64(querytest.Start.Add(20 * time.Minute).UnixNano()),
		Step: uint64(time.Second)})
	series := make(map[string]bool)
	for _, m := range got {
		if n := proto.Size(m); n > maxMessage {
			t.Errorf("a message of %d bytes", n)
		}
		for _, s := range m.Series {
			series[s.Labels[0].Value.GetStringValue()] = true
			if len(s.Samples) != 1201 {
				t.Errorf("%d samples, want 1201", len(s.Samples))
			}
		}
	}
	if err != nil || len(series) != 200 || len(got) < 3 {
		t.Errorf("%d series in %d messages: %v", len(series), len(got), err)
	}
}
