package grpc

import (
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

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// storeServer is a store service that answers as a test sets it.
type storeServer struct {
	store_v1.UnimplementedStoreServiceServer
	version uint32
	refuse  error // of Capabilities
	can     []store_v1.Capability
	find    func(*store_v1.FindRequest, grpc.ServerStreamingServer[store_v1.FindResponse]) error
	traces  func(*store_v1.TracesRequest, grpc.ServerStreamingServer[store_v1.TracesResponse]) error
	follow  func(*store_v1.FollowRequest, grpc.ServerStreamingServer[store_v1.FollowResponse]) error
	delete  func(*store_v1.DeleteRequest) (*store_v1.DeleteResponse, error)
	names   func(grpc.ServerStreamingServer[store_v1.NamesResponse]) error
	outline func(grpc.ServerStreamingServer[store_v1.OutlineResponse]) error
}

func (s *storeServer) Services(_ *store_v1.ServicesRequest, stream grpc.ServerStreamingServer[store_v1.NamesResponse]) error {
	return s.names(stream)
}

func (s *storeServer) Outline(_ *store_v1.OutlineRequest, stream grpc.ServerStreamingServer[store_v1.OutlineResponse]) error {
	return s.outline(stream)
}

func (s *storeServer) Capabilities(context.Context, *store_v1.CapabilitiesRequest) (*store_v1.CapabilitiesResponse, error) {
	return &store_v1.CapabilitiesResponse{Version: s.version, Capabilities: s.can}, s.refuse
}

func (s *storeServer) Find(r *store_v1.FindRequest, stream grpc.ServerStreamingServer[store_v1.FindResponse]) error {
	return s.find(r, stream)
}

func (s *storeServer) Traces(r *store_v1.TracesRequest, stream grpc.ServerStreamingServer[store_v1.TracesResponse]) error {
	return s.traces(r, stream)
}

func (s *storeServer) Follow(r *store_v1.FollowRequest, stream grpc.ServerStreamingServer[store_v1.FollowResponse]) error {
	return s.follow(r, stream)
}

func (s *storeServer) Delete(_ context.Context, r *store_v1.DeleteRequest) (*store_v1.DeleteResponse, error) {
	return s.delete(r)
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
	all := []store_v1.Capability{store_v1.Capability_CAPABILITY_METRICS}
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
			if _, ok := tracestore.As[tracestore.Dependencies](t.Context(), "", e); !ok {
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
	own := &storeServer{version: storewire.Version, can: []store_v1.Capability{store_v1.Capability_CAPABILITY_METRICS, 1000}}
	addr, stop := f.serve(t, "localhost:0", own)
	e := start(t, addr, nil)
	for range 3 {
		if !hasMetrics(t, e) {
			t.Error("lacks metrics")
		}
	}
	if n := f.callsOf("store.v1.StoreService/Capabilities"); n > 2 { // once more if the first call made the connection
		t.Errorf("asked %d times on one connection", n)
	}
	if _, ok := tracestore.As[tracestore.Peers](t.Context(), "", e); ok {
		t.Error("offers peers, which the server does not list")
	}
	stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for c, _ := e.server.state(); c != nil; c, _ = e.server.state() { // until the client has noticed
		time.Sleep(time.Millisecond)
	}
	if _, ok := tracestore.As[tracestore.Peers](ctx, "", e); !ok {
		t.Error("offers nothing although nothing is known")
	}
	_, _ = f.serve(t, addr, standard()...)
	if hasMetrics(t, e) {
		t.Error("offers metrics of the server before")
	}
}

// outcome ends an answer.
func outcome(o tracestore.Outcome, limited bool) *store_v1.FindResponse {
	return &store_v1.FindResponse{Outcome: storewire.PutOutcome(&o, limited)}
}

// found returns a message with one trace.
func found(t *testing.T, id byte, more bool) *store_v1.FindResponse {
	t.Helper()
	otlp, err := proto.Marshal(trace(id, "a", uint64(id)))
	if err != nil {
		t.Fatal(err)
	}
	one := storewire.PutFound(&tracestore.Result{ID: otlpdata.TraceID{15: id}, Start: uint64(id)})
	one.Spans, one.More = [][]byte{otlp}, more
	return &store_v1.FindResponse{Traces: []*store_v1.FoundTrace{one}}
}

// searchStore runs a query on a store service that sends messages for each request.
func searchStore(t *testing.T, q tracestore.Query, want tracestore.Want, change func(*config),
	answer func(request int, r *store_v1.FindRequest) ([]*store_v1.FindResponse, error),
) (ids []byte, o tracestore.Outcome, err error) {
	t.Helper()
	requests := 0
	addr, _ := new(fake).serve(t, "localhost:0", &storeServer{version: storewire.Version,
		find: func(r *store_v1.FindRequest, stream grpc.ServerStreamingServer[store_v1.FindResponse]) error {
			messages, err := answer(requests, r)
			requests++
			for _, m := range messages {
				if err := stream.Send(m); err != nil {
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

// TestLimitedAnswers checks that a search continues when the server has ended an answer at its own
// limit.
func TestLimitedAnswers(t *testing.T) {
	next := func(id byte) tracestore.Cursor {
		return tracestore.Cursor{Start: uint64(id), ID: otlpdata.TraceID{15: id}, Set: true}
	}
	ids, o, err := searchStore(t, tracestore.Query{Limit: 3, Budget: tracestore.Budget{Spans: 100}}, tracestore.WantFull, nil,
		func(request int, r *store_v1.FindRequest) ([]*store_v1.FindResponse, error) {
			q := r.GetQuery()
			switch {
			case request == 0 && q.GetLimit() == 3 && q.GetAfter() == nil && q.GetBudget().GetSpans() == 100:
				return []*store_v1.FindResponse{found(t, 9, true), found(t, 9, false), found(t, 8, false),
					outcome(tracestore.Outcome{Scanned: 30, Next: next(8)}, true)}, nil
			case request == 1 && q.GetLimit() == 1 && q.GetAfter().GetStart() == 8 && q.GetBudget().GetSpans() == 70:
				return []*store_v1.FindResponse{found(t, 7, false), outcome(tracestore.Outcome{Scanned: 5, Next: next(7)},
					false)}, nil
			}
			return nil, status.Errorf(codes.InvalidArgument, "request %d: %v", request, r)
		})
	if err != nil || string(ids) != "\x09\x08\x07" || !o.Complete() || o.Scanned != 35 || o.Next != next(7) {
		t.Errorf("%v, %+v, %v", ids, o, err)
	}
}

// TestIncorrectStoreServer checks that a server that does not follow the protocol causes an error
// or a partial answer, and never a wrong or endless one.
func TestIncorrectStoreServer(t *testing.T) {
	end := outcome(tracestore.Outcome{}, false)
	cursor := tracestore.Cursor{Start: 5, Set: true}
	for want, messages := range map[string][]*store_v1.FindResponse{
		"ended an answer early":                                {found(t, 1, false)},
		"trace 0000000000000002 within trace 0000000000000001": {found(t, 1, true), found(t, 2, false), end},
		"an answer early":                                      {found(t, 1, true), end},
		"without content":                                      {{Traces: []*store_v1.FoundTrace{{Id: make([]byte, 16)}}}, end},
		"trace id has 3 bytes":                                 {{Traces: []*store_v1.FoundTrace{{Id: make([]byte, 3)}}}, end},
		"spans of trace 0000000000000001 for trace": {{Traces: []*store_v1.FoundTrace{{Id: make([]byte, 16), Spans: found(t, 1,
			false).Traces[0].Spans}}}, end},
		"more traces than requested (2)": {found(t, 3, false), found(t, 2, false), found(t, 1, false), end},
		"cursor that does not advance":   {outcome(tracestore.Outcome{Next: cursor}, true)},
	} {
		_, o, err := searchStore(t, tracestore.Query{Limit: 2}, tracestore.WantFull, nil, func(int,
			*store_v1.FindRequest) ([]*store_v1.FindResponse, error) {
			return messages, nil
		})
		if err == nil || !strings.Contains(err.Error(), want) || o.Complete() {
			t.Errorf("error %v, %+v, want %q", err, o, want)
		}
	}
	ids, o, err := searchStore(t, tracestore.Query{}, tracestore.WantFull, func(c *config) { c.MaxTrace = 70 },
		func(int, *store_v1.FindRequest) ([]*store_v1.FindResponse, error) {
			return []*store_v1.FindResponse{found(t, 2, true), found(t, 2, true), found(t, 2, false), found(t, 1, false), end}, nil
		})
	if err != nil || string(ids) != "\x02\x01" || o.Complete() || !strings.Contains(o.Text(), "max_trace_size") {
		t.Errorf("large trace: %v, %+v, %v", ids, o, err)
	}
	addr, _ := new(fake).serve(t, "localhost:0", &storeServer{version: storewire.Version,
		traces: func(_ *store_v1.TracesRequest, stream grpc.ServerStreamingServer[store_v1.TracesResponse]) error {
			return stream.Send(&store_v1.TracesResponse{Id: append([]byte{1}, make([]byte, 15)...)})
		}})
	for _, err := range start(t, addr, nil).Traces(t.Context(), "", []tracestore.TraceRef{{ID: otlpdata.TraceID{2}}}) {
		if err == nil || !strings.Contains(err.Error(), "not requested") {
			t.Errorf("trace that was not requested: %v", err)
		}
	}
}

// TestStoreErrors checks that errors of a remote store keep their class.
func TestStoreErrors(t *testing.T) {
	var answer error
	addr, _ := new(fake).serve(t, "localhost:0", &storeServer{version: storewire.Version,
		can:    []store_v1.Capability{store_v1.Capability_CAPABILITY_DELETER},
		delete: func(*store_v1.DeleteRequest) (*store_v1.DeleteResponse, error) { return nil, answer }})
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
		{detailed(codes.DataLoss, "damaged", storewire.PutDamage(damage)), nil,
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
		can: []store_v1.Capability{store_v1.Capability_CAPABILITY_FOLLOWER},
		follow: func(_ *store_v1.FollowRequest, stream grpc.ServerStreamingServer[store_v1.FollowResponse]) error {
			if silent {
				<-stream.Context().Done()
				return nil
			}
			return errors.Join(stream.Send(&store_v1.FollowResponse{}), stream.Send(&store_v1.FollowResponse{Missed: 4,
				Spans: [][]byte{otlp}}),
				stream.Send(&store_v1.FollowResponse{Spans: [][]byte{otlp}}))
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

// TestGroupsOfAnOldServer checks that a server that would ignore groups is not asked for them.
func TestGroupsOfAnOldServer(t *testing.T) {
	own := &storeServer{version: storewire.Version, can: []store_v1.Capability{store_v1.Capability_CAPABILITY_AGGREGATOR}}
	addr, _ := new(fake).serve(t, "localhost:0", own)
	e := start(t, addr, nil)
	if _, ok := tracestore.As[tracestore.GroupAggregator](t.Context(), "", e); ok {
		t.Error("offers groups")
	}
	by := []tracestore.Field{{Place: tracestore.Service}}
	_, err := e.Aggregate(t.Context(), tracestore.Query{}, tracestore.Aggregation{Groups: tracestore.GroupQuery{By: by, Limit: 1}})
	if !errors.Is(err, tracestore.ErrUnsupported) {
		t.Errorf("error %v, want %v", err, tracestore.ErrUnsupported)
	}
}
