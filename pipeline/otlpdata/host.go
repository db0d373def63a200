package otlpdata

import (
	"encoding/hex"
	"net/netip"
)

// HostOf returns the id, address or name of the host in the attributes of a resource, or "" if
// there is none. Jaeger clients use the key `ip`, with a number or bytes as value.
func HostOf(attributes []KeyValue) string {
	for _, key := range [...]string{"host.id", "host.ip", "host.name", "ip"} {
		v, ok := Get(attributes, key)
		if !ok {
			continue
		}
		if text := hostText(v); text != "" {
			return text
		}
	}
	return ""
}

func hostText(v Value) string {
	switch v.Kind() {
	case ValueString:
		return v.Str()
	case ValueArray:
		for e := range v.Elements() {
			return e.Str()
		}
	case ValueInt:
		return DottedAddress(v).Str()
	case ValueBytes:
		if ip, ok := netip.AddrFromSlice(v.Bytes()); ok {
			return ip.String()
		}
		return hex.EncodeToString(v.Bytes())
	}
	return ""
}

// DottedAddress returns the dotted form of an IPv4 address that was sent as a number. It returns
// any other value as it is.
func DottedAddress(v Value) Value {
	var n uint32
	switch v.Kind() {
	case ValueInt:
		n = uint32(v.Int())
	case ValueDouble:
		n = uint32(int64(v.Double()))
	default:
		return v
	}
	return StringValue(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).String())
}
