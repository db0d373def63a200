package strategies

import (
	"context"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Client returns the client of the gRPC call that ctx belongs to, with the given address.
func Client(ctx context.Context, address string) sampling.Client {
	return sampling.Client{Address: address, Transport: sampling.TransportGRPC,
		UserAgent: strings.Join(metadata.ValueFromIncomingContext(ctx, "user-agent"), " ")}
}
