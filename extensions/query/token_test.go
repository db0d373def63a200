package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing/extensions/query/internal/grpcapi"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/internal/wire/streaming"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// tokenStore records the bearer tokens that a remote storage client would forward.
type tokenStore struct {
	*querytest.Store
	tokens chan string // with capacity for those of a test case
}

func (s tokenStore) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	s.tokens <- client.BearerToken(ctx)
	return s.Store.Find(ctx, q, want)
}

func (s tokenStore) Services(ctx context.Context, tenant string, q tracestore.NameQuery) ([]string, bool, error) {
	s.tokens <- client.BearerToken(ctx)
	return s.Store.Services(ctx, tenant, q)
}

// Bearer tokens of gRPC calls reach the store, on both ports, if they are to be forwarded.
func TestTokensOfCalls(t *testing.T) {
	for _, pass := range []bool{false, true} {
		store := tokenStore{querytest.NewStore(querytest.Shop()), make(chan string, 100)}
		c, cfg := defaults(), grpcapi.DefaultConfig()
		cfg.Endpoint = "localhost:0"
		c.HTTP.Endpoint, c.GRPC, c.PassTokens = "localhost:0", pipeline.Present(cfg), pass
		c.Storage = pipeline.BoundRef[Store](store)
		q, err := newQuery(querytest.Settings(t), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, h := range []struct {
			headers []string
			want    string // if pass
		}{
			{nil, ""},
			{[]string{"authorization", "Bearer abc"}, "abc"},
			{[]string{"authorization", "Basic abc"}, ""},
			{[]string{"x-forwarded-access-token", "abc"}, "abc"},
		} {
			want := map[bool]string{true: h.want}[pass]
			ctx := metadata.AppendToOutgoingContext(t.Context(), h.headers...)
			for _, listener := range []string{"http", "grpc"} {
				if err := callQuery(ctx, q.Addr(listener), listener == "grpc"); err != nil {
					t.Fatalf("%s, %q: %v", listener, h.headers, err)
				}
			}
			var got []string
			for len(store.tokens) > 0 {
				got = append(got, <-store.tokens)
			}
			if len(got) < 3 || slices.ContainsFunc(got, func(token string) bool { return token != want }) {
				t.Errorf("forward %t, %q: tokens %q, want %q", pass, h.headers, got, want)
			}
		}
		if err := q.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// callQuery calls a streaming method and, with unary, another one.
func callQuery(ctx context.Context, addr string, unary bool) (err error) {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	stream, err := streaming.NewStreamingQuerierClient(conn).Search(ctx, &streaming.SearchRequest{Start: 1714550000, End: 1714560000})
	if err != nil {
		return err
	}
	for err == nil {
		_, err = stream.Recv()
	}
	if err != io.EOF {
		return fmt.Errorf("streaming: %w", err)
	}
	err = nil
	if unary {
		_, err = api_v2.NewQueryServiceClient(conn).GetServices(ctx, &api_v2.GetServicesRequest{})
	}
	return err
}
