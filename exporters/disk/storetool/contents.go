package storetool

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// contents detects duplicates among the spans of a block: spans with identical tenant, resource,
// scope and content. It keeps a hash of each. Most traces are in one segment and need no hashes;
// contents therefore records spans only after enable.
type contents struct {
	enabled bool
	known   map[uint64]struct{}
	scratch []byte
}

// reset forgets all spans and stops recording.
func (c *contents) reset() {
	c.enabled = false
	clear(c.known)
}

// enable starts recording.
func (c *contents) enable() {
	c.enabled = true
	if c.known == nil {
		c.known = make(map[uint64]struct{})
	}
}

// add records a span and reports whether it is new. Until enable is called, every span is new.
func (c *contents) add(r *record) bool {
	if !c.enabled {
		return true
	}
	b := c.scratch[:0]
	for _, part := range [...]string{r.tenant, r.resource.SchemaURL, r.scope.SchemaURL} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	for _, part := range [...][]byte{r.resource.Raw, r.scope.Raw} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	b = otlpdata.AppendSpan(b, r.span)
	c.scratch = b
	h := xxhash.Sum64(b)
	if _, ok := c.known[h]; ok {
		return false
	}
	c.known[h] = struct{}{}
	return true
}
