package zipkin

import (
	"net/netip"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// endpoint is one side of a span. What it lacks is empty or 0.
type endpoint struct {
	service    string
	ipv4, ipv6 string // text, of any form in JSON
	port       int64
}

// endpointKeys are the attributes that an endpoint becomes; service is "" for the local one, whose service is the resource's.
type endpointKeys struct{ service, ip, port string }

var (
	localKeys  = endpointKeys{ip: "net.host.ip", port: "net.host.port"}
	remoteKeys = endpointKeys{service: "peer.service", ip: "net.peer.ip", port: "net.peer.port"}
)

// appendEndpoint appends the attributes of e. Of two addresses only the IPv6 one is told, as Zipkin receivers always did.
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

// canonicalIP returns an address in its one usual form, IPv4 also where it was mapped to IPv6. What is no address stays as it is.
func (t *translator) canonicalIP(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Is4() { // IPv4 has no other form
		return s
	}
	return t.ipText(a)
}

// ipText returns the text of an address, valid until the next span.
func (t *translator) ipText(a netip.Addr) string {
	from := len(t.text)
	t.text = a.Unmap().AppendTo(t.text)
	return alias(t.text[from:])
}
