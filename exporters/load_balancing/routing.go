package loadbalancing

import (
	"encoding/binary"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Values of routing_key, named as in the OpenTelemetry Collector.
const (
	byTraceID    = "traceID"
	byService    = "service"
	byAttributes = "attributes"
)

// Names in routing_attributes that stand for fields of a span.
const (
	pseudoKind = "span.kind"
	pseudoName = "span.name"
)

// routing computes the keys by which spans are assigned to backends.
type routing struct {
	by         string
	attributes []string // for byAttributes
}

// key returns the key of a span.
func (r *routing) key(res *otlpdata.Resource, scope *otlpdata.Scope, s *otlpdata.Span) uint64 {
	switch r.by {
	case byService:
		return hashText(hashStart, res.Service).key()
	case byAttributes:
		return r.attributesKey(res, scope, s)
	}
	return traceKey(s.TraceID)
}

func traceKey(id otlpdata.TraceID) uint64 {
	return mix(binary.LittleEndian.Uint64(id[8:]) ^ mix(binary.LittleEndian.Uint64(id[:])))
}

// attributesKey returns the key for the values of all routing attributes. Each value comes from the
// resource, or else the scope, or else the span. A separator keeps adjacent values apart.
func (r *routing) attributesKey(res *otlpdata.Resource, scope *otlpdata.Scope, s *otlpdata.Span) uint64 {
	const separator = "\x00"
	h := hashStart
	for _, name := range r.attributes {
		switch name {
		case pseudoKind:
			h = hashText(h, string(rune(s.Kind)))
		case pseudoName:
			h = hashText(h, s.Name)
		default:
			if v, ok := find(name, res.Attributes, scope.Attributes, s.Attributes); ok {
				h = hashText(h, v.AsString())
			}
		}
		h = hashText(h, separator)
	}
	return h.key()
}

func find(name string, lists ...[]otlpdata.KeyValue) (otlpdata.Value, bool) {
	for _, kvs := range lists {
		if v, ok := otlpdata.Get(kvs, name); ok {
			return v, true
		}
	}
	return otlpdata.Value{}, false
}
