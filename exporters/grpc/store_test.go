package grpc

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// storeServer is a store service that answers as a test sets it.
type storeServer struct {
	version int
	refuse  error // of Capabilities
	can     []string
	find    func(q *storewire.Find, send send) error
	traces  func(q *storewire.Traces, send send) error
	follow  func(ctx context.Context, send send) error
	delete  func() (tracestore.Deleted, error)
	names   func(send send) error
	outline func(send send) error
}

// send sends a message.
type send func(message []byte) error

// method returns a method of the store service.
func method[Q any](name string, answer func(ctx context.Context, q *Q, send send) error) grpc.StreamDesc {
	return grpc.StreamDesc{StreamName: name, ServerStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
		var question server.Raw
		if err := stream.RecvMsg(&question); err != nil {
			return err
		}
		var q Q
		if err := storewire.Only(storewire.NewQuestion(question, nil), &q); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		return answer(stream.Context(), &q, func(message []byte) error { return stream.SendMsg((*server.Raw)(&message)) })
	}}
}

// message returns a message with values.
func message[T any](values ...T) []byte {
	var e storewire.Encoder
	for _, v := range values {
		if err := storewire.Append(&e, &v); err != nil {
			panic(err)
		}
	}
	return bytes.Join(e.Take(), nil)
}

func (s *storeServer) register(srv *grpc.Server) {
	srv.RegisterService(&grpc.ServiceDesc{ServiceName: storewire.Service, HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{
		method("Capabilities", func(_ context.Context, _ *storewire.Hello, send send) error {
			if s.refuse != nil {
				return s.refuse
			}
			return send(message(storewire.Capabilities{Version: s.version, Interfaces: s.can}))
		}),
		method("Find", func(_ context.Context, q *storewire.Find, send send) error { return s.find(q, send) }),
		method("Traces", func(_ context.Context, q *storewire.Traces, send send) error { return s.traces(q, send) }),
		method("Follow", func(ctx context.Context, _ *storewire.Follow, send send) error { return s.follow(ctx, send) }),
		method("Delete", func(_ context.Context, _ *tracestore.Deletion, send send) error {
			d, err := s.delete()
			if err != nil {
				return err
			}
			return send(message(d))
		}),
		method("Services", func(_ context.Context, _ *storewire.Services, send send) error { return s.names(send) }),
		method("Outline", func(_ context.Context, _ *storewire.Outline, send send) error { return s.outline(send) }),
	}}, s)
}

// standard returns the readers of a standard v2 server with one service.
func standard() []any {
	return []any{&capabilities2{search: &storage_v2.SearchCapabilities{WithoutServiceName: true}}, &reader2{services: []string{"of v2"}}}
}

func hasMetrics(t *testing.T, e *exporter) bool {
	t.Helper()
	_, ok := tracestore.As[tracestore.Metrics](t.Context(), "", e)
	return ok
}

// TestStandardServers checks that servers without a store service of our version are used through
// the standard protocol, and offer what it supports.
func TestStandardServers(t *testing.T) {
	all := []string{"Metrics"}
	for name, c := range map[string]struct {
		own      *storeServer
		protocol string
	}{
		"no store service":            {nil, auto},
		"a later version":             {&storeServer{version: storewire.Version + 1, can: all}, auto},
		"a proxy without the method":  {&storeServer{refuse: status.Error(codes.PermissionDenied, "unknown path")}, auto},
		"another protocol configured": {&storeServer{version: storewire.Version, can: all}, v2Name},
	} {
		t.Run(name, func(t *testing.T) {
			parts := standard()
			if c.own != nil {
				parts = append(parts, c.own)
			}
			addr, _ := new(fake).serve(t, "localhost:0", parts...)
			e := start(t, addr, func(cfg *config) { cfg.Protocol = c.protocol })
			if hasMetrics(t, e) {
				t.Error("offers metrics")
			}
			if _, ok := tracestore.As[tracestore.Edges](t.Context(), "", e); !ok {
				t.Error("lacks dependencies")
			}
			names, _, err := e.Services(t.Context(), "", tracestore.NameQuery{})
			if err != nil || len(names) != 1 || names[0] != "of v2" {
				t.Errorf("services %q, %v", names, err)
			}
			if _, err := e.Metrics(t.Context(), "", tracestore.MetricsQuery{}); !errors.Is(err, tracestore.ErrUnsupported) {
				t.Errorf("Metrics: %v", err)
			}
		})
	}
}

