package remotestorage

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

func TestMain(m *testing.M) {
	server.RegisterCompressors() // before any test serves
	goleak.VerifyTestMain(m)
}

// store is a store whose queries return everything. Tests can set its behavior.
type store struct {
	storequery.WholeTraces

	mu      sync.Mutex
	batches []*otlpdata.Batch
	queries []tracestore.Query
	outcome tracestore.Outcome
	refuse  func() error
	reading func(ctx context.Context)
}

func (s *store) spans() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.batches {
		n += b.Len()
	}
	return n
}

func (s *store) Consume(_ context.Context, b *otlpdata.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		if err := s.refuse(); err != nil {
			return err
		}
	}
	s.batches = append(s.batches, b)
	return nil
}

func (s *store) Traces(ctx context.Context, tenant string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		for _, ref := range refs {
			for _, b := range s.batches {
				if b.Meta().Tenant == tenant && idOf(b) == ref.ID && !yield(tracestore.Trace{ID: ref.ID, Spans: b}, ctx.Err()) {
					return
				}
			}
		}
	}
}

// idOf returns the trace id of the first span.
func idOf(b *otlpdata.Batch) (id otlpdata.TraceID) {
	first := errors.New("found")
	_ = tracestore.WalkSpans(b, func(s tracestore.Span) error {
		id = s.TraceID
		return first
	})
	return id
}

func (s *store) Find(ctx context.Context, q tracestore.Query, _ tracestore.Want) (*tracestore.Results, error) {
	s.mu.Lock()
	s.queries = append(s.queries, q)
	s.mu.Unlock()
	if s.reading != nil {
		s.reading(ctx)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return &tracestore.Results{
		All: func(yield func(tracestore.Result, error) bool) {
			for _, b := range s.batches {
				if !yield(tracestore.Result{ID: idOf(b), Spans: b, Summary: &tracestore.Summary{ID: idOf(b), Spans: b.Len(),
					RootName: "\xff",
					Services: []tracestore.ServiceSummary{{Name: "shop", Spans: b.Len()}}}}, nil) {
					return
				}
			}
		},
		Outcome: func() tracestore.Outcome { return s.outcome },
	}, nil
}

func (*store) Services(_ context.Context, tenant string, _ tracestore.NameQuery) (names []string, more bool, _ error) {
	return []string{"of " + tenant}, tenant == "huge", nil
}

func (*store) Operations(
	_ context.Context, _, service, kind string, _ tracestore.NameQuery,
) (ops []tracestore.Operation, more bool, _ error) {
	return []tracestore.Operation{{Name: service, Kind: ""}, {Name: service, Kind: "client"}, {Name: "z", Kind: kind}}, service == "huge", nil
}

func (*store) AttributeKeys(context.Context, string, string, int) ([]string, error) {
	return nil, tracestore.ErrUnsupported
}

func (*store) AttributeValues(context.Context, string, string, string, int) ([]string, error) {
	return nil, tracestore.ErrUnsupported
}

func (*store) Dependencies(context.Context, string, time.Time, time.Time) (tracestore.Graph, error) {
	return tracestore.Graph{Edges: []tracestore.Edge{{Parent: "a", Child: "a", Calls: 1}, {Parent: "a", Child: "b", Calls: 2},
		{Parent: "a", Child: "b", Messaging: true, Calls: 3}}, Reasons: tracestore.Because(tracestore.ReasonDamage, "some are missing")}, nil
}

func (*store) Peers(context.Context, string, time.Time, time.Time) (tracestore.Graph, error) {
	return tracestore.Graph{}, tracestore.ErrUnsupported
}

func (*store) Edges(context.Context, string, tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
	return tracestore.EdgeGraph{}, tracestore.ErrUnsupported
}

// serve serves a store and returns a connection to it.
func serve(t testing.TB, s *store, change func(*Config)) *grpc.ClientConn {
	t.Helper()
	conn, _ := serveAndStop(t, s, change)
	return conn
}

// serveAndStop is like serve and also returns a function that stops the server.
func serveAndStop(t testing.TB, s *store, change func(*Config)) (*grpc.ClientConn, func()) {
	t.Helper()
	c := defaults()
	c.Endpoint, c.Storage = "127.0.0.1:0", pipeline.BoundRef[Store](s)
	if change != nil {
		change(&c)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
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
	return conn, stop
}
