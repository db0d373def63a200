package query

import (
	"context"
	"iter"
	"net/http"
	"testing"

	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// waitingStore waits for the end of the context, and signals the begin and the end of each call.
type waitingStore struct {
	*querytest.Store
	begins, ends chan struct{}
}

func (s *waitingStore) wait(ctx context.Context) error {
	s.begins <- struct{}{}
	<-ctx.Done()
	s.ends <- struct{}{}
	return ctx.Err()
}

func (s *waitingStore) Find(ctx context.Context, _ tracestore.Query, _ tracestore.Want) (*tracestore.Results, error) {
	return nil, s.wait(ctx)
}

func (s *waitingStore) Traces(ctx context.Context, _ string, _ []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) { yield(tracestore.Trace{}, s.wait(ctx)) }
}

func (s *waitingStore) Consume(context.Context, *otlpdata.Batch) error { return nil }

// A client that closes its connection cancels the context of the store, through all layers.
func TestClosedConnectionCancelsStore(t *testing.T) {
	store := &waitingStore{querytest.NewStore(querytest.Shop()), make(chan struct{}), make(chan struct{})}
	c := defaults()
	c.HTTP.Endpoint, c.PassTokens = "localhost:0", true
	c.Storage, c.ArchiveStorage = pipeline.BoundRef[Store](store), pipeline.BoundRef[Archive](store)
	q, err := newQuery(querytest.Settings(t), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, request := range [][2]string{{http.MethodGet, "/api/traces/1"}, {http.MethodGet, "/api/traces?service=web"},
		{http.MethodGet, "/api/v3/trace-summaries?" + wholeDay}, {http.MethodPost, "/api/archive/1"}} {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, request[0], "http://"+q.Addr("http")+request[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if res, err := http.DefaultClient.Do(r); err == nil {
				res.Body.Close()
				t.Errorf("%v: %s", request, res.Status)
			}
		}()
		<-store.begins
		cancel()
		<-store.ends // or the test times out
		<-done
	}
	http.DefaultClient.CloseIdleConnections()
	if err := q.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
