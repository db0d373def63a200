package zipkin

import (
	"net/netip"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// outEndpoint is one side of a v2 span.
type outEndpoint struct {
	service string
	address netip.Addr // invalid if there is none
	port    uint16     // 0 if there is none
}

func (e *outEndpoint) isEmpty() bool { return e.service == "" && !e.address.IsValid() }

// peerNames are the attributes that may name the peer of a span, in order of preference, after
// peer.service. They remain tags.
var peerNames = [...]string{"service.peer.name", "server.address", "net.peer.name", "server.socket.domain", "net.sock.peer.name",
	"peer.hostname", "peer.address", "db.name"}

// endpoints sets both endpoints from attributes of the span. The attributes that the receiver of an
// endpoint restores do not become tags.
//
// Zipkin draws a call to a peer without spans of its own only if the endpoint has a name. For the
// kinds of spans that call others, further attributes are used as the OpenTelemetry specification
// says.
func (o *outgoing) endpoints(s *otlpdata.Span) {
	local, remote := &o.span.local, &o.span.remote
	local.service = o.service
	o.address(local, s, localKeys)
	if v, _ := otlpdata.Get(s.Attributes, remoteKeys.service); v.Str() != "" {
		remote.service = v.Str()
		o.omit(remoteKeys.service)
	}
	if s.Kind == otlpdata.KindClient || s.Kind == otlpdata.KindProducer {
		remote.service = peerName(s, remote.service)
	}
	o.address(remote, s, remoteKeys)
}

func peerName(s *otlpdata.Span, name string) string {
	for i := 0; i < len(peerNames) && name == ""; i++ {
		v, _ := otlpdata.Get(s.Attributes, peerNames[i])
		name = v.Str()
	}
	return name
}

// address sets address and port. Text that is not an address remains a tag, as does a port without
// an address or a name.
func (o *outgoing) address(e *outEndpoint, s *otlpdata.Span, keys endpointKeys) {
	ip, _ := otlpdata.Get(s.Attributes, keys.ip)
	if a, err := netip.ParseAddr(ip.Str()); err == nil {
		e.address = a.WithZone("").Unmap()
		if e.address.String() == ip.Str() {
			o.omit(keys.ip)
		}
	}
	port, _ := otlpdata.Get(s.Attributes, keys.port)
	if n, err := strconv.ParseUint(port.AsString(), 10, 16); err == nil && n > 0 && !e.isEmpty() {
		e.port = uint16(n)
		o.omit(keys.port)
	}
}
