package doctor

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// dial returns a connection to a gRPC listener of this installation.
func (x *examination) dial(l *listener) (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if on, _ := l.tls(); on {
		creds = credentials.NewTLS(x.tls.Clone())
	}
	return grpc.NewClient("passthrough:///"+l.hostPort(), grpc.WithTransportCredentials(creds))
}

// headerFor returns the headers of requests to a listener, of which one names the tenant.
func (x *examination) headerFor(l *listener) http.Header {
	tenancy, on := l.security.Tenancy.Get()
	if !on || x.tenant == "" {
		return x.header
	}
	header := x.header.Clone()
	header.Set(tenancy.Header, x.tenant)
	return header
}

// outgoing adds the headers for a listener to the context of a gRPC call.
func (x *examination) outgoing(ctx context.Context, l *listener) context.Context {
	for name, values := range x.headerFor(l) {
		for _, v := range values {
			ctx = metadata.AppendToOutgoingContext(ctx, strings.ToLower(name), v)
		}
	}
	return ctx
}

// unauthenticated says why this command cannot use a listener, or returns "".
func (x *examination) unauthenticated(l *listener) string {
	_, auth := l.security.Auth.Get()
	_, certificate := l.tls()
	tenancy, _ := l.security.Tenancy.Get()
	switch {
	case certificate && len(x.tls.Certificates) == 0:
		return "clients need a certificate; give --cert and --key"
	case auth && x.header.Get("Authorization") == "":
		return "clients must authenticate; give --header 'Authorization: Bearer ...'"
	case l.security.SeparatesTenants() && x.headerFor(l).Get(tenancy.Header) == "":
		return "requests must name a tenant; give --tenant"
	}
	return ""
}
