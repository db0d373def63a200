package grpcapi

import (
	"context"
	"net/http"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// PassTokens returns options of a server that adds the bearer token of each call to its context, as
// httpapi.PassToken does. The metadata key of client.BearerToken takes precedence.
func PassTokens(logger *zap.Logger) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			return next(withToken(ctx, logger), req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			return next(srv, streamOf{s, withToken(s.Context(), logger)})
		}),
	}
}

// withToken returns a context with the bearer token of a call, if it has one.
func withToken(ctx context.Context, logger *zap.Logger) context.Context {
	if client.BearerToken(ctx) != "" {
		return ctx
	}
	headers := http.Header{}
	for _, name := range []string{"Authorization", "X-Forwarded-Access-Token"} {
		headers[name] = metadata.ValueFromIncomingContext(ctx, name)
	}
	if token := httpapi.BearerToken(logger, headers); token != "" {
		return client.WithBearerToken(ctx, token)
	}
	return ctx
}

// streamOf is a stream with another context.
type streamOf struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s streamOf) Context() context.Context { return s.ctx }