// TestCapabilitiesFollowTheServer checks that an exporter offers what the current server supports,
// and everything while it cannot ask.
func TestCapabilitiesFollowTheServer(t *testing.T) {
	f := new(fake)
	own := &storeServer{version: storewire.Version, can: []string{"Metrics", "Later"}}
	addr, stop := f.serve(t, pipelinetest.FixedAddress(t), own)
	e := start(t, addr, nil)
	for range 3 {
		if !hasMetrics(t, e) {
			t.Error("lacks metrics")
		}
	}
	if n := f.callsOf("store.v1.StoreService/Capabilities"); n > 2 { // once more if the first call made the connection
		t.Errorf("asked %d times on one connection", n)
	}
	if _, ok := tracestore.As[tracestore.Edges](t.Context(), "", e); ok {
		t.Error("offers peers, which the server does not list")
	}
	stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for c, _ := e.server.state(); c != nil; c, _ = e.server.state() { // until the client has noticed
		time.Sleep(time.Millisecond)
	}
	if _, ok := tracestore.As[tracestore.Edges](ctx, "", e); !ok {
		t.Error("offers nothing although nothing is known")
	}
	_, _ = f.serve(t, addr, standard()...)
	if hasMetrics(t, e) {
		t.Error("offers metrics of the server before")
	}
}

// outcome ends a response.
func outcome(o tracestore.Outcome, limited bool) []storewire.FoundPart {
	return []storewire.FoundPart{{End: &storewire.FindEnd{Outcome: o, Limited: limited}}}
}

// found returns a trace with a span in a number of pieces. The last one is complete unless more is
// set.
func found(t *testing.T, id byte, pieces int, more bool) []storewire.FoundPart {
	t.Helper()
	otlp, err := proto.Marshal(trace(id, "a", uint64(id)))
	if err != nil {
		t.Fatal(err)
	}
	parts := []storewire.FoundPart{{Trace: &tracestore.Result{ID: otlpdata.TraceID{15: id}, Start: uint64(id)}}}
	for range pieces {
		parts = append(parts, storewire.FoundPart{Spans: otlp})
	}
	return append(parts, storewire.FoundPart{Complete: !more})
}

// searchStore runs a query on a store service that sends messages for each request.
func searchStore(t *testing.T, q tracestore.Query, want tracestore.Want, change func(*config),
	answer func(request int, q *storewire.Find) ([][]storewire.FoundPart, error),
) (ids []byte, o tracestore.Outcome, err error) {
	t.Helper()
	requests := 0
	addr, _ := new(fake).serve(t, "localhost:0", &storeServer{version: storewire.Version,
		find: func(q *storewire.Find, send send) error {
			messages, err := answer(requests, q)
			requests++
			for _, m := range messages {
				if err := send(message(m...)); err != nil {
					return err
				}
			}
			return err
		}})
	res, err := start(t, addr, change).Find(t.Context(), q, want)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range res.All {
		if err != nil {
			return ids, res.Outcome(), err
		}
		ids = append(ids, r.ID[15])
	}
	return ids, res.Outcome(), nil
}

// TestLimitedAnswers checks that a search continues when the server has ended a response at its own
// limit.
func TestLimitedAnswers(t *testing.T) {
	next := func(id byte) tracestore.Cursor {
		return tracestore.Cursor{Start: uint64(id), ID: otlpdata.TraceID{15: id}, Set: true}
	}
	ids, o, err := searchStore(t, tracestore.Query{Limit: 3, Budget: tracestore.Budget{Spans: 100}}, tracestore.WantFull, nil,
		func(request int, r *storewire.Find) ([][]storewire.FoundPart, error) {
			q := r.Query
			switch {
			case request == 0 && q.Limit == 3 && !q.After.Set && q.Budget.Spans == 100:
				return [][]storewire.FoundPart{found(t, 9, 2, false), found(t, 8, 1, false),
					outcome(tracestore.Outcome{Scanned: 30, Next: next(8)}, true)}, nil
			case request == 1 && q.Limit == 1 && q.After.Start == 8 && q.Budget.Spans == 70:
				return [][]storewire.FoundPart{append(found(t, 7, 1, false), outcome(tracestore.Outcome{Scanned: 5, Next: next(7)},
					false)...)}, nil
			}
			return nil, status.Errorf(codes.InvalidArgument, "request %d: %v", request, r)
		})
	if err != nil || string(ids) != "\x09\x08\x07" || !o.Complete() || o.Scanned != 35 || o.Next != next(7) {
		t.Errorf("%v, %+v, %v", ids, o, err)
	}
}

