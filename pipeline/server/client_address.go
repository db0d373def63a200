package server

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

type clientKey struct{}

// Client returns the IPv4 address, or the /64 network of the IPv6 address (one client has a whole
// network), from which the request with the context ctx was sent, see trusted_proxies. It is "" if
// the address is unknown, for example because the client uses a Unix socket, and for requests that
// need no credentials, see [HTTP.SetPublic].
func Client(ctx context.Context) string { return network(clientAddress(ctx)) }

// ClientAddress is like [Client] but returns the whole IPv6 address.
func ClientAddress(ctx context.Context) string {
	if addr := clientAddress(ctx); addr.IsValid() {
		return addr.String()
	}
	return ""
}

func clientAddress(ctx context.Context) netip.Addr {
	addr, _ := ctx.Value(clientKey{}).(netip.Addr)
	return addr
}

// WithClient returns the context of a request from addr. Listeners use it for each request.
func WithClient(ctx context.Context, addr netip.Addr) context.Context {
	return context.WithValue(ctx, clientKey{}, addr)
}

// network returns what [Client] returns for an address.
func network(addr netip.Addr) string {
	switch {
	case addr.Is6():
		return netip.PrefixFrom(addr, 64).Masked().String()
	case addr.IsValid():
		return addr.String()
	}
	return ""
}

// forwardedHeader is the header in which a proxy appends the address of its client.
const forwardedHeader = "X-Forwarded-For"

// proxies are the networks of trusted_proxies.
type proxies []netip.Prefix

// describe returns the client address of a request for the log: the peer of the connection, with
// its port, unless a trusted proxy reports another address.
func (ps proxies) describe(remote string, header func(name string) []string) string {
	if addr := ps.address(remote, header); addr != parseAddress(remote) {
		return addr.String()
	}
	return remote
}

// address returns the address of the client of a request, or the zero address if it is unknown.
// remote is the address of the connection. If it is a trusted proxy, the client is the last address
// in X-Forwarded-For that is not a trusted proxy: the addresses before it are set by clients and
// may be anything.
func (ps proxies) address(remote string, header func(name string) []string) netip.Addr {
	addr := parseAddress(remote)
	if !ps.trust(addr) {
		return addr
	}
	hops := strings.Split(strings.Join(header(forwardedHeader), ","), ",")
	for _, hop := range slices.Backward(hops) {
		next := parseAddress(strings.TrimSpace(hop))
		if !next.IsValid() {
			break // the client of this proxy is unknown
		}
		if addr = next; !ps.trust(addr) {
			break
		}
	}
	return addr
}

func (ps proxies) trust(addr netip.Addr) bool {
	return slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// parseAddress parses an address with or without a port, without its zone. It returns the zero
// address if there is none.
func parseAddress(s string) netip.Addr {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	addr, err := netip.ParseAddr(strings.Trim(s, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}

// mappedBits is the length of ::ffff:0.0.0.0/96, the network of IPv4 addresses written as IPv6.
const mappedBits = 96

// parseProxies parses trusted_proxies: addresses, and networks in CIDR notation. IPv4 ones may be
// written as IPv6.
func parseProxies(texts []string) (proxies, error) {
	var ps proxies
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			addr, err := netip.ParseAddr(text)
			if err != nil {
				return nil, pipeline.BadKey("trusted_proxies", "%q is neither an address nor a network; write 10.0.0.1 or 10.0.0.0/8", text)
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		if p.Addr().Is4In6() {
			if p.Bits() < mappedBits {
				return nil, pipeline.BadKey("trusted_proxies", "%q is not an IPv4 network; write 10.0.0.0/8", text)
			}
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mappedBits)
		}
		ps = append(ps, p.Masked())
	}
	return ps, nil
}

// checkProxies reports values of trusted_proxies that are not networks.
func checkProxies(texts []string) error {
	_, err := parseProxies(texts)
	return err
}
