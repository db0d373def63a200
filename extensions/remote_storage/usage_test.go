package remotestorage

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/translate/storewire"
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
	conn, _ := serveFull(t, usageStore{&store{}}, nil)
	u, err := answerTo[tracestore.Usage](t.Context(), conn, "Usage", &storewire.Usage{})
	if want, _ := (usageStore{}).Usage(t.Context(), ""); err != nil || !u.Oldest.Equal(want.Oldest) || u.Bytes != 1 || u.MaxBytes != 2 ||
		u.Retention != 3 {
		t.Errorf("%v %v", u, err)
	}
	conn, _ = serveFull(t, usageStore{&store{}}, func(c *Config) {
		c.Tenancy = pipeline.Present(server.TenancyConfig{Enabled: true, Header: "x-tenant"})
	})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "a")
	if _, err := answerTo[tracestore.Usage](ctx, conn, "Usage", &storewire.Usage{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("with tenants: %v", err)
	}
}
