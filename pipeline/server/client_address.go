package server

import (
	"context"
	"net"
	"net/netip"
)

type clientKey struct{}

// withClient is http.Server.ConnContext. It adds the address of the client, once per connection.
func withClient(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, clientKey{}, conn.RemoteAddr())
}

// Client returns the IPv4 address, or the /64 network of the IPv6 address (one client has a whole
// network), from which the request with the context ctx was sent. It is "" if the address is
// unknown, for example because the client uses a Unix socket.
func Client(ctx context.Context) string {
	address := remoteAddress(ctx)
	if a, ok := ctx.Value(clientKey{}).(net.Addr); ok {
		address = a.String()
	}
	ap, err := netip.ParseAddrPort(address)
	switch addr := ap.Addr().Unmap().WithZone(""); {
	case err != nil:
		return ""
	case addr.Is6():
		return netip.PrefixFrom(addr, 64).Masked().String()
	default:
		return addr.String()
	}
}
