package multistore

import (
	"cmp"
	"context"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

var _ tracestore.Catalog = (*Store)(nil)

// defaultNames is the number of attribute keys or values that a limit of 0 requests.
const defaultNames = 1000

// list is a sorted list of names. more reports whether there are others.
type list[T any] struct {
	names []T
	more  bool
}

// Services implements tracestore.Catalog.
func (s *Store) Services(ctx context.Context, tenant string, q tracestore.NameQuery) (names []string, more bool, err error) {
	answers, missing, err := ask(ctx, s, tenant, func(ctx context.Context, c tracestore.Catalog) (l list[string], err error) {
		l.names, l.more, err = c.Services(ctx, tenant, q)
		return l, err
	})
	if err != nil {
		return nil, false, err
	}
	names, more = merge(answers, q.Limit, cmp.Compare[string])
	return names, more, damage(missing)
}

// Operations implements tracestore.Catalog.
func (s *Store) Operations(
	ctx context.Context, tenant, service, kind string, q tracestore.NameQuery,
) (ops []tracestore.Operation, more bool, err error) {
	answers, missing, err := ask(ctx, s, tenant, func(ctx context.Context, c tracestore.Catalog) (l list[tracestore.Operation], err error) {
		l.names, l.more, err = c.Operations(ctx, tenant, service, kind, q)
		return l, err
	})
	if err != nil {
		return nil, false, err
	}
	ops, more = merge(answers, q.Limit, func(a, b tracestore.Operation) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return ops, more, damage(missing)
}

// AttributeKeys implements tracestore.Catalog.
func (s *Store) AttributeKeys(ctx context.Context, tenant, prefix string, limit int) ([]string, error) {
	return s.attributes(ctx, tenant, limit, func(ctx context.Context, c tracestore.Catalog) ([]string, error) {
		return c.AttributeKeys(ctx, tenant, prefix, limit)
	})
}

// AttributeValues implements tracestore.Catalog.
func (s *Store) AttributeValues(ctx context.Context, tenant, key, prefix string, limit int) ([]string, error) {
	return s.attributes(ctx, tenant, limit, func(ctx context.Context, c tracestore.Catalog) ([]string, error) {
		return c.AttributeValues(ctx, tenant, key, prefix, limit)
	})
}

func (s *Store) attributes(
	ctx context.Context, tenant string, limit int, call func(context.Context, tracestore.Catalog) ([]string, error),
) ([]string, error) {
	if limit <= 0 {
		limit = defaultNames
	}
	answers, missing, err := ask(ctx, s, tenant, func(ctx context.Context, c tracestore.Catalog) (l list[string], err error) {
		l.names, err = call(ctx, c)
		return l, err
	})
	if err != nil {
		return nil, err
	}
	names, _ := merge(answers, limit, cmp.Compare[string])
	return names, damage(missing)
}

// merge returns the first names of all lists, sorted and without duplicates.
func merge[T comparable](answers []answer[list[T]], limit int, compare func(a, b T) int) (names []T, more bool) {
	for _, a := range answers {
		names, more = append(names, a.value.names...), more || a.value.more
	}
	slices.SortFunc(names, compare)
	names = slices.Compact(names)
	if limit > 0 && len(names) > limit {
		return names[:limit], true
	}
	return names, more
}
