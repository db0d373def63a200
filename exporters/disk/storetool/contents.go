package storetool

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// contents tells spans of one trace that are the same in all they have from others: by the hash of tenant, resource, scope and span. Most
// traces are in one segment and need no hashes, so it begins to remember only when it is told to.
type contents struct {
	on      bool
	known   map[uint64]struct{}
	scratch []byte
}

// forget is for the next trace.
func (c *contents) forget() {
	c.on = false
	clear(c.known)
}

// begin lets add remember.
func (c *contents) begin() {
	c.on = true
	if c.known == nil {
		c.known = make(map[uint64]struct{})
	}
}

// add reports whether a span is new, and remembers it.
func (c *contents) add(r *record) bool {
	if !c.on {
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
