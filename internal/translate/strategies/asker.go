package strategies

import (
	"context"
	"net"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Asker returns who makes the gRPC call of a handler.
func Asker(ctx context.Context) sampling.Asker {
	a := sampling.Asker{Transport: sampling.TransportGRPC, Client: strings.Join(metadata.ValueFromIncomingContext(ctx, "user-agent"), " ")}
	if p, ok := peer.FromContext(ctx); ok {
		a.Address = p.Addr.String()
		if host, _, err := net.SplitHostPort(a.Address); err == nil {
			a.Address = host
		}
	}
	return a
}
