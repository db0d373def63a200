package tracestore

import (
	"context"
	"errors"
	"reflect"
)

// ErrUnsupported is matched by errors of calls that the store does not support.
var ErrUnsupported = errors.New("store does not support this request")

// Provider is implemented by stores whose optional interfaces become known only while they run,
// such as a store in another process. Use [As] instead of a type assertion to find out what a store
// supports.
type Provider interface {
	// Provide returns a store that implements an interface of this package if the store supports it
	// now, and nil otherwise. It may ask another process until ctx ends. If it gets no response, it
	// assumes support for everything that the store may support.
	//
	// A later call may return something else. Calls that are no longer supported return errors that
	// match [ErrUnsupported].
	Provide(ctx context.Context, tenant string, want reflect.Type) any
}

// As returns a store as an optional interface of this package, and reports whether the store
// supports it for the tenant. A [Provider] decides itself; any other store supports the interfaces
// that it implements. Call As for each request, because the support may change.
func As[T any](ctx context.Context, tenant string, store any) (optional T, ok bool) {
	optional, ok = provided(ctx, tenant, store, reflect.TypeFor[T]()).(T)
	return optional, ok
}

// Supports is like [As] for an interface that is known only at run time.
func Supports(ctx context.Context, tenant string, store any, want reflect.Type) bool {
	t := reflect.TypeOf(provided(ctx, tenant, store, want))
	return t != nil && t.Implements(want)
}

func provided(ctx context.Context, tenant string, store any, want reflect.Type) any {
	if p, is := store.(Provider); is {
		return p.Provide(ctx, tenant, want)
	}
	return store
}
