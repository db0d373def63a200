package password

import (
	"net/netip"
	"strings"
)

// forwardedHeader is the header in which a proxy appends the address of its client.
const forwardedHeader = "x-forwarded-for"

// Client returns the key under which the wrong passwords of a client are counted: its IPv4 address,
// the /64 network of its IPv6 address (one client has a whole network), or another address, such as
// that of a Unix socket, as it is. remote is the address of the connection. If it is a trusted
// proxy, the result is the last address in the header X-Forwarded-For that is none.
func (c *Checker) Client(remote string, header func(name string) []string) string {
	addr, ok := parseAddress(remote)
	if !ok {
		return remote
	}
	if c.trusted(addr) {
		hops := strings.Split(strings.Join(header(forwardedHeader), ","), ",")
		for i := len(hops) - 1; i >= 0 && c.trusted(addr); i-- {
			if addr, ok = parseAddress(strings.TrimSpace(hops[i])); !ok {
				return remote // clients can set the addresses before this one to any value
			}
		}
	}
	if addr.Is6() {
		return netip.PrefixFrom(addr, 64).Masked().String()
	}
	return addr.String()
}

func (c *Checker) trusted(a netip.Addr) bool {
	for _, p := range c.proxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// parseAddress parses an address with or without a port, without its zone.
func parseAddress(s string) (netip.Addr, bool) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	a, err := netip.ParseAddr(s)
	return a.Unmap().WithZone(""), err == nil
}
