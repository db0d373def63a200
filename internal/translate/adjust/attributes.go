package adjust

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// writeAddresses formats IPv4 addresses that were sent as numbers.
func writeAddresses(attributes []otlpdata.KeyValue) {
	for i := range attributes {
		if kv := &attributes[i]; kv.Key == "ip" || kv.Key == "peer.ipv4" {
			kv.Value = otlpdata.DottedAddress(kv.Value)
		}
	}
}

// isLibrary reports whether an attribute describes the tracing library. Some libraries add these
// attributes to every span.
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

// addWarnings adds texts to the warnings attribute, which it inserts at the front if it is missing.
// It may change attributes.
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

// appendElement appends a string to an encoded ArrayValue: field 1 is an AnyValue, whose field 1 is
// the string.
func appendElement(list []byte, text string) []byte {
	const reserved = 1
	list, outer := protoenc.BeginMessage(list, 1, reserved)
	list, inner := protoenc.BeginMessage(list, 1, reserved)
	list = protoenc.EndMessage(append(list, text...), inner, reserved)
	return protoenc.EndMessage(list, outer, reserved)
}

// SortAttributes sorts attributes by key; the sort is stable. Spans have few attributes, and many
// are already sorted. So short lists use an insertion sort on indexes and move each attribute at
// most once.
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

// sorter returns sorted copies of lists. They are valid until the next call.
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
	s.nested = slices.Grow(s.nested[:0], n) // appending must not move it
	for i := range s.list {
		e := &s.list[i]
		at := len(s.nested)
		s.nested = append(s.nested, e.Attributes...)
		e.Attributes = s.nested[at:len(s.nested):len(s.nested)]
		SortAttributes(e.Attributes)
	}
	return s.list
}

// small reports whether no list has a capacity above n.
func (s *sorter) small(n int) bool { return cap(s.kvs) <= n && cap(s.list) <= n && cap(s.nested) <= n }

// forget clears the lists and keeps their memory.
func (s *sorter) forget() {
	clear(s.kvs[:cap(s.kvs)])
	clear(s.list[:cap(s.list)])
	clear(s.nested[:cap(s.nested)])
}
