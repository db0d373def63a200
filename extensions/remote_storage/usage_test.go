package remotestorage

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// usageStore is a store that tells what it holds.
type usageStore struct{ *store }

// Usage implements tracestore.UsageReporter.
func (usageStore) Usage(context.Context, string) (tracestore.Usage, error) {
	return tracestore.Usage{Oldest: time.Unix(7, 8), Bytes: 1, MaxBytes: 2, Retention: 3}, nil
}

// TestUsage checks that clients are told what the store holds, unless they are single tenants.
func TestUsage(t *testing.T) {
	client, _ := serveFull(t, usageStore{&store{}}, nil)
	u, err := client.Usage(t.Context(), &store_v1.UsageRequest{})
	if err != nil || u.GetOldest().GetSeconds() != 7 || u.GetBytes() != 1 || u.GetMaxBytes() != 2 || u.GetRetention() != 3 {
		t.Errorf("%v %v", u, err)
	}
	client, _ = serveFull(t, usageStore{&store{}}, func(c *Config) {
		c.Tenancy = pipeline.Present(server.TenancyConfig{Enabled: true, Header: "x-tenant"})
	})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "a")
	if _, err := client.Usage(ctx, &store_v1.UsageRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("with tenants: %v", err)
	}
}
