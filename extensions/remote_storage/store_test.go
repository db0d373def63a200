package remotestorage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// fullStore also supports aggregates, deletions and feeds.
type fullStore struct {
	*store
	tracestore.Hub
	fail  error
	found iter.Seq2[tracestore.Result, error]
}

func (s *fullStore) Aggregate(context.Context, tracestore.Query, tracestore.Aggregation) (tracestore.Aggregate, error) {
	return tracestore.Aggregate{}, s.fail
}

func (s *fullStore) Delete(context.Context, string, tracestore.Deletion) (tracestore.Deleted, error) {
	return tracestore.Deleted{Spans: 7}, s.fail
}

func (s *fullStore) Find(context.Context, tracestore.Query, tracestore.Want) (*tracestore.Results, error) {
	return &tracestore.Results{All: s.found, Outcome: func() tracestore.Outcome { return tracestore.Outcome{} }}, nil
}

// serveFull serves a store with the store service.
func serveFull(t testing.TB, s Store, change func(*Config)) (*grpc.ClientConn, func()) {
	t.Helper()
	c := defaults()
	c.Endpoint, c.Storage = "127.0.0.1:0", pipeline.BoundRef(s)
	if change != nil {
		change(&c)
	}
	e, err := newExtension(pipelinetest.NewFixture("remote_storage", 64<<20).Settings, c)
	if err != nil {
		t.Fatal(err)
	}
	stop := pipelinetest.Start(t, e)
	conn, err := grpc.NewClient(e.Addr("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(server.RawCodec())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn, stop
}

// call asks a question of the store service.
func call[Q any](ctx context.Context, conn *grpc.ClientConn, method string, q *Q) (grpc.ClientStream, error) {
	question, err := storewire.Encode(q)
	if err != nil {
		return nil, err
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, storewire.Method(method))
	if err != nil {
		return nil, err
	}
	return stream, errors.Join(stream.SendMsg((*server.Raw)(&question)), stream.CloseSend())
}

// next receives a message with one value.
func next[A any](stream grpc.ClientStream) (a A, err error) {
	var message server.Raw
	if err := stream.RecvMsg(&message); err != nil {
		return a, err
	}
	return a, storewire.Only(storewire.NewAnswer(message, nil), &a)
}

// answerTo receives a response that has one value, and its error.
func answerTo[A, Q any](ctx context.Context, conn *grpc.ClientConn, method string, q *Q) (a A, err error) {
	stream, err := call(ctx, conn, method, q)
	if err != nil {
		return a, err
	}
	if a, err = next[A](stream); err != nil {
		return a, err
	}
	if err := stream.RecvMsg(new(server.Raw)); err != io.EOF {
		return a, err
	}
	return a, nil
}

// TestStoreCapabilities checks that clients are told what the store and the configuration allow.
func TestStoreCapabilities(t *testing.T) {
	for _, c := range []struct {
		store  Store
		change func(*Config)
		want   []string
	}{
		{&store{}, nil, []string{"Catalog", "Edges", "Reader"}},
		{&fullStore{store: &store{}}, nil, []string{"Aggregator", "Catalog", "Edges", "Follower", "Reader"}},
		{&fullStore{store: &store{}}, func(c *Config) { c.AllowDelete, c.MaxFollowers = true, 0 },
			[]string{"Aggregator", "Catalog", "Deleter", "Edges", "Reader"}},
	} {
		conn, _ := serveFull(t, c.store, c.change)
		a, err := answerTo[storewire.Capabilities](t.Context(), conn, "Capabilities", &storewire.Hello{Version: 1000})
		if err != nil || a.Version != storewire.Version || !slices.Equal(a.Interfaces, c.want) {
			t.Errorf("%v, %v, want %v", a, err, c.want)
		}
		a, err = answerTo[storewire.Capabilities](t.Context(), conn, "Capabilities", &storewire.Hello{})
		if err != nil || a.Version != 0 {
			t.Errorf("client of an unknown version: %v, %v", a, err)
		}
		_, err = answerTo[tracestore.Deleted](t.Context(), conn, "Delete", &tracestore.Deletion{})
		if (err == nil) != slices.Contains(c.want, "Deleter") {
			t.Errorf("Delete: %v", err)
		}
	}
}

// TestStoreStatus checks the status for errors of the store.
func TestStoreStatus(t *testing.T) {
	s := &fullStore{store: &store{}}
	conn, _ := serveFull(t, s, func(c *Config) { c.AllowDelete = true })
	for _, c := range []struct {
		fail   error
		code   codes.Code
		reason string
		delay  time.Duration
	}{
		{errors.New("broken"), codes.Internal, "", 0},
		{pipeline.Permanent(errors.New("bad")), codes.InvalidArgument, "", 0},
		{pipeline.Overloaded(errors.New("busy"), 5*time.Second), codes.ResourceExhausted, "", 5 * time.Second},
		{fmt.Errorf("sorry: %w", tracestore.ErrNotAllowed), codes.PermissionDenied, storewire.ReasonNotAllowed, 0},
		{fmt.Errorf("%w: nothing", tracestore.ErrBadDeletion), codes.InvalidArgument, storewire.ReasonBadDeletion, 0},
		{tracestore.Damaged("block 3 \xff", nil), codes.DataLoss, storewire.ReasonDamaged, 0},
		{tracestore.ErrUnsupported, codes.Unimplemented, "", 0},
		{context.DeadlineExceeded, codes.DeadlineExceeded, "", 0},
	} {
		s.fail = c.fail
		_, err := answerTo[tracestore.Deleted](t.Context(), conn, "Delete", &tracestore.Deletion{})
		got := status.Convert(err)
		reason, delay := "", time.Duration(0)
		for _, d := range got.Details() {
			switch d := d.(type) {
			case *errdetails.ErrorInfo:
				reason = d.GetReason()
			case *wrapperspb.BytesValue:
				var damage storewire.Damage
				if err := storewire.Only(storewire.NewAnswer(d.GetValue(), nil), &damage); err != nil || damage.Text() != "block 3 \xff" {
					t.Errorf("damage %+v, %v", damage, err)
				}
			case *errdetails.RetryInfo:
				delay = d.GetRetryDelay().AsDuration()
			}
		}
		if got.Code() != c.code || reason != c.reason || delay != c.delay {
			t.Errorf("%v: %v, reason %q, delay %s", c.fail, got, reason, delay)
		}
	}
}

// TestInvalidStoreRequests checks that invalid requests are refused as such.
func TestInvalidStoreRequests(t *testing.T) {
	conn, _ := serveFull(t, &fullStore{store: &store{}}, func(c *Config) { c.AllowDelete = true })
	newer := struct{ Hints []string }{[]string{"fast"}} // a field of a later version
	bad := tracestore.Cond{Op: 200}
	for method, err := range map[string]error{
		"Find":           errorOf(t, conn, "Find", &storewire.Find{Query: tracestore.Query{Where: bad}}),
		"Find, want":     errorOf(t, conn, "Find", &storewire.Find{Want: 9}),
		"Aggregate":      errorOf(t, conn, "Aggregate", &storewire.Aggregate{Query: tracestore.Query{Where: bad}}),
		"Aggregate, all": errorOf(t, conn, "Aggregate", &storewire.Aggregate{What: tracestore.Aggregation{Exemplars: 1 << 40}}),
		"Traces, newer":  errorOf(t, conn, "Traces", &newer),
		"Outline, text":  errorOf(t, conn, "Outline", &storewire.Names{Names: []string{"a"}}),
		"Follow, newer":  errorOf(t, conn, "Follow", &newer),
		"Delete, newer":  errorOf(t, conn, "Delete", &newer),
		"Hello, newer":   errorOf(t, conn, "Capabilities", &newer),
	} {
		if code := status.Code(err); code != codes.InvalidArgument && !(code == codes.Unimplemented && method == "Outline, text") {
			t.Errorf("%s: %v", method, err)
		}
	}
	if err := errorOf(t, conn, "Metrics", &tracestore.MetricsQuery{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("Metrics of a store without: %v", err)
	}
	if err := errorOf(t, conn, "Unknown", &storewire.Usage{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("unknown method: %v", err)
	}
}

// errorOf returns the error of a call without messages.
func errorOf[Q any](t *testing.T, conn *grpc.ClientConn, method string, q *Q) error {
	t.Helper()
	stream, err := call(t.Context(), conn, method, q)
	if err == nil {
		err = stream.RecvMsg(new(server.Raw))
	}
	return err
}

// TestUnreadStoreSearch checks that a search examines little ahead of a client that does not read,
// and stops when the client cancels.
func TestUnreadStoreSearch(t *testing.T) {
	spans := pipelinetest.Batch(t, otlpdata.Meta{}, 500)
	var sent atomic.Int64
	stopped := make(chan struct{})
	s := &fullStore{store: &store{}, found: func(yield func(tracestore.Result, error) bool) {
		defer close(stopped)
		for yield(tracestore.Result{Spans: spans}, nil) {
			sent.Add(int64(spans.Size()))
		}
	}}
	conn, _ := serveFull(t, s, func(c *Config) { c.MaxChunk = 16 << 10 })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := call(ctx, conn, "Find", &storewire.Find{Want: tracestore.WantFull})
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for range 20 {
		var message server.Raw
		if err := stream.RecvMsg(&message); err != nil {
			t.Fatal(err)
		}
		for d := storewire.NewAnswer(message, nil); !d.Done(); {
			var part storewire.FoundPart
			if err := storewire.Next(d, &part); err != nil {
				t.Fatal(err)
			}
			read += len(part.Spans)
		}
	}
	cancel()
	<-stopped
	if ahead := sent.Load() - int64(read); ahead > 8<<20 {
		t.Errorf("%d bytes ahead of the client", ahead)
	}
}

// TestFollowers checks the limit on followers, that a client that does not read misses spans and is
// told how many, and that followers do not delay the stop of the extension.
func TestFollowers(t *testing.T) {
	s := &fullStore{store: &store{}}
	spans := pipelinetest.Batch(t, otlpdata.Meta{}, 500)
	conn, stop := serveFull(t, s, func(c *Config) { c.MaxFollowers, c.MaxFeed = 1, pipeline.ByteSize(4*spans.Size()) })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := call(ctx, conn, "Follow", &storewire.Follow{Capacity: 1 << 40})
	if err == nil {
		_, err = next[storewire.Followed](stream)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := errorOf(t, conn, "Follow", &storewire.Follow{}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("second follower: %v", err)
	}
	const batches = 2000
	for range batches {
		s.Publish(spans) // never blocks
	}
	got, missed := 0, 0
	for got+missed < batches*spans.Len() {
		m, err := next[storewire.Followed](stream)
		if err != nil {
			t.Fatal(err)
		}
		if missed += m.Missed; m.Spans != nil {
			batch, err := otlpdata.FromOTLP(m.Spans, otlpdata.Meta{}, otlpdata.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			got += batch.Len()
		}
	}
	if got == 0 || missed == 0 || got+missed != batches*spans.Len() {
		t.Errorf("%d spans, %d missed of %d", got, missed, batches*spans.Len())
	}
	stop()
	if err := stream.RecvMsg(new(server.Raw)); status.Code(err) != codes.Unavailable || errors.Is(err, io.EOF) {
		t.Errorf("follower after the stop: %v", err)
	}
}
