package otlpdata

import (
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Metadata holds the headers of the request that contained the spans, if its receiver keeps them
// (include_metadata). It is immutable and comparable with ==. The zero value has no headers.
type Metadata struct {
	// For each header, sorted by name: name, number of values, values. Each text is preceded by its
	// length. Numbers are varints.
	encoded string
}

// NewMetadata returns the headers with lower-case names.
func NewMetadata(headers map[string][]string) Metadata {
	lower := make(map[string][]string, len(headers))
	for name, values := range headers {
		name = strings.ToLower(name)
		lower[name] = append(lower[name], values...)
	}
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(lower)) {
		b = appendHeader(b, name, lower[name])
	}
	return Metadata{string(b)}
}

func appendHeader(b []byte, name string, values []string) []byte {
	b = appendText(b, name)
	b = binary.AppendUvarint(b, uint64(len(values)))
	for _, v := range values {
		b = appendText(b, v)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// All ranges over the headers, sorted by name. Names are in lower case.
func (m Metadata) All() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		rest := m.encoded
		number := func() uint64 {
			n, size := binary.Uvarint(unsafeBytes(rest[:min(len(rest), binary.MaxVarintLen64)]))
			rest = rest[size:]
			return n
		}
		text := func() (s string) {
			n := number()
			s, rest = rest[:n], rest[n:]
			return s
		}
		for rest != "" {
			name, values := text(), make([]string, number())
			for i := range values {
				values[i] = text()
			}
			if !yield(name, values) {
				return
			}
		}
	}
}

// Size returns the memory of the headers in bytes.
func (m Metadata) Size() int { return len(m.encoded) }

// Only returns the headers with the given names, which are in lower case.
func (m Metadata) Only(names []string) Metadata {
	if m.encoded == "" || len(names) == 0 {
		return Metadata{}
	}
	var b []byte
	for name, values := range m.All() {
		if slices.Contains(names, name) {
			b = appendHeader(b, name, values)
		}
	}
	return Metadata{string(b)}
}

// WithMetadata returns the batch with other metadata. Both share the spans.
func (b *Batch) WithMetadata(m Metadata) *Batch {
	if b.meta.Metadata == m {
		return b
	}
	meta := b.meta
	meta.Metadata = m
	b.mu.Lock()
	defer b.mu.Unlock()
	return &Batch{meta: meta, services: b.services, spans: b.spans, size: b.size, walk: b.walk, encoded: b.encoded, decoded: b.decoded,
		hasDecoded: b.hasDecoded}
}
