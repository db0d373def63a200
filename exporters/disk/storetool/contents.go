package storetool

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// contents detects duplicates: spans with identical tenant, resource, scope and content. It keeps a
// hash of each span.
type contents struct {
	known   map[uint64]struct{}
	scratch []byte
}

// reset forgets all spans.
func (c *contents) reset() {
	if c.known == nil {
		c.known = map[uint64]struct{}{}
	}
	clear(c.known)
}

// add adds a span and reports whether it is new.
func (c *contents) add(r *record) bool {
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
