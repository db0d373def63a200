package client

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// tokenMetadata is the metadata in which clients of the field send a user's token to services that pass it on.
const tokenMetadata = "bearer.token"

type tokenKey struct{}

// WithBearerToken returns a context of a read whose user has proved with this token who they are. Stores that are remote pass it on.
func WithBearerToken(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

// BearerToken returns the token of [WithBearerToken], or else the one that came in the metadata `bearer.token` of the call that ctx is of; ""
// where there is none, or several.
func BearerToken(ctx context.Context) string {
	if token, ok := ctx.Value(tokenKey{}).(string); ok {
		return token
	}
	if values := metadata.ValueFromIncomingContext(ctx, tokenMetadata); len(values) == 1 {
		return values[0]
	}
	return ""
}
