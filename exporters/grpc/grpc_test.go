package grpc

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

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
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// What the other side can do decides how spans are written.
func TestWritesAsTheOtherSideCan(t *testing.T) {
	streaming := &capabilities1{can: &storage_v1.CapabilitiesResponse{StreamingSpanWriter: true}}
	for _, c := range []struct {
		name  string
		parts func(*fake) []any
		want  string
	}{
		{"v2", func(f *fake) []any { return []any{&capabilities2{}, &reader2{}, f, streaming} }, "v2 a,v2 b"},
		{"v2 before it could be asked", func(f *fake) []any { return []any{&reader2{}, f, streaming} }, "v2 a,v2 b"},
		{"v1 streaming", func(f *fake) []any { return []any{f, streaming} }, "stream a,stream b"},
		{"v1", func(f *fake) []any { return []any{f, &capabilities1{can: &storage_v1.CapabilitiesResponse{}}} }, "v1 a@shop,v1 b@shop"},
		{"v1 before it could be asked", func(f *fake) []any { return []any{f} }, "v1 a@shop,v1 b@shop"},
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

// A refusal of the other side is the writer's, whatever way the spans went.
func TestRefusedSpans(t *testing.T) {
	for _, parts := range [][]any{{&capabilities2{}, &reader2{}}, {&capabilities1{can: &storage_v1.CapabilitiesResponse{StreamingSpanWriter: true}}}, nil} {
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

// A span that is refused does not keep the others of its batch from being written, and is the only one that is not tried again.
func TestOneSpanIsRefused(t *testing.T) {
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

// Servers of v1 say Unknown for every error of their store: the spans are tried again. Who may not write at all is told so once.
func TestErrorsOfWriters(t *testing.T) {
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

// Another process may answer after a connection was made anew: it is asked again.
func TestAsksAgainAfterAReconnect(t *testing.T) {
	old := &fake{}
	addr, stop := old.serve(t, "localhost:0", old)
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
	for err != nil && t.Context().Err() == nil { // which may have begun before the old one was missed
		err = e.Consume(t.Context(), spans(t, "", "b"))
	}
	if err := e.Consume(t.Context(), spans(t, "", "c")); err != nil || f.written[len(f.written)-1] != "v2 c" {
		t.Errorf("wrote %q, error %v", f.written, err)
	}
	asked := f.asked("storage.v2.Capabilities/GetCapabilities")
	if err := e.Consume(t.Context(), spans(t, "", "b")); err != nil || f.asked("storage.v2.Capabilities/GetCapabilities") != asked {
		t.Errorf("error %v; it was asked again", err)
	}
}

func TestTenantAndToken(t *testing.T) {
	f := &fake{}
	addr, _ := f.serve(t, "localhost:0", &capabilities2{}, &reader2{services: []string{"b", "a", "b"}}, f)
	e := start(t, addr, func(c *config) { c.TenantHeader = "x-scope" })
	names, err := e.Services(client.WithBearerToken(t.Context(), "secret"), "acme")
	if err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("%q, %v", names, err)
	}
	if got := slices.Concat(f.header.Get("x-scope"), f.header.Get("bearer.token")); !slices.Equal(got, []string{"acme", "secret"}) {
		t.Errorf("sent %q", got)
	}
	for _, header := range f.headers { // a server that asks for them does so whatever it is asked
		if !slices.Equal(header.Get("x-scope"), []string{"acme"}) || !slices.Equal(header.Get("bearer.token"), []string{"secret"}) {
			t.Errorf("sent %v", header)
		}
	}
	incoming := metadata.NewIncomingContext(t.Context(), metadata.Pairs("bearer.token", "passed on"))
	if _, err := e.Services(incoming, ""); err != nil || !slices.Equal(f.header.Get("bearer.token"), []string{"passed on"}) || len(f.header.Get("x-scope")) > 0 {
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
		return s.Send(&storage_v1.SpansResponseChunk{Spans: []*api_v2.Span{{TraceId: req.TraceId, SpanId: make([]byte, 8)}, {TraceId: req.TraceId, SpanId: make([]byte, 8)}}})
	}
	if n, err := read(); n != 2 || err != nil {
		t.Errorf("%d spans, %v", n, err)
	}
}

// Servers that know no kinds list names only.
func TestOperationsOfOldServers(t *testing.T) {
	f := &fake{}
	r := &reader1{operations: &storage_v1.GetOperationsResponse{OperationNames: []string{"b", "a"}}}
	addr, _ := f.serve(t, "localhost:0", r)
	e := start(t, addr, nil)
	ops, err := e.Operations(t.Context(), "", "shop", "")
	if want := []tracestore.Operation{{Name: "a"}, {Name: "b"}}; err != nil || !slices.Equal(ops, want) {
		t.Errorf("%v, %v", ops, err)
	}
	r.operations = &storage_v1.GetOperationsResponse{Operations: []*storage_v1.Operation{{Name: "a", SpanKind: "unspecified"}, {Name: "a", SpanKind: "client"}}}
	ops, err = e.Operations(t.Context(), "", "shop", "")
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

// A store may find more than was asked for; what does not match takes no place of what does.
func TestStoresThatFindTooMuch(t *testing.T) {
	f := &fake{}
	var questions []*storage_v2.TraceQueryParameters
	r := &reader2{find: func(q *storage_v2.TraceQueryParameters, s grpc.ServerStreamingServer[tracepb.TracesData]) error {
		questions = append(questions, q)
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
	if o := res.Outcome(); string(ids) != "\xc8\x96\x64" || !o.Complete || !o.Next.Set {
		t.Errorf("found %v, %+v", ids, o)
	}
	if len(questions) != 2 || questions[0].GetSearchDepth() != leastQuestion || questions[1].GetStartTimeMax().AsTime().UnixNano() != 101 {
		t.Errorf("asked %v", questions)
	}
	if s := res.Outcome().Scanned; s != 100+101 {
		t.Errorf("examined %d spans", s)
	}
}

// That an answer may not be all is said where it is known.
func TestIncompleteAnswers(t *testing.T) {
	f := &fake{}
	r := &reader2{find: func(_ *storage_v2.TraceQueryParameters, s grpc.ServerStreamingServer[tracepb.TracesData]) error {
		s.SetTrailer(metadata.Pairs(remotestore.IncompleteTrailer, "too much to look at ✂"))
		return s.Send(trace(1, "a", 5))
	}}
	addr, _ := f.serve(t, "localhost:0", &capabilities2{search: &storage_v2.SearchCapabilities{WithoutServiceName: true}}, r)
	e := start(t, addr, func(c *config) { c.MaxQuestion = 2 })
	if ids, o, err := find(t, e, tracestore.Query{Limit: 5}); err != nil || string(ids) != "\x01" || o.Complete || o.Reason != "too much to look at ✂" {
		t.Errorf("found %v, %+v, %v", ids, o, err)
	}
	r.find = func(_ *storage_v2.TraceQueryParameters, s grpc.ServerStreamingServer[tracepb.TracesData]) error {
		return errors.Join(s.Send(trace(1, "a", 5)), s.Send(trace(2, "a", 5)))
	}
	if ids, o, err := find(t, e, tracestore.Query{Limit: 5}); err != nil || len(ids) != 0 || o.Complete || !strings.Contains(o.Reason, "max_traces_per_question") {
		t.Errorf("found %v, %+v, %v", ids, o, err)
	}
}

// Stores that do not come to an end are left, and what they have sent is shown.
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
	e := start(t, addr, func(c *config) { c.MaxQuestion, c.MaxHeld, c.MaxTrace = 20, 0, 1000 })
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
	if o := res.Outcome(); n != 20 || o.Complete || !strings.Contains(o.Reason, "more traces than it is asked for") {
		t.Errorf("%d traces, %+v", n, o)
	}
	r.find = func(_ *storage_v2.TraceQueryParameters, s grpc.ServerStreamingServer[tracepb.TracesData]) error {
		return s.Send(trace(1, "a", 5))
	}
	ids, o, err := find(t, e, tracestore.Query{})
	if err != nil || string(ids) != "\x01" || o.Complete || !strings.Contains(o.Reason, "max_trace_size") {
		t.Errorf("found %v, %+v, %v", ids, o, err)
	}
}

// What a search keeps is given back at its end, also when its reader stops.
func TestKeptSpansAreGivenBack(t *testing.T) {
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
		if e.kept.Used() == 0 {
			t.Error("nothing is kept")
		}
		break
	}
	r.find = func(*storage_v2.TraceQueryParameters, grpc.ServerStreamingServer[tracepb.TracesData]) error {
		return status.Error(codes.Internal, "broken")
	}
	if _, _, err := find(t, e, tracestore.Query{}); err == nil || e.kept.Used() != 0 {
		t.Errorf("error %v, %d bytes are kept", err, e.kept.Used())
	}
}

func TestStoresThatNeedAService(t *testing.T) {
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
	if _, o, err := find(t, e, tracestore.Query{Where: service}); err != nil || !o.Complete {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestArchiveThatIsNotThere(t *testing.T) {
	f := &fake{}
	addr, _ := f.serve(t, "localhost:0", f, &capabilities2{}, &reader2{})
	e := start(t, addr, func(c *config) { c.Archive = true })
	if err := e.Consume(context.Background(), spans(t, "", "a")); !errors.Is(err, errNoArchive) || !pipeline.IsPermanent(err) {
		t.Errorf("error %v", err)
	}
}
