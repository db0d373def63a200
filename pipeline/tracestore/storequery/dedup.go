package storequery

import (
	"bytes"
	"cmp"
	"hash/maphash"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Dedup detects duplicates: spans with identical encodings of resource, scope and span (which
// includes both ids) and identical schema URLs. It retains the encoded bytes of all spans that it
// has seen. A Dedup is not safe for concurrent use.
type Dedup struct {
	seed  maphash.Seed
	heads map[uint64]int // hash -> 1 + index of the latest identity with it
	seen  []identity
}

// identity holds the parts that two duplicates have in common. prev is 1 + the index of an earlier
// identity with the same hash.
type identity struct {
	resource, scope, span []byte
	resourceURL, scopeURL string
	prev                  int
}

// NewDedup returns a Dedup that has seen nothing.
func NewDedup() *Dedup {
	return &Dedup{seed: maphash.MakeSeed(), heads: make(map[uint64]int)}
}

// First reports whether First was not called with a duplicate of s before.
func (d *Dedup) First(s tracestore.Span) bool {
	id := identityOf(s)
	h := maphash.Bytes(d.seed, id.span)
	for i := d.heads[h]; i != 0; i = d.seen[i-1].prev {
		if d.seen[i-1].equal(&id) {
			return false
		}
	}
	id.prev = d.heads[h]
	d.seen = append(d.seen, id)
	d.heads[h] = len(d.seen)
	return true
}

func identityOf(s tracestore.Span) identity {
	return identity{
		resource: s.Resource.Raw, resourceURL: s.Resource.SchemaURL,
		scope: s.Scope.Raw, scopeURL: s.Scope.SchemaURL, span: s.Raw,
	}
}

// compare orders identities by resource and scope. It ignores the span.
func (a *identity) compare(b *identity) int {
	return cmp.Or(bytes.Compare(a.resource, b.resource), bytes.Compare(a.scope, b.scope), cmp.Compare(a.resourceURL, b.resourceURL),
		cmp.Compare(a.scopeURL, b.scopeURL))
}

func (a *identity) equal(b *identity) bool {
	return bytes.Equal(a.span, b.span) && bytes.Equal(a.resource, b.resource) && bytes.Equal(a.scope, b.scope) &&
		a.resourceURL == b.resourceURL && a.scopeURL == b.scopeURL
}
