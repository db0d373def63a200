package grpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Follow implements tracestore.Follower. The feed ends with an error if the connection is lost,
// because nothing is known about spans that are stored then.
func (e *exporter) Follow(ctx context.Context, tenant string, capacity int) (*tracestore.Feed, error) {
	ctx = e.withReadMetadata(ctx, tenant)
	if err := e.requires(ctx, store_v1.Capability_CAPABILITY_FOLLOWER); err != nil {
		return nil, err
	}
	open, cancel := context.WithCancel(context.WithoutCancel(ctx))
	inTime := context.AfterFunc(ctx, cancel) // limits only the wait for the first message
	stream, err := store_v1.NewStoreServiceClient(e.store).Follow(open, &store_v1.FollowRequest{Capacity: int64(capacity)})
	if err == nil {
		_, err = stream.Recv()
	}
	if !inTime() {
		cancel()
		return nil, ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, e.storeError(ctx, err)
	}
	feed := tracestore.NewFeed(tenant, capacity, cancel)
	e.feeds.Go(func() {
		defer cancel()
		feed.End(e.storeError(open, receiveFeed(stream, tenant, feed)))
	})
	return feed, nil
}

// receiveFeed offers received spans to a feed, until the call fails. It never waits for the reader
// of the feed.
func receiveFeed(stream grpc.ServerStreamingClient[store_v1.FollowResponse], tenant string, feed *tracestore.Feed) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		feed.Miss(int(max(m.GetMissed(), 0)))
		for _, otlp := range m.GetSpans() {
			b, err := batch(otlp, tenant)
			if err != nil {
				return err
			}
			feed.Offer(b)
		}
	}
}
