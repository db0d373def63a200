package multistore

import (
	"context"
	"fmt"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

var _ tracestore.Deleter = (*Store)(nil)

// Delete implements tracestore.Deleter. It deletes from all stores, even if one of them fails. The
// error names the failed store; repeating the deletion is safe.
func (s *Store) Delete(ctx context.Context, tenant string, d tracestore.Deletion) (all tracestore.Deleted, err error) {
	type reply struct {
		deleted tracestore.Deleted
		err     error
	}
	replies := each(s.stores, func(n *member) (r reply) {
		store, ok := tracestore.As[tracestore.Deleter](ctx, tenant, n.Store)
		if !ok {
			return reply{err: unsupported(n.Name)}
		}
		if r.deleted, r.err = store.Delete(ctx, tenant, d); r.err != nil {
			r.err = fmt.Errorf("store %s: %w", n.Name, r.err)
		}
		return r
	})
	for _, r := range replies {
		all.Spans += r.deleted.Spans
		if err == nil {
			err = r.err
		}
	}
	return all, cause(ctx, err)
}
