package tracestore

import (
	"context"
	"reflect"
	"testing"
	"time"
)

// remoteStore supports Dependencies of itself, and Peers for one tenant.
type remoteStore struct{ Dependencies }

func (r remoteStore) Peers(context.Context, string, time.Time, time.Time) (Graph, error) {
	return Graph{}, nil
}

func (r remoteStore) Provide(_ context.Context, tenant string, want reflect.Type) any {
	if want == reflect.TypeFor[Peers]() && tenant == "a" {
		return r
	}
	return nil
}

// TestAs checks that a Provider decides what it supports, and that the methods of other stores do.
func TestAs(t *testing.T) {
	ctx := t.Context()
	if p, ok := As[Peers](ctx, "a", remoteStore{}); !ok {
		t.Error("provided interface is not supported")
	} else if g, err := p.Peers(ctx, "a", time.Time{}, time.Time{}); err != nil || !g.Complete() {
		t.Errorf("Peers: %+v, %v", g, err)
	}
	if _, ok := As[Peers](ctx, "b", remoteStore{}); ok {
		t.Error("interface is supported for a tenant for which it is not provided")
	}
	for tenant, want := range map[string]bool{"a": true, "b": false} {
		if Supports(ctx, tenant, remoteStore{}, reflect.TypeFor[Peers]()) != want {
			t.Errorf("Supports of tenant %s: want %t", tenant, want)
		}
	}
	if _, ok := As[Dependencies](ctx, "a", remoteStore{}); ok {
		t.Error("interface is supported that is implemented but not provided")
	}
	if f, ok := As[Follower](ctx, "a", &Hub{}); !ok || f == nil {
		t.Error("implemented interface is not supported")
	}
	if _, ok := As[Metrics](ctx, "a", &Hub{}); ok {
		t.Error("interface is supported that is not implemented")
	}
}
