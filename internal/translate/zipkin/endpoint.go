package zipkin

import (
	"net/netip"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// endpoint is one side of a span. Absent fields are empty or 0.
type endpoint struct {
	service    string
	ipv4, ipv6 string // text; in JSON not necessarily in canonical form
	port       int64
}

// endpointKeys are the attributes for an endpoint. service is "" for the local endpoint, whose
// service belongs to the resource.
type endpointKeys struct{ service, ip, port string }

var (
	localKeys  = endpointKeys{ip: "net.host.ip", port: "net.host.port"}
	remoteKeys = endpointKeys{service: "peer.service", ip: "net.peer.ip", port: "net.peer.port"}
)

// appendEndpoint appends the attributes for e. If it has two addresses, only the IPv6 address is
// kept, as in other Zipkin receivers.
func (t *translator) appendEndpoint(dst []otlpdata.KeyValue, e *endpoint, keys *endpointKeys) []otlpdata.KeyValue {
	if e.service != "" && keys.service != "" {
		dst = append(dst, otlpdata.KeyValue{Key: keys.service, Value: otlpdata.StringValue(e.service)})
	}
	ip := e.ipv6
	if ip == "" {
		ip = e.ipv4
	}
	if ip != "" {
		dst = append(dst, otlpdata.KeyValue{Key: keys.ip, Value: otlpdata.StringValue(t.canonicalIP(ip))})
	}
	if e.port > 0 {
		dst = append(dst, otlpdata.KeyValue{Key: keys.port, Value: otlpdata.IntValue(e.port)})
	}
	return dst
}

// canonicalIP returns the canonical form of an address; IPv4-mapped IPv6 addresses become IPv4.
// Other text is returned unchanged.
func (t *translator) canonicalIP(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Is4() { // IPv4 has only one form
		return s
	}
	return t.ipText(a)
}

// ipText returns the text of an address. It is valid until the next span.
func (t *translator) ipText(a netip.Addr) string {
	from := len(t.text)
	t.text = a.Unmap().AppendTo(t.text)
	return unsafeString(t.text[from:])
}
