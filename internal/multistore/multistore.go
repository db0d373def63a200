// Package multistore reads several stores as one. The stores share nothing: each holds some of the
// traces, and a trace may be divided among several of them, with or without duplicates.
//
// A store that cannot be reached, or fails otherwise, makes a result incomplete and is named in it.
// A request fails only if all stores fail, or if the request itself is wrong; see [isOfCaller].
package multistore

import (
	"context"
	"reflect"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Named is one of several stores, with the name that results use for it.
type Named struct {
	Name  string
	Store any // reached with tracestore.As; implements tracestore.Reader and tracestore.Catalog
}

// Store reads several stores as one. It supports an optional interface of package tracestore if all
// stores support it. It is safe for concurrent use if the stores are.
type Store struct{ stores []*member }

var _ tracestore.Provider = (*Store)(nil)

// New returns a store that reads the given stores, at least one. Their names must differ.
func New(stores ...Named) *Store {
	s := &Store{}
	for _, n := range stores {
		s.stores = append(s.stores, &member{Named: n})
	}
	return s
}

// Provide implements tracestore.Provider. A store that cannot be reached counts as supporting
// everything.
func (s *Store) Provide(ctx context.Context, tenant string, want reflect.Type) any {
	supported := each(s.stores, func(m *member) bool { return tracestore.Supports(ctx, tenant, m.Store, want) })
	if slices.Contains(supported, false) {
		return nil
	}
	return s
}
