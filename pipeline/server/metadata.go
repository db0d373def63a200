package server

import (
	"context"
	"maps"
	"net/http"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

type metadataKey struct{}

// Metadata returns the headers of the request with the context ctx, if its listener keeps them
// (include_metadata), and none otherwise. They have at most 32 KiB, the limit for the headers of a
// request.
func Metadata(ctx context.Context) otlpdata.Metadata {
	headers, ok := ctx.Value(metadataKey{}).(map[string][]string)
	if !ok {
		return otlpdata.Metadata{}
	}
	return otlpdata.NewMetadata(headers)
}

// withMetadata returns a context with headers, which must not be changed afterwards.
func withMetadata(ctx context.Context, headers map[string][]string) context.Context {
	return context.WithValue(ctx, metadataKey{}, headers)
}

// requestHeaders returns the headers of a request, with its host.
func requestHeaders(r *http.Request) map[string][]string {
	headers := maps.Clone(map[string][]string(r.Header))
	if headers == nil {
		headers = map[string][]string{}
	}
	if _, ok := headers["Host"]; !ok && r.Host != "" {
		headers["Host"] = []string{r.Host}
	}
	return headers
}
