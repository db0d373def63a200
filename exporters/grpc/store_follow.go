package grpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Follow implements tracestore.Follower. The feed ends with an error if the connection is lost,
// because the spans stored after that are unknown.
func (e *exporter) Follow(ctx context.Context, tenant string, capacity int) (*tracestore.Feed, error) {
	ctx = e.withReadMetadata(ctx, tenant)
	if err := requires[tracestore.Follower](ctx, e); err != nil {
		return nil, err
	}
	question, err := storewire.Encode(&storewire.Follow{Capacity: capacity})
	if err != nil {
		return nil, err
	}
	open, cancel := context.WithCancel(context.WithoutCancel(ctx))
	inTime := context.AfterFunc(ctx, cancel) // limits only the wait for the first message
	stream, err := call(open, e.store, storewire.Method("Follow"), (*server.Raw)(&question))
	if err == nil {
		err = stream.RecvMsg(new(server.Raw))
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
func receiveFeed(stream grpc.ClientStream, tenant string, feed *tracestore.Feed) error {
	for {
		var message server.Raw
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		var m storewire.Followed
		if err := storewire.Only(storewire.NewAnswer(message, nil), &m); err != nil {
			return err
		}
		feed.Miss(m.Missed)
		if m.Spans == nil {
			continue
		}
		b, err := batch(m.Spans, tenant)
		if err != nil {
			return err
		}
		feed.Offer(b)
	}
}
