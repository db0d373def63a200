package zipkin

import (
	"encoding/hex"
	"net/netip"
	"strconv"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

const (
	unknownV1Service = "unknown-service"
	absentStartTime  = "otel.zipkin.absentField.startTime"
)

// writeV1 writes the span t.in by the rules for HTTP, into the open resource if its service is the
// same.
func (t *v1Translator) writeV1() error {
	in, out := &t.in, &t.span
	if err := t.beginSpan(debugOverHTTP); err != nil {
		return err
	}
	t.readV1Annotations()
	component := t.readV1Tags()
	if in.timestamp > 0 {
		out.Start, out.End = nanos(in.timestamp), nanos(native.AddSaturating(in.timestamp, in.duration))
	}
	if out.Start == 0 && t.useNow {
		now := uint64(max(t.opt.Now.UnixNano(), 0))
		out.Start, out.End = now, now
		out.Attributes = append(out.Attributes, otlpdata.KeyValue{Key: absentStartTime, Value: otlpdata.BoolValue(true)})
	}
	t.beginV1Service(in.service(component))
	t.endSpan()
	return nil
}

// readV1Annotations sets the kind and the events from the annotations, and the times from the
// earliest and the latest annotation.
func (t *v1Translator) readV1Annotations() {
	out := &t.span
	for i := range t.in.annotations {
		a := &t.in.annotations[i]
		at := nanos(a.time)
		if at > 0 && (out.Start == 0 || at < out.Start) {
			out.Start = at
		}
		out.End = max(out.End, at)
		switch kind := coreKind(a.value); {
		case kind == otlpdata.KindUnspecified:
			out.Events = append(out.Events, otlpdata.Event{Time: at, Name: a.value})
		case out.Kind == otlpdata.KindUnspecified:
			out.Kind = kind
		}
	}
}

// readV1Tags sets the attributes and the status from the binary annotations. It returns the local
// component.
func (t *v1Translator) readV1Tags() (component string) {
	out := &t.span
	var status v1Status
	for i := range t.in.tags {
		kv := t.in.tags[i].KeyValue
		switch {
		case kv.Key == "":
			continue
		case kv.Key == localComponent:
			kv.Key = "component"
			component = kv.Value.AsString()
		case status.takeAttribute(&kv):
			continue
		}
		out.Attributes = append(out.Attributes, kv)
	}
	status.apply(out)
	return component
}

// service returns the service that emitted the span, with its addresses if a core annotation names
// it. Other annotations and tags give only the name, because their addresses may belong to peers.
func (s *v1Span) service(component string) v1Host {
	for i := range s.annotations {
		if h := &s.hosts[s.annotations[i].host]; h.service != "" && coreKind(s.annotations[i].value) != otlpdata.KindUnspecified {
			return *h
		}
	}
	for i := len(s.tags) - 1; i >= 0; i-- {
		if name := s.hosts[s.tags[i].host].service; name != "" {
			return named(name)
		}
	}
	if component != "" {
		return named(component)
	}
	return named(unknownV1Service)
}

func named(service string) v1Host { return v1Host{endpoint: endpoint{service: service}} }

// beginV1Service begins the resource of the service unless it is the open one.
func (t *v1Translator) beginV1Service(h v1Host) {
	if t.opened && t.service == h {
		return
	}
	t.opened, t.service = true, h
	t.resource = append(t.resource[:0], text("service.name", h.service))
	ipv4, ipv6 := h.ipv4, h.ipv6
	if h.packed {
		ipv4, ipv6 = t.unpackAddresses(&h)
	}
	if ipv4 != "" {
		t.resource = append(t.resource, text("ipv4", ipv4))
	}
	if ipv6 != "" {
		t.resource = append(t.resource, text("ipv6", ipv6))
	}
	if h.port != 0 {
		from := len(t.text)
		t.text = strconv.AppendInt(t.text, h.port, 10)
		t.resource = append(t.resource, text("port", unsafeString(t.text[from:])))
	}
	t.out.Resource(t.resource)
}

// unpackAddresses returns the texts of the addresses of a host.
func (t *v1Translator) unpackAddresses(h *v1Host) (ipv4, ipv6 string) {
	if n := h.packedIPv4; n != 0 {
		from := len(t.text)
		t.text = netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).AppendTo(t.text)
		ipv4 = unsafeString(t.text[from:])
	}
	if h.ipv6 != "" {
		from := len(t.text)
		t.text = appendAddress(t.text, unsafeBytes(h.ipv6))
		ipv6 = unsafeString(t.text[from:])
	}
	return ipv4, ipv6
}

// appendAddress appends the text of a packed address, or the bytes in hexadecimal if they are not
// an address.
func appendAddress(dst, packed []byte) []byte {
	if addr, ok := netip.AddrFromSlice(packed); ok {
		return addr.Unmap().AppendTo(dst)
	}
	return hex.AppendEncode(append(dst, '?'), packed)
}