// TestIncorrectStoreServer checks that a server that does not follow the protocol causes an error
// or a partial response, and never a wrong or endless one.
func TestIncorrectStoreServer(t *testing.T) {
	end := outcome(tracestore.Outcome{}, false)
	cursor := tracestore.Cursor{Start: 5, Set: true}
	otlp := found(t, 1, 1, false)[1].Spans
	for want, messages := range map[string][][]storewire.FoundPart{
		"ended a response early":                               {found(t, 1, 1, false)},
		"trace 0000000000000002 within trace 0000000000000001": {found(t, 1, 1, true), found(t, 2, 1, false), end},
		"a response early":                                     {found(t, 1, 1, true), end},
		"ended a response early, after its end":                {end, {{}}},
		"without content":                                      {found(t, 1, 0, false), end},
		"part of an unknown trace":                             {{{Spans: otlp}}, end},
		"spans of trace 0000000000000001 for trace":            {{{Trace: &tracestore.Result{}}, {Spans: otlp}, {Complete: true}}, end},
		"more traces than requested (2)":                       {found(t, 3, 1, false), found(t, 2, 1, false), found(t, 1, 1, false), end},
		"cursor that does not advance":                         {outcome(tracestore.Outcome{Next: cursor}, true)},
	} {
		_, o, err := searchStore(t, tracestore.Query{Limit: 2}, tracestore.WantFull, nil, func(int,
			*storewire.Find) ([][]storewire.FoundPart, error) {
			return messages, nil
		})
		want, _, _ = strings.Cut(want, ",")
		if err == nil || !strings.Contains(err.Error(), want) || o.Complete() {
			t.Errorf("error %v, %+v, want %q", err, o, want)
		}
	}
	ids, o, err := searchStore(t, tracestore.Query{}, tracestore.WantFull, func(c *config) { c.MaxTrace = 70 },
		func(int, *storewire.Find) ([][]storewire.FoundPart, error) {
			return [][]storewire.FoundPart{found(t, 2, 3, false), found(t, 1, 1, false), end}, nil
		})
	if err != nil || string(ids) != "\x02\x01" || o.Complete() || !strings.Contains(o.Text(), "max_trace_size") {
		t.Errorf("large trace: %v, %+v, %v", ids, o, err)
	}
	addr, _ := new(fake).serve(t, "localhost:0", &storeServer{version: storewire.Version,
		traces: func(_ *storewire.Traces, send send) error {
			return send(message(storewire.TracePart{ID: otlpdata.TraceID{1}}))
		}})
	for _, err := range start(t, addr, nil).Traces(t.Context(), "", []tracestore.TraceRef{{ID: otlpdata.TraceID{2}}}) {
		if err == nil || !strings.Contains(err.Error(), "not requested") {
			t.Errorf("trace that was not requested: %v", err)
		}
	}
}

