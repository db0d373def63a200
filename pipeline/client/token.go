package client

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// tokenMetadata is the metadata key with which existing clients send the token of a user to
// services that forward it.
const tokenMetadata = "bearer.token"

type tokenKey struct{}

// WithBearerToken returns a context with the token of the authenticated user of a read. Remote
// stores forward the token.
func WithBearerToken(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

// BearerToken returns the token set by [WithBearerToken] or, without one, the value of the metadata
// key `bearer.token` of the incoming gRPC call. It returns "" if there is no token or more than
// one.
func BearerToken(ctx context.Context) string {
	if token, ok := ctx.Value(tokenKey{}).(string); ok {
		return token
	}
	if values := metadata.ValueFromIncomingContext(ctx, tokenMetadata); len(values) == 1 {
		return values[0]
	}
	return ""
}
