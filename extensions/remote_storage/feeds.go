package remotestorage

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// feeds limits the clients that follow the store.
type feeds struct {
	slots    chan struct{}
	capacity int             // bytes that one feed buffers
	stopping context.Context // canceled when the extension stops
}

func newFeeds(c *Config, stopping context.Context) *feeds {
	return &feeds{slots: make(chan struct{}, c.MaxFollowers), capacity: int(c.MaxFeed), stopping: stopping}
}

func (f *feeds) limit() int { return cap(f.slots) }

// feedStopDelay is the time in which a client must receive the end of its feed when the extension
// stops.
const feedStopDelay = time.Second

// follow sends the spans of the tenant as they are stored, until the client ends the call or the
// extension stops. A slow client misses spans; follow sends it their number.
func (s *storeService) follow(question []byte, stream grpc.ServerStream) error {
	ctx := stream.Context()
	select {
	case s.feeds.slots <- struct{}{}:
		defer func() { <-s.feeds.slots }()
	default:
		err := fmt.Errorf("too many clients follow the store (max_followers is %d)", s.feeds.limit())
		return pipeline.GRPCStatus(pipeline.Overloaded(err, 0)).Err()
	}
	tenant, err := s.tenants.of(ctx)
	if err != nil {
		return err
	}
	var q storewire.Follow
	if err := storewire.Small(question, &q); err != nil {
		return storeStatus(err)
	}
	capacity := min(max(q.Capacity, 0), s.feeds.capacity)
	account, err := s.memory.Reserve(int64(capacity) + readMemory)
	if err != nil {
		return pipeline.GRPCStatus(err).Err()
	}
	defer account.Release()
	store, ok := tracestore.As[tracestore.Follower](ctx, tenant, s.store)
	if !ok {
		return storeStatus(tracestore.ErrUnsupported)
	}
	feed, err := store.Follow(ctx, tenant, capacity)
	if err != nil {
		return statusOf(storeStatus(err))
	}
	defer feed.Close()
	// A client that does not read must not delay the end of the process.
	defer context.AfterFunc(s.feeds.stopping, func() { time.AfterFunc(feedStopDelay, func() { server.EndCall(ctx) }) })()
	if err := sendValue(sendTo(stream), &storewire.Followed{}); err != nil {
		return err
	}
	return statusOf(storeStatus(s.forward(stream, feed)))
}

// forward sends what the feed delivers until the feed or the call ends.
func (s *storeService) forward(stream grpc.ServerStream, feed *tracestore.Feed) error {
	for {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-s.feeds.stopping.Done():
			return pipeline.GRPCStatus(pipeline.ErrStopping).Err()
		case <-feed.Ready():
		}
		b, missed := feed.Take()
		if err := s.sendFed(stream, b, missed); err != nil {
			return err
		}
		if err := feed.Err(); err != nil {
			return err
		}
	}
}

// sendFed sends a batch from a feed, which may be nil, and the number of missed spans.
func (s *storeService) sendFed(stream grpc.ServerStream, b *otlpdata.Batch, missed int) error {
	if missed > 0 {
		if err := sendValue(sendTo(stream), &storewire.Followed{Missed: missed}); err != nil {
			return err
		}
	}
	if b == nil {
		return nil
	}
	return eachPiece(b, s.chunk, func(piece []byte) error {
		return sendValue(sendTo(stream), &storewire.Followed{Spans: piece})
	})
}
