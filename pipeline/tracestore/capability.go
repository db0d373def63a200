package tracestore

import (
	"context"
	"errors"
)

// ErrUnsupported is matched by errors of calls that the store does not support.
var ErrUnsupported = errors.New("store does not support this request")

// Provider is implemented by stores whose optional interfaces become known only while they run,
// such as a store in another process. Use [As] instead of a type assertion to find out what a store
// supports.
type Provider interface {
	// Provide sets the variable to which target points and returns true if the store supports the
	// type of the variable, which is an interface, now. It may ask another process until ctx ends.
	// If it gets no answer, it provides what the store may support.
	//
	// A later answer may differ. Calls that are not supported anymore return errors that match
	// [ErrUnsupported].
	Provide(ctx context.Context, tenant string, target any) bool
}

// As returns a store as an optional interface of this package, and reports whether the store
// supports it for the tenant. A [Provider] decides itself; any other store supports the interfaces
// that it implements. Callers should ask again for each request.
func As[T any](ctx context.Context, tenant string, store any) (optional T, ok bool) {
	if p, is := store.(Provider); is {
		ok = p.Provide(ctx, tenant, &optional)
		return optional, ok
	}
	optional, ok = store.(T)
	return optional, ok
}
