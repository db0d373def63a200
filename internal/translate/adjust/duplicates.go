package adjust

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// dropDuplicates marks spans that are equal to an earlier span as dropped. Only spans with a shared
// id are compared.
func (p *plan) dropDuplicates(batches []*otlpdata.Batch) error {
	return walkAll(batches, &deduplicator{plan: p, seen: make(map[[sha256.Size]byte]struct{})})
}

// deduplicator hashes the content of spans that share an id. Every part of the hashed data is
// preceded by its length.
type deduplicator struct {
	plan     *plan
	at       int
	seen     map[[sha256.Size]byte]struct{}
	sorter   sorter
	resource []byte // content of the current resource
	scope    []byte
	span     []byte
}

// Resource sets the current resource.
func (d *deduplicator) Resource(r *otlpdata.Resource) error {
	d.resource = appendText(d.resource[:0], r.SchemaURL)
	d.resource = appendList(d.resource, d.sorter.attributes(r.Attributes))
	return nil
}

// Scope sets the current scope.
func (d *deduplicator) Scope(s *otlpdata.Scope) error {
	d.scope = appendText(appendText(appendText(d.scope[:0], s.SchemaURL), s.Name), s.Version)
	d.scope = appendList(d.scope, d.sorter.attributes(s.Attributes))
	return nil
}

// Span marks the span if an equal one was seen.
func (d *deduplicator) Span(s *otlpdata.Span) error {
	n := &d.plan.nodes[d.at]
	d.at++
	if !n.shared {
		return nil
	}
	sorted := *s
	sorted.Attributes = d.sorter.attributes(s.Attributes)
	sorted.Events = d.sorter.events(s.Events)
	d.span = append(append(d.span[:0], d.resource...), d.scope...)
	d.span = otlpdata.AppendSpan(d.span, &sorted)
	key := sha256.Sum256(d.span)
	_, n.dropped = d.seen[key]
	d.seen[key] = struct{}{}
	return nil
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendList(dst []byte, kvs []otlpdata.KeyValue) []byte {
	before := len(dst)
	dst = otlpdata.AppendAttributes(dst, kvs)
	return binary.BigEndian.AppendUint64(dst, uint64(len(dst)-before))
}
