package remotestorage

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline/server"
)

// maxTenant is the maximum length of the name of a tenant in bytes, because it is part of storage
// keys.
const maxTenant = 256

// tenants returns the tenant of a call.
type tenants struct {
	header string // "" if the listener determines the tenant
}

func (t tenants) of(ctx context.Context) (string, error) {
	if t.header == "" {
		return server.Tenant(ctx), nil
	}
	values := metadata.ValueFromIncomingContext(ctx, t.header)
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", status.Error(codes.PermissionDenied, "extra tenant header")
	case len(values[0]) > maxTenant:
		return "", status.Error(codes.PermissionDenied, "unknown tenant")
	}
	return values[0], nil
}
