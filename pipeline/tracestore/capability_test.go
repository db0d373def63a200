package tracestore

import (
	"context"
	"reflect"
	"testing"
)

// remoteStore has the methods of a Deleter, and provides a UsageReporter for one tenant.
type remoteStore struct{ Deleter }

func (r remoteStore) Usage(context.Context, string) (Usage, error) { return Usage{}, nil }

func (r remoteStore) Provide(_ context.Context, tenant string, want reflect.Type) any {
	if want == reflect.TypeFor[UsageReporter]() && tenant == "a" {
		return r
	}
	return nil
}

// TestAs checks that a Provider decides what it supports, and that the methods of other stores do.
func TestAs(t *testing.T) {
	ctx := t.Context()
	if p, ok := As[UsageReporter](ctx, "a", remoteStore{}); !ok {
		t.Error("provided interface is not supported")
	} else if u, err := p.Usage(ctx, "a"); err != nil || !u.Complete() {
		t.Errorf("Usage: %+v, %v", u, err)
	}
	if _, ok := As[UsageReporter](ctx, "b", remoteStore{}); ok {
		t.Error("interface is supported for a tenant for which it is not provided")
	}
	for tenant, want := range map[string]bool{"a": true, "b": false} {
		if Supports(ctx, tenant, remoteStore{}, reflect.TypeFor[UsageReporter]()) != want {
			t.Errorf("Supports of tenant %s: want %t", tenant, want)
		}
	}
	if _, ok := As[Deleter](ctx, "a", remoteStore{}); ok {
		t.Error("interface is supported that is implemented but not provided")
	}
	if f, ok := As[Follower](ctx, "a", &Hub{}); !ok || f == nil {
		t.Error("implemented interface is not supported")
	}
	if _, ok := As[Metrics](ctx, "a", &Hub{}); ok {
		t.Error("interface is supported that is not implemented")
	}
}
