// Package multistore reads several stores as one. The stores share nothing: each holds some of the
// traces, and a trace may be divided among several of them, with or without duplicates.
//
// A store that cannot be reached, or fails otherwise, makes an answer partial and is named in it.
// An answer fails only if no store answers, or if the request itself is wrong; see [isOfCaller].
package multistore

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Named is one of several stores, with the name by which answers call it.
type Named struct {
	Name  string
	Store any // reached with tracestore.As; implements tracestore.Reader and tracestore.Catalog
}

// Store reads several stores as one. It supports an optional interface of package tracestore if all
// stores support it. Safe for concurrent use if the stores are.
type Store struct{ stores []*member }

var _ tracestore.Provider = (*Store)(nil)

// New returns a store over stores, of which there must be at least one. Their names must differ.
func New(stores ...Named) *Store {
	s := &Store{}
	for _, n := range stores {
		s.stores = append(s.stores, &member{Named: n})
	}
	return s
}

// Provide implements tracestore.Provider. A store that cannot be reached supports what it may
// support.
func (s *Store) Provide(ctx context.Context, tenant string, target any) bool {
	switch t := target.(type) {
	case *tracestore.Reader:
		return provide(ctx, tenant, s, t)
	case *tracestore.Catalog:
		return provide(ctx, tenant, s, t)
	case *tracestore.Dependencies:
		return provide(ctx, tenant, s, t)
	case *tracestore.AttributeCatalog:
		return provide(ctx, tenant, s, t)
	case *tracestore.Aggregator:
		return provide(ctx, tenant, s, t)
	case *tracestore.GroupAggregator:
		return provide(ctx, tenant, s, t)
	case *tracestore.Peers:
		return provide(ctx, tenant, s, t)
	case *tracestore.Edges:
		return provide(ctx, tenant, s, t)
	case *tracestore.Metrics:
		return provide(ctx, tenant, s, t)
	case *tracestore.Baselines:
		return provide(ctx, tenant, s, t)
	case *tracestore.Outliner:
		return provide(ctx, tenant, s, t)
	case *tracestore.SpanSelector:
		return provide(ctx, tenant, s, t)
	case *tracestore.SpanFinder:
		return provide(ctx, tenant, s, t)
	case *tracestore.PathProfiler:
		return provide(ctx, tenant, s, t)
	case *tracestore.Versioner:
		return provide(ctx, tenant, s, t)
	case *tracestore.UsageReporter:
		return provide(ctx, tenant, s, t)
	case *tracestore.Follower:
		return provide(ctx, tenant, s, t)
	case *tracestore.Deleter:
		return provide(ctx, tenant, s, t)
	}
	return false
}

// provide sets target to s if s has the interface and all stores support it.
func provide[T any](ctx context.Context, tenant string, s *Store, target *T) bool {
	own, ok := any(s).(T)
	if !ok {
		return false
	}
	supported := each(s.stores, func(n *member) bool {
		_, ok := tracestore.As[T](ctx, tenant, n.Store)
		return ok
	})
	for _, ok := range supported {
		if !ok {
			return false
		}
	}
	*target = own
	return true
}
