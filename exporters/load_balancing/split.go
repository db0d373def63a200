package loadbalancing

import (
	"errors"

	"github.com/tracing-backend/tracing/internal/otlpparts"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// part holds the spans of a batch that belong to one backend.
type part struct {
	backend int // index in the ring
	batch   *otlpdata.Batch
}

// soleBackend returns the backend of all spans of a batch, or false if they belong to several. The
// batch must have spans, and the ring backends.
func soleBackend(b *otlpdata.Batch, ring ring, by *routing) (int, bool, error) {
	if len(ring.seeds) == 1 {
		return 0, true, nil
	}
	s := &splitter{ring: ring, by: by}
	switch err := b.Walk(s); err {
	case nil:
		return s.lastPart, true, nil
	case errSeveral:
		return 0, false, nil
	default:
		return 0, false, err
	}
}

// divide divides a batch by backend. Spans keep their bytes, their resource and their scope. grow
// is called before a resource or scope is repeated in another part, with its size in bytes.
func divide(b *otlpdata.Batch, ring ring, by *routing, grow func(bytes int) error) ([]part, error) {
	s := &splitter{ring: ring, by: by, parts: make([]otlpparts.Writer, len(ring.seeds)), share: b.Size() / len(ring.seeds),
		position: otlpparts.Position{Grow: grow}}
	if err := b.Walk(s); err != nil {
		return nil, err
	}
	var parts []part
	for i := range s.parts {
		if s.parts[i].Empty() {
			continue
		}
		request, services := s.parts[i].Finish()
		parts = append(parts, part{i, otlpdata.FromStored(request, b.Meta(), services...)})
	}
	return parts, nil
}

// errSeveral ends a walk that looks for a sole backend.
var errSeveral = errors.New("spans of several backends")

// splitter is the visitor that copies each span to the part of its backend. Without parts, it stops
// at the first span of a second backend.
type splitter struct {
	ring  ring
	by    *routing
	parts []otlpparts.Writer
	share int // bytes of a part, if all are equal

	position otlpparts.Position
	lastKey  uint64
	lastPart int
	lastSet  bool
}

// Resource implements otlpdata.Visitor.
func (s *splitter) Resource(r *otlpdata.Resource) error {
	s.position.SetResource(r)
	return nil
}

// Scope implements otlpdata.Visitor.
func (s *splitter) Scope(scope *otlpdata.Scope) error {
	s.position.SetScope(scope)
	return nil
}

// Span implements otlpdata.Visitor. Neighbors often have the same key.
func (s *splitter) Span(span *otlpdata.Span) error {
	key := s.by.key(s.position.Resource, s.position.Scope, span)
	if !s.lastSet || key != s.lastKey {
		target := s.ring.pick(key)
		if s.parts == nil && s.lastSet && target != s.lastPart {
			return errSeveral
		}
		s.lastKey, s.lastPart, s.lastSet = key, target, true
	}
	if s.parts != nil {
		return s.parts[s.lastPart].Add(&s.position, span, s.share)
	}
	return nil
}
