package grpc

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/translate/remotestore"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/internal/wire/storage_v1"
	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestWriteMethods checks that the capabilities of the server determine how spans are written.
func TestWriteMethods(t *testing.T) {
	streaming := &capabilities1{can: &storage_v1.CapabilitiesResponse{StreamingSpanWriter: true}}
	for _, c := range []struct {
		name  string
		parts func(*fake) []any
		want  string
	}{
		{"v2", func(f *fake) []any { return []any{&capabilities2{}, &reader2{}, f, streaming} }, "v2 a,v2 b"},
		{"v2 without capabilities", func(f *fake) []any { return []any{&reader2{}, f, streaming} }, "v2 a,v2 b"},
		{"v1 streaming", func(f *fake) []any { return []any{f, streaming} }, "stream a,stream b"},
		{"v1", func(f *fake) []any { return []any{f, &capabilities1{can: &storage_v1.CapabilitiesResponse{}}} }, "v1 a@shop,v1 b@shop"},
		{"v1 without capabilities", func(f *fake) []any { return []any{f} }, "v1 a@shop,v1 b@shop"},
	} {
		f := &fake{}
		addr, _ := f.serve(t, "localhost:0", c.parts(f)...)
		e := start(t, addr, nil)
		if err := e.Consume(t.Context(), spans(t, "", "a", "b")); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		slices.Sort(f.written)
		if got := strings.Join(f.written, ","); got != c.want {
			t.Errorf("%s: wrote %q, want %q", c.name, got, c.want)
		}
	}
}

// TestWriteErrors checks that an error of the server is returned for each way of writing.
func TestWriteErrors(t *testing.T) {
	streaming := &capabilities1{can: &storage_v1.CapabilitiesResponse{StreamingSpanWriter: true}}
	for _, parts := range [][]any{{&capabilities2{}, &reader2{}}, {streaming}, nil} {
		for code, permanent := range map[codes.Code]bool{codes.InvalidArgument: true, codes.Unavailable: false} {
			f := &fake{write: func(string) error { return status.Error(code, "because") }}
			addr, _ := f.serve(t, "localhost:0", append(parts, f)...)
			err := start(t, addr, nil).Consume(t.Context(), spans(t, "", "a", "b", "c"))
			if status.Code(err) != code || pipeline.IsPermanent(err) != permanent {
				t.Errorf("%T: error %v", parts, err)
			}
		}
	}
}

// TestPartialRefusal checks that the other spans of a batch are written if one is refused, and that
// only the refused one is reported.
func TestPartialRefusal(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		f := &fake{write: func(name string) error {
			if strings.HasPrefix(name, "b") {
				return status.Error(codes.InvalidArgument, "not b")
			}
			return nil
		}}
		addr, _ := f.serve(t, "localhost:0", f, &capabilities1{can: &storage_v1.CapabilitiesResponse{StreamingSpanWriter: streaming}})
		err := start(t, addr, nil).Consume(t.Context(), spans(t, "", "a", "b", "c", "d"))
		var partial *pipeline.Partial
		if !errors.As(err, &partial) || partial.Rejected != 1 || !pipeline.IsPermanent(err) || !strings.Contains(err.Error(), "not b") {
			t.Errorf("streaming %t: error %v", streaming, err)
		}
		for _, name := range []string{"a", "c", "d"} {
			if !slices.Contains(f.written, "v1 "+name+"@shop") {
				t.Errorf("streaming %t: wrote %q", streaming, f.written)
			}
		}
	}
}

// TestV1WriteErrors checks that Unknown, which v1 servers return for all errors of their store, is
// not permanent, and that a client without permission stops after the first errors.
func TestV1WriteErrors(t *testing.T) {
	for code, permanent := range map[codes.Code]bool{codes.Unknown: false, codes.PermissionDenied: true} {
		for _, streaming := range []bool{true, false} {
			calls := 0
			f := &fake{write: func(string) error {
				calls++
				return status.Error(code, "because")
			}}
			addr, _ := f.serve(t, "localhost:0", f, &capabilities1{can: &storage_v1.CapabilitiesResponse{StreamingSpanWriter: streaming}})
			err := start(t, addr, nil).Consume(t.Context(), spans(t, "", strings.Split(strings.Repeat("a", 100), "")...))
			var partial *pipeline.Partial
			f.mu.Lock()
			if err == nil || pipeline.IsPermanent(err) != permanent || errors.As(err, &partial) || calls > 2*unaryWrites {
				t.Errorf("%v, streaming %t: error %v after %d calls", code, streaming, err, calls)
			}
			f.mu.Unlock()
		}
	}
}

