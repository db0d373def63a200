package server

import (
	"context"
	"net"
)

type clientKey struct{}

// withClient is http.Server.ConnContext. It adds the address of the client, once per connection.
func withClient(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, clientKey{}, conn.RemoteAddr())
}

// Client returns the IP address of the client of the request with the context ctx, or "" if it is
// unknown, for example because the client uses a Unix socket.
func Client(ctx context.Context) string {
	address := remoteAddress(ctx)
	if a, ok := ctx.Value(clientKey{}).(net.Addr); ok {
		address = a.String()
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	return host
}
