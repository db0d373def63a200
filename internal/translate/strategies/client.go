package strategies

import (
	"context"
	"net"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Client returns the client of the gRPC call that ctx belongs to.
func Client(ctx context.Context) sampling.Client {
	a := sampling.Client{Transport: sampling.TransportGRPC,
		UserAgent: strings.Join(metadata.ValueFromIncomingContext(ctx, "user-agent"), " ")}
	if p, ok := peer.FromContext(ctx); ok {
		a.Address = p.Addr.String()
		if host, _, err := net.SplitHostPort(a.Address); err == nil {
			a.Address = host
		}
	}
	return a
}