// TestReconnect checks that capabilities are queried again after a reconnect, because another
// process may answer.
func TestReconnect(t *testing.T) {
	old := &fake{}
	addr, stop := old.serve(t, pipelinetest.FixedAddress(t), old)
	e := start(t, addr, nil)
	for range 3 {
		if err := e.Consume(t.Context(), spans(t, "", "a")); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(old.written); n != 3 || old.written[0] != "v1 a@shop" {
		t.Errorf("wrote %q", old.written)
	}
	stop()
	f := &fake{}
	f.serve(t, addr, &capabilities2{}, &reader2{}, f)
	err := errors.New("not sent")
	for err != nil && t.Context().Err() == nil { // may start before the loss of the old server is detected
		err = e.Consume(t.Context(), spans(t, "", "b"))
	}
	if err := e.Consume(t.Context(), spans(t, "", "c")); err != nil || f.written[len(f.written)-1] != "v2 c" {
		t.Errorf("wrote %q, error %v", f.written, err)
	}
	const method = "storage.v2.Capabilities/GetCapabilities"
	// The end of the old connection and the new one may be noticed late, and are reasons to query
	// again.
	for again, calls := 0, -1; calls != f.callsOf(method); again++ {
		if again > 3 {
			t.Fatal("capabilities are queried for each request")
		}
		calls = f.callsOf(method)
		if err := e.Consume(t.Context(), spans(t, "", "b")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTenantAndToken(t *testing.T) {
	f := &fake{}
	addr, _ := f.serve(t, "localhost:0", &capabilities2{}, &reader2{services: []string{"b", "a", "b"}}, f)
	e := start(t, addr, func(c *config) { c.TenantHeader = "x-scope" })
	names, _, err := e.Services(client.WithBearerToken(t.Context(), "secret"), "acme", tracestore.NameQuery{})
	if err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("%q, %v", names, err)
	}
	if got := slices.Concat(f.header.Get("x-scope"), f.header.Get("bearer.token")); !slices.Equal(got, []string{"acme", "secret"}) {
		t.Errorf("sent %q", got)
	}
	for _, header := range f.headers { // a server may require them for all calls
		if !slices.Equal(header.Get("x-scope"), []string{"acme"}) || !slices.Equal(header.Get("bearer.token"), []string{"secret"}) {
			t.Errorf("sent %v", header)
		}
	}
	incoming := metadata.NewIncomingContext(t.Context(), metadata.Pairs("bearer.token", "passed on"))
	_, _, err = e.Services(incoming, "", tracestore.NameQuery{})
	if err != nil || !slices.Equal(f.header.Get("bearer.token"), []string{"passed on"}) || len(f.header.Get("x-scope")) > 0 {
		t.Errorf("error %v, sent %v", err, f.header)
	}
}

func TestNotFoundInV1(t *testing.T) {
	r := &reader1{}
	f := &fake{}
	addr, _ := f.serve(t, "localhost:0", r)
	e := start(t, addr, nil)
	read := func() (spans int, err error) {
		for tr, e := range e.Traces(t.Context(), "", []tracestore.TraceRef{{ID: otlpdata.TraceID{15: 1}}}) {
			if err = e; err == nil {
				spans += tr.Spans.Len()
			}
		}
		return spans, err
	}
	for _, answer := range []error{status.Error(codes.NotFound, "no such thing"), status.Error(codes.Unknown, "trace not found"), nil} {
		r.get = func(*storage_v1.GetTraceRequest, grpc.ServerStreamingServer[storage_v1.SpansResponseChunk]) error {
			return answer
		}
		if n, err := read(); n != 0 || err != nil {
			t.Errorf("%v: %d spans, %v", answer, n, err)
		}
	}
	r.get = func(*storage_v1.GetTraceRequest, grpc.ServerStreamingServer[storage_v1.SpansResponseChunk]) error {
		return status.Error(codes.Internal, "broken")
	}
	if _, err := read(); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("error %v", err)
	}
	r.get = func(req *storage_v1.GetTraceRequest, s grpc.ServerStreamingServer[storage_v1.SpansResponseChunk]) error {
		span := &api_v2.Span{TraceId: req.TraceId, SpanId: make([]byte, 8)}
		return s.Send(&storage_v1.SpansResponseChunk{Spans: []*api_v2.Span{span, span}})
	}
	if n, err := read(); n != 2 || err != nil {
		t.Errorf("%d spans, %v", n, err)
	}
}

// TestOperationsWithoutKinds checks the responses of servers that list only names.
func TestOperationsWithoutKinds(t *testing.T) {
	f := &fake{}
	r := &reader1{operations: &storage_v1.GetOperationsResponse{OperationNames: []string{"b", "a"}}}
	addr, _ := f.serve(t, "localhost:0", r)
	e := start(t, addr, nil)
	ops, _, err := e.Operations(t.Context(), "", "shop", "", tracestore.NameQuery{})
	if want := []tracestore.Operation{{Name: "a"}, {Name: "b"}}; err != nil || !slices.Equal(ops, want) {
		t.Errorf("%v, %v", ops, err)
	}
	r.operations = &storage_v1.GetOperationsResponse{Operations: []*storage_v1.Operation{
		{Name: "a", SpanKind: "unspecified"}, {Name: "a", SpanKind: "client"},
	}}
	ops, _, err = e.Operations(t.Context(), "", "shop", "", tracestore.NameQuery{})
	if want := []tracestore.Operation{{Name: "a"}, {Name: "a", Kind: "client"}}; err != nil || !slices.Equal(ops, want) {
		t.Errorf("%v, %v", ops, err)
	}
}

// find runs a query and returns the last bytes of the ids found.
func find(t *testing.T, e *exporter, q tracestore.Query) (ids []byte, o tracestore.Outcome, err error) {
	t.Helper()
	res, err := e.Find(t.Context(), q, tracestore.WantFull)
	if err != nil {
		return nil, o, err
	}
	for r, e := range res.All {
		if err = e; err != nil {
			break
		}
		ids = append(ids, r.ID[15])
	}
	return ids, res.Outcome(), err
}

// TestFindNonMatchingTraces checks that traces that do not match the condition do not count toward
// the limit.
func TestFindNonMatchingTraces(t *testing.T) {
	f := &fake{}
	var requests []*storage_v2.TraceQueryParameters
	r := &reader2{find: func(q *storage_v2.TraceQueryParameters, s grpc.ServerStreamingServer[tracepb.TracesData]) error {
		requests = append(requests, q)
		to, sent := uint64(q.GetStartTimeMax().AsTime().UnixNano()), 0
		for id := byte(200); id > 0 && sent < int(q.GetSearchDepth()); id-- {
			if uint64(id) > to {
				continue
			}
			name := "other"
			if id%50 == 0 {
				name = "wanted"
			}
			sent++
			if err := s.Send(trace(id, name, uint64(id))); err != nil {
				return err
			}
		}
		return nil
	}}
	addr, _ := f.serve(t, "localhost:0", &capabilities2{search: &storage_v2.SearchCapabilities{WithoutServiceName: true}}, r)
	e := start(t, addr, func(c *config) { c.MaxHeld = 10 })
	not := tracestore.Not{Expr: tracestore.Cond{Field: tracestore.Field{Place: tracestore.Name}, Value: tracestore.Text("other")}}
	q := tracestore.Query{Where: not, Limit: 3, To: nanos(1000).AsTime()}
	res, err := e.Find(t.Context(), q, tracestore.WantIDs)
	if err != nil {
		t.Fatal(err)
	}
	var ids []byte
	for r, err := range res.All {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID[15])
	}
	if o := res.Outcome(); string(ids) != "\xc8\x96\x64" || !o.Complete() || !o.Next.Set {
		t.Errorf("found %v, %+v", ids, o)
	}
	if len(requests) != 2 || requests[0].GetSearchDepth() != minRequested || requests[1].GetStartTimeMax().AsTime().UnixNano() != 101 {
		t.Errorf("requests %v", requests)
	}
	if s := res.Outcome().Scanned; s != 100+101 {
		t.Errorf("examined %d spans", s)
	}
}

// The end of a search goes out as it is, and an open end as the current time.
func TestEndOfSearch(t *testing.T) {
	f := &fake{}
	var last *storage_v2.TraceQueryParameters
	r := &reader2{find: func(q *storage_v2.TraceQueryParameters, _ grpc.ServerStreamingServer[tracepb.TracesData]) error {
		last = q
		return nil
	}}
	addr, _ := f.serve(t, "localhost:0", &capabilities2{search: &storage_v2.SearchCapabilities{WithoutServiceName: true}}, r)
	e := start(t, addr, nil)
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	e.set.Env.Now = func() time.Time { return now }
	for _, c := range []struct{ from, to, want time.Time }{
		{time.Time{}, time.Time{}, now},
		{now.Add(-time.Hour), time.Time{}, now},
		{now.Add(time.Hour), time.Time{}, now.Add(time.Hour)}, // spans of fast clocks
		{time.Time{}, now.Add(-time.Minute), now.Add(-time.Minute)},
		{time.Time{}, now.Add(time.Hour), now.Add(time.Hour)},
	} {
		if _, o, err := find(t, e, tracestore.Query{From: c.from, To: c.to, Limit: 5}); err != nil || !o.Complete() {
			t.Errorf("%v, %+v", err, o)
		}
		if got := last.GetStartTimeMax().AsTime(); !got.Equal(c.want) {
			t.Errorf("from %s to %s: sent %s, want %s", c.from, c.to, got, c.want)
		}
	}
}

// TestIncompleteAnswers checks that an outcome is incomplete if the server or the exporter knows
// that traces are missing.
func TestIncompleteAnswers(t *testing.T) {
	f := &fake{}
	r := &reader2{find: func(_ *storage_v2.TraceQueryParameters, s grpc.ServerStreamingServer[tracepb.TracesData]) error {
		s.SetTrailer(metadata.Pairs(remotestore.IncompleteTrailer, "too many spans ✂"))
		return s.Send(trace(1, "a", 5))
	}}
	addr, _ := f.serve(t, "localhost:0", &capabilities2{search: &storage_v2.SearchCapabilities{WithoutServiceName: true}}, r)
	e := start(t, addr, func(c *config) { c.MaxTraces = 2 })
	ids, o, err := find(t, e, tracestore.Query{Limit: 5})
	if err != nil || string(ids) != "\x01" || o.Complete() || o.Text() != "too many spans ✂" {
		t.Errorf("found %v, %+v, %v", ids, o, err)
	}
	r.find = func(_ *storage_v2.TraceQueryParameters, s grpc.ServerStreamingServer[tracepb.TracesData]) error {
		return errors.Join(s.Send(trace(1, "a", 5)), s.Send(trace(2, "a", 5)))
	}
	ids, o, err = find(t, e, tracestore.Query{Limit: 5})
	if err != nil || len(ids) != 0 || o.Complete() || !strings.Contains(o.Text(), "max_traces_per_question") {
		t.Errorf("found %v, %+v, %v", ids, o, err)
	}
}

// TestCutNames checks that lists of names are known to be incomplete if the server says so, or if
// the query leaves out names.
func TestCutNames(t *testing.T) {
	f, r := &fake{}, &reader2{services: []string{"cart", "shop", "car"}}
	addr, _ := f.serve(t, "localhost:0", &capabilities2{}, r)
	e := start(t, addr, nil)
	for _, c := range []struct {
		cut   string
		query tracestore.NameQuery
		want  []string
		more  bool
	}{
		{"", tracestore.NameQuery{}, []string{"car", "cart", "shop"}, false},
		{"", tracestore.NameQuery{Prefix: "cart"}, []string{"cart"}, false},
		{"", tracestore.NameQuery{Limit: 2}, []string{"car", "cart"}, true},
		{"too many", tracestore.NameQuery{Prefix: "cart"}, []string{"cart"}, true},
	} {
		r.cut = c.cut
		names, more, err := e.Services(t.Context(), "", c.query)
		if err != nil || !slices.Equal(names, c.want) || more != c.more {
			t.Errorf("%+v: %q, more %t, %v", c, names, more, err)
		}
	}
}

// TestEndlessAnswers checks that an endless answer is cut off, and that the traces received before
// are returned.
func TestEndlessAnswers(t *testing.T) {
	f := &fake{}
	sent := uint64(0)
	r := &reader2{find: func(_ *storage_v2.TraceQueryParameters, s grpc.ServerStreamingServer[tracepb.TracesData]) (err error) {
		for ; err == nil; sent++ {
			m := trace(0, "a", 1000+sent)
			binary.BigEndian.PutUint64(m.ResourceSpans[0].ScopeSpans[0].Spans[0].TraceId, sent)
			err = s.Send(m)
		}
		return err
	}, get: func(p *storage_v2.GetTraceParams, s grpc.ServerStreamingServer[tracepb.TracesData]) (err error) {
		for err == nil {
			m := trace(1, "a", 5)
			m.ResourceSpans[0].ScopeSpans[0].Spans[0].TraceId = p.GetTraceId()
			err = s.Send(m)
		}
		return err
	}}
	addr, _ := f.serve(t, "localhost:0", &capabilities2{search: &storage_v2.SearchCapabilities{WithoutServiceName: true}}, r)
	e := start(t, addr, func(c *config) { c.MaxTraces, c.MaxHeld, c.MaxTrace = 20, 0, 1000 })
	res, err := e.Find(t.Context(), tracestore.Query{}, tracestore.WantIDs)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range res.All {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if o := res.Outcome(); n != 20 || o.Complete() || !strings.Contains(o.Text(), "more traces than requested") {
		t.Errorf("%d traces, %+v", n, o)
	}
	r.find = func(_ *storage_v2.TraceQueryParameters, s grpc.ServerStreamingServer[tracepb.TracesData]) error {
		return s.Send(trace(1, "a", 5))
	}
	ids, o, err := find(t, e, tracestore.Query{})
	if err != nil || string(ids) != "\x01" || o.Complete() || !strings.Contains(o.Text(), "max_trace_size") {
		t.Errorf("found %v, %+v, %v", ids, o, err)
	}
}

// TestSearchReleasesMemory checks that a search releases its memory at its end, also if the caller
// stops early.
func TestSearchReleasesMemory(t *testing.T) {
	f := &fake{}
	r := &reader2{find: func(_ *storage_v2.TraceQueryParameters, s grpc.ServerStreamingServer[tracepb.TracesData]) error {
		return errors.Join(s.Send(trace(1, "a", 5)), s.Send(trace(2, "a", 6)))
	}}
	addr, _ := f.serve(t, "localhost:0", &capabilities2{search: &storage_v2.SearchCapabilities{WithoutServiceName: true}}, r)
	e := start(t, addr, nil)
	res, err := e.Find(t.Context(), tracestore.Query{}, tracestore.WantFull)
	if err != nil {
		t.Fatal(err)
	}
	for range res.All {
		if e.held.Used() == 0 {
			t.Error("no memory in use during a search")
		}
		break
	}
	r.find = func(*storage_v2.TraceQueryParameters, grpc.ServerStreamingServer[tracepb.TracesData]) error {
		return status.Error(codes.Internal, "broken")
	}
	if _, _, err := find(t, e, tracestore.Query{}); err == nil || e.held.Used() != 0 {
		t.Errorf("error %v, %d bytes in use, want 0", err, e.held.Used())
	}
}

// TestServiceNameRequired checks servers that cannot search without a service name.
func TestServiceNameRequired(t *testing.T) {
	f := &fake{}
	r := &reader2{find: func(*storage_v2.TraceQueryParameters, grpc.ServerStreamingServer[tracepb.TracesData]) error {
		return nil
	}}
	addr, _ := f.serve(t, "localhost:0", &capabilities2{}, r)
	e := start(t, addr, nil)
	if _, _, err := find(t, e, tracestore.Query{}); !errors.Is(err, errNeedsService) {
		t.Errorf("error %v", err)
	}
	service := tracestore.Cond{Field: tracestore.Field{Place: tracestore.Service}, Value: tracestore.Text("shop")}
	if _, o, err := find(t, e, tracestore.Query{Where: service}); err != nil || !o.Complete() {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestMissingArchive(t *testing.T) {
	f := &fake{}
	addr, _ := f.serve(t, "localhost:0", f, &capabilities2{}, &reader2{})
	e := start(t, addr, func(c *config) { c.Archive = true })
	if err := e.Consume(context.Background(), spans(t, "", "a")); !errors.Is(err, errNoArchive) || !pipeline.IsPermanent(err) {
		t.Errorf("error %v", err)
	}
}
