package adjust

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// writeAddresses writes out IPv4 addresses that are numbers.
func writeAddresses(attributes []otlpdata.KeyValue) {
	for i := range attributes {
		if kv := &attributes[i]; kv.Key == "ip" || kv.Key == "peer.ipv4" {
			kv.Value = dotted(kv.Value)
		}
	}
}

// dotted returns an IPv4 address that was sent as a number in its usual form.
func dotted(v otlpdata.Value) otlpdata.Value {
	var n uint32
	switch v.Kind() {
	case otlpdata.ValueInt:
		n = uint32(v.Int())
	case otlpdata.ValueDouble:
		n = uint32(int64(v.Double()))
	default:
		return v
	}
	return otlpdata.StringValue(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).String())
}

// isLibrary reports whether an attribute says which library made a span. Some libraries give it to
// every span.
func isLibrary(kv otlpdata.KeyValue) bool {
	if !strings.HasPrefix(kv.Key, "telemetry.") {
		return false
	}
	switch kv.Key {
	case "telemetry.sdk.language", "telemetry.sdk.name", "telemetry.sdk.version", "telemetry.distro.name", "telemetry.distro.version":
		return true
	}
	return false
}

// addWarnings adds texts to the attribute that carries warnings, which comes first where there was
// none. It may change attributes.
func addWarnings(attributes []otlpdata.KeyValue, texts []string) []otlpdata.KeyValue {
	if len(texts) == 0 {
		return attributes
	}
	isWarnings := func(kv otlpdata.KeyValue) bool {
		return kv.Key == WarningsKey && kv.Value.Kind() == otlpdata.ValueArray
	}
	i := slices.IndexFunc(attributes, isWarnings)
	if i < 0 {
		i = 0
		attributes = slices.Insert(attributes, 0, otlpdata.KeyValue{Key: WarningsKey})
	}
	list := []byte(attributes[i].Value.Encoded())
	for _, t := range texts {
		list = appendElement(list, t)
	}
	attributes[i].Value = otlpdata.EncodedValue(otlpdata.ValueArray, string(list))
	return attributes
}

// appendElement appends a string to an encoded ArrayValue: AnyValue values = 1, of which
// string_value = 1.
func appendElement(list []byte, text string) []byte {
	const room = 1
	list, outer := protoenc.BeginMessage(list, 1, room)
	list, inner := protoenc.BeginMessage(list, 1, room)
	list = protoenc.EndMessage(append(list, text...), inner, room)
	return protoenc.EndMessage(list, outer, room)
}

// SortAttributes sorts attributes by key; those with the same key stay in order. Spans have few,
// many of them in order already: they are sorted by inserting one index after the other, and moved
// once.
func SortAttributes(kvs []otlpdata.KeyValue) {
	const few = 32
	if len(kvs) > few {
		slices.SortStableFunc(kvs, func(a, b otlpdata.KeyValue) int { return cmp.Compare(a.Key, b.Key) })
		return
	}
	var order [few]uint8
	sorted := true
	for i := range kvs {
		to := i
		for ; to > 0 && kvs[order[to-1]].Key > kvs[i].Key; to-- {
			order[to] = order[to-1]
		}
		order[to] = uint8(i)
		sorted = sorted && to == i
	}
	if sorted {
		return
	}
	var before [few]otlpdata.KeyValue
	copy(before[:], kvs)
	for i := range kvs {
		kvs[i] = before[order[i]]
	}
}

// sorter returns sorted copies of what a walk hands out, valid until it is asked again.
type sorter struct {
	kvs    []otlpdata.KeyValue
	list   []otlpdata.Event
	nested []otlpdata.KeyValue
}

func (s *sorter) attributes(kvs []otlpdata.KeyValue) []otlpdata.KeyValue {
	s.kvs = append(s.kvs[:0], kvs...)
	SortAttributes(s.kvs)
	return s.kvs
}

func (s *sorter) events(events []otlpdata.Event) []otlpdata.Event {
	if len(events) == 0 {
		return nil
	}
	s.list = append(s.list[:0], events...)
	n := 0
	for i := range events {
		n += len(events[i].Attributes)
	}
	s.nested = slices.Grow(s.nested[:0], n) // so that it stays where it is
	for i := range s.list {
		e := &s.list[i]
		at := len(s.nested)
		s.nested = append(s.nested, e.Attributes...)
		e.Attributes = s.nested[at:len(s.nested):len(s.nested)]
		SortAttributes(e.Attributes)
	}
	return s.list
}

// small reports whether nothing takes more than n elements.
func (s *sorter) small(n int) bool { return cap(s.kvs) <= n && cap(s.list) <= n && cap(s.nested) <= n }

// forget drops what the copies refer to, and keeps their memory.
func (s *sorter) forget() {
	clear(s.kvs[:cap(s.kvs)])
	clear(s.list[:cap(s.list)])
	clear(s.nested[:cap(s.nested)])
}
