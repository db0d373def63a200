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

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
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
func serveFull(t testing.TB, s Store, change func(*Config)) (store_v1.StoreServiceClient, func()) {
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
	conn, err := grpc.NewClient(e.Addr("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return store_v1.NewStoreServiceClient(conn), stop
}

// TestStoreCapabilities checks that clients are told what the store and the configuration allow.
func TestStoreCapabilities(t *testing.T) {
	const (
		deleter  = store_v1.Capability_CAPABILITY_DELETER
		follower = store_v1.Capability_CAPABILITY_FOLLOWER
	)
	for _, c := range []struct {
		store  Store
		change func(*Config)
		want   []store_v1.Capability
	}{
		{&store{}, nil, []store_v1.Capability{1, 2, 5}},
		{&fullStore{store: &store{}}, nil, []store_v1.Capability{1, 2, 4, 5, follower}},
		{&fullStore{store: &store{}}, func(c *Config) { c.AllowDelete, c.MaxFollowers = true, 0 }, []store_v1.Capability{1, 2, 4, 5, deleter}},
	} {
		client, _ := serveFull(t, c.store, c.change)
		resp, err := client.Capabilities(t.Context(), &store_v1.CapabilitiesRequest{Version: 1000})
		if err != nil || resp.GetVersion() != storewire.Version || !slices.Equal(resp.GetCapabilities(), c.want) {
			t.Errorf("%v, %v, want %v", resp, err, c.want)
		}
		resp, err = client.Capabilities(t.Context(), &store_v1.CapabilitiesRequest{})
		if err != nil || resp.GetVersion() != 0 {
			t.Errorf("client of an unknown version: %v, %v", resp, err)
		}
		if _, err := client.Delete(t.Context(), &store_v1.DeleteRequest{}); (err == nil) != slices.Contains(c.want, deleter) {
			t.Errorf("Delete: %v", err)
		}
	}
}

// TestStoreStatus checks the status for errors of the store.
func TestStoreStatus(t *testing.T) {
	s := &fullStore{store: &store{}}
	client, _ := serveFull(t, s, func(c *Config) { c.AllowDelete = true })
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
		{tracestore.Damaged("block 3 \xff", nil), codes.DataLoss, "block 3 \xff", 0},
		{tracestore.ErrUnsupported, codes.Unimplemented, "", 0},
		{context.DeadlineExceeded, codes.DeadlineExceeded, "", 0},
	} {
		s.fail = c.fail
		_, err := client.Delete(t.Context(), &store_v1.DeleteRequest{})
		got := status.Convert(err)
		reason, delay := "", time.Duration(0)
		for _, d := range got.Details() {
			switch d := d.(type) {
			case *errdetails.ErrorInfo:
				reason = d.GetReason()
			case *store_v1.Damage:
				reason = storewire.GetDamage(d).Text()
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
	client, _ := serveFull(t, &fullStore{store: &store{}}, func(c *Config) { c.AllowDelete = true })
	query := &store_v1.Query{Where: &store_v1.Expr{}}
	ctx := t.Context()
	for name, err := range map[string]error{
		"Find":            errorOf(client.Find(ctx, &store_v1.FindRequest{Query: query})),
		"Find, want":      errorOf(client.Find(ctx, &store_v1.FindRequest{Want: 9})),
		"Aggregate":       errorOf(client.Aggregate(ctx, &store_v1.AggregateRequest{Query: query})),
		"Aggregate, many": errorOf(client.Aggregate(ctx, &store_v1.AggregateRequest{Exemplars: 1 << 40})),
		"Traces":          errorOf(client.Traces(ctx, &store_v1.TracesRequest{Refs: []*store_v1.TraceRef{{}}})),
		"FindSpans":       errorOf(client.FindSpans(ctx, &store_v1.FindSpansRequest{TraceId: []byte{1}})),
		"FindSpans, condition": errorOf(client.FindSpans(ctx,
			&store_v1.FindSpansRequest{TraceId: make([]byte, 16), Where: &store_v1.Expr{}})),
		"SelectSpans": errorOf(client.SelectSpans(ctx, &store_v1.SelectSpansRequest{TraceId: []byte{1}})),
		"Outline":     errorOf(client.Outline(ctx, &store_v1.OutlineRequest{TraceId: []byte{1}})),
	} {
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := client.Delete(ctx, &store_v1.DeleteRequest{Traces: [][]byte{{1}}}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("Delete: %v", err)
	}
	if err := errorOf(client.Metrics(ctx, &store_v1.MetricsRequest{})); status.Code(err) != codes.Unimplemented {
		t.Errorf("Metrics of a store without: %v", err)
	}
}

// errorOf returns the error of a stream without messages.
func errorOf[M any](stream grpc.ServerStreamingClient[M], err error) error {
	if err == nil {
		_, err = stream.Recv()
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
	client, _ := serveFull(t, s, func(c *Config) { c.MaxChunk = 16 << 10 })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := client.Find(ctx, &store_v1.FindRequest{Want: store_v1.Want_WANT_FULL})
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for range 20 {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range m.GetTraces() {
			for _, b := range one.GetSpans() {
				read += len(b)
			}
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
	client, stop := serveFull(t, s, func(c *Config) { c.MaxFollowers, c.MaxFeed = 1, pipeline.ByteSize(4*spans.Size()) })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := client.Follow(ctx, &store_v1.FollowRequest{Capacity: 1 << 40})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := errorOf(client.Follow(t.Context(), &store_v1.FollowRequest{})); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("second follower: %v", err)
	}
	const batches = 2000
	for range batches {
		s.Publish(spans) // never blocks
	}
	got, missed := 0, 0
	for got+missed < batches*spans.Len() {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		missed += int(m.GetMissed())
		for _, b := range m.GetSpans() {
			batch, err := otlpdata.FromOTLP(b, otlpdata.Meta{}, otlpdata.Limits{})
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
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable || errors.Is(err, io.EOF) {
		t.Errorf("follower after the stop: %v", err)
	}
}