// TestNewerStoreServer checks that a response with reasons says that it lacks what only a newer
// server knows, and that other responses are used without it.
func TestNewerStoreServer(t *testing.T) {
	type newerPart struct {
		Trace    *tracestore.Result
		Complete bool
		Rate     int
		End      *storewire.FindEnd
	}
	addr, _ := new(fake).serve(t, "localhost:0", &storeServer{version: storewire.Version,
		find: func(_ *storewire.Find, send send) error {
			return send(message(newerPart{Trace: &tracestore.Result{ID: otlpdata.TraceID{1}}, Complete: true, Rate: 5},
				newerPart{End: &storewire.FindEnd{}}))
		},
		names: func(send send) error {
			return send(message(struct{ Names, Hidden []string }{[]string{"a"}, []string{"b"}}))
		}})
	e := start(t, addr, nil)
	res, err := e.Find(t.Context(), tracestore.Query{}, tracestore.WantIDs)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range res.All {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if o := res.Outcome(); n != 1 || !strings.Contains(o.Text(), "FoundPart.Rate") {
		t.Errorf("%d results, %+v", n, o)
	}
	if names, _, err := e.Services(t.Context(), "", tracestore.NameQuery{}); err != nil || !slices.Equal(names, []string{"a"}) {
		t.Errorf("%q, %v", names, err)
	}
}

// TestStoreErrors checks that errors of a remote store keep their class.
func TestStoreErrors(t *testing.T) {
	var answer error
	addr, _ := new(fake).serve(t, "localhost:0", &storeServer{version: storewire.Version,
		can:    []string{"Deleter"},
		delete: func() (tracestore.Deleted, error) { return tracestore.Deleted{}, answer }})
	e := start(t, addr, nil)
	detailed := func(c codes.Code, text string, details ...protoadapt.MessageV1) error {
		s := status.New(c, text)
		for _, d := range details {
			s, _ = s.WithDetails(d)
		}
		return s.Err()
	}
	info := func(reason string) *errdetails.ErrorInfo {
		return &errdetails.ErrorInfo{Domain: storewire.Domain, Reason: reason}
	}
	damage := &tracestore.DamagedError{Err: errors.New("checksum mismatch"), Reasons: tracestore.Reasons{
		{Kind: tracestore.ReasonDamage, Text: "a part is missing"}, {Kind: tracestore.ReasonUnavailable, Store: "b", Text: "\xff"}}}
	busy, err := status.New(codes.ResourceExhausted, "busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		answer, is error
		text       string // "": any
		code       int
	}{
		{busy.Err(), nil, "", 429},
		{detailed(codes.InvalidArgument, "bad"), nil, "", 400},
		{detailed(codes.Unavailable, "later"), nil, "", 503},
		{detailed(codes.Internal, "broken"), nil, "", 500},
		{detailed(codes.DeadlineExceeded, "slow"), context.DeadlineExceeded,
			"remote storage server " + addr + " did not finish in time; narrow the query", 503},
		{detailed(codes.Unimplemented, "never"), tracestore.ErrUnsupported, "", 404},
		{detailed(codes.PermissionDenied, "no", info(storewire.ReasonNotAllowed)), tracestore.ErrNotAllowed, "no", 403},
		{detailed(codes.InvalidArgument, "nothing selected", info(storewire.ReasonBadDeletion)), tracestore.ErrBadDeletion,
			"nothing selected", 400},
		{detailed(codes.DataLoss, "damaged", info(storewire.ReasonDamaged), wrapperspb.Bytes(message(*storewire.DamageOf(damage)))), nil,
			"a part is missing; store b: \xff: checksum mismatch", 503},
	} {
		answer = c.answer
		_, err := e.Delete(t.Context(), "", tracestore.Deletion{})
		if err == nil || c.is != nil && !errors.Is(err, c.is) || c.text != "" && err.Error() != c.text {
			t.Errorf("%v became %v", c.answer, err)
			continue
		}
		if code, _ := pipeline.HTTPStatus(err); code != c.code {
			t.Errorf("%v: HTTP status %d, want %d", err, code, c.code)
		}
	}
	var damaged *tracestore.DamagedError
	_, err = e.Delete(t.Context(), "", tracestore.Deletion{})
	if !errors.As(err, &damaged) || !slices.Equal(damaged.Reasons, damage.Reasons) {
		t.Errorf("damage: %#v", err)
	}
	answer = busy.Err()
	_, err = e.Delete(t.Context(), "", tracestore.Deletion{})
	if _, after := pipeline.HTTPStatus(err); after != 7*time.Second {
		t.Errorf("retry delay %s, want 7s", after)
	}
}

// TestFollowEnds checks that a feed counts missed spans and ends when the server ends the call, and
// that Follow returns when its context ends.
func TestFollowEnds(t *testing.T) {
	otlp, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: trace(1, "a", 1).ResourceSpans})
	if err != nil {
		t.Fatal(err)
	}
	silent := false
	addr, _ := new(fake).serve(t, "localhost:0", &storeServer{version: storewire.Version,
		can: []string{"Follower"},
		follow: func(ctx context.Context, send send) error {
			if silent {
				<-ctx.Done()
				return nil
			}
			return errors.Join(send(message(storewire.Followed{})), send(message(storewire.Followed{Missed: 4, Spans: otlp})),
				send(message(storewire.Followed{Spans: otlp})))
		}})
	e := start(t, addr, nil)
	feed, err := e.Follow(t.Context(), "acme", len(otlp)+600) // one batch fits
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	spans, missed := 0, 0
	for feed.Err() == nil {
		<-feed.Ready()
		b, n := feed.Take()
		if missed += n; b != nil {
			spans += b.Len()
		}
	}
	if spans+missed != 6 || missed < 4 || spans == 0 {
		t.Errorf("%d spans, %d missed", spans, missed)
	}
	silent = true
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := e.Follow(ctx, "", 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Follow of a server that does not answer: %v", err)
	}
}
