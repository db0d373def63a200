package multistore

import (
	"context"
	"fmt"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

var _ tracestore.Follower = (*Store)(nil)

// Follow implements tracestore.Follower. It fails if a store cannot be followed, and the feed ends
// with an error when the feed of a store does: nothing is known about spans that this store
// receives afterwards.
func (s *Store) Follow(ctx context.Context, tenant string, capacity int) (*tracestore.Feed, error) {
	type reply struct {
		feed *tracestore.Feed
		err  error
	}
	replies := each(s.stores, func(n *member) (r reply) {
		store, ok := tracestore.As[tracestore.Follower](ctx, tenant, n.Store)
		if !ok {
			return reply{err: unsupported(n.Name)}
		}
		if r.feed, r.err = store.Follow(ctx, tenant, capacity); r.err != nil {
			r.err = fmt.Errorf("store %s: %w", n.Name, r.err)
		}
		return r
	})
	var feeds []*tracestore.Feed
	var failure error
	for _, r := range replies {
		if r.err == nil {
			feeds = append(feeds, r.feed)
		} else if failure == nil {
			failure = r.err
		}
	}
	if failure != nil {
		for _, f := range feeds {
			f.Close()
		}
		return nil, cause(ctx, failure)
	}
	open, closed := context.WithCancel(context.WithoutCancel(ctx))
	all := tracestore.NewFeed(tenant, capacity, closed)
	for i, n := range s.stores {
		go forward(open, feeds[i], all, n.Name)
	}
	return all, nil
}

// forward forwards the feed of a store until it or ctx ends.
func forward(ctx context.Context, from, to *tracestore.Feed, store string) {
	defer from.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-from.Ready():
		}
		b, missed := from.Take()
		to.Miss(missed)
		if b != nil {
			to.Offer(b)
		}
		if err := from.Err(); err != nil {
			to.End(fmt.Errorf("store %s: %w", store, err))
			return
		}
	}
}
