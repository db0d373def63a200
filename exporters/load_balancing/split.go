package loadbalancing

import (
	"errors"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
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
	s := &splitter{ring: ring, by: by, parts: make([]partWriter, len(ring.seeds)), share: b.Size() / len(ring.seeds), grow: grow}
	if err := b.Walk(s); err != nil {
		return nil, err
	}
	var parts []part
	for i := range s.parts {
		w := &s.parts[i]
		if w.out == nil {
			continue
		}
		w.endResource()
		parts = append(parts, part{i, otlpdata.FromStored(w.out, b.Meta(), w.services...)})
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
	parts []partWriter
	share int // bytes of a part, if all are equal

	grow func(bytes int) error

	resource          *otlpdata.Resource
	scope             *otlpdata.Scope
	resources, scopes int  // seen so far
	resourceWritten   bool // to a part
	scopeWritten      bool
	lastKey           uint64
	lastPart          int
	lastSet           bool
}

// Resource implements otlpdata.Visitor.
func (s *splitter) Resource(r *otlpdata.Resource) error {
	s.resource, s.resourceWritten = r, false
	s.resources++
	return nil
}

// Scope implements otlpdata.Visitor.
func (s *splitter) Scope(scope *otlpdata.Scope) error {
	s.scope, s.scopeWritten = scope, false
	s.scopes++
	return nil
}

// Span implements otlpdata.Visitor. Neighbors often have the same key.
func (s *splitter) Span(span *otlpdata.Span) error {
	key := s.by.key(s.resource, s.scope, span)
	if !s.lastSet || key != s.lastKey {
		target := s.ring.pick(key)
		if s.parts == nil && s.lastSet && target != s.lastPart {
			return errSeveral
		}
		s.lastKey, s.lastPart, s.lastSet = key, target, true
	}
	if s.parts != nil {
		return s.parts[s.lastPart].add(s, span)
	}
	return nil
}

// partWriter writes the encoded request of one part.
type partWriter struct {
	out      []byte
	services []otlpdata.ServiceCount // one for each resource

	resource, scope             int // numbers of the open messages; 0: none
	resourceAt, scopeAt         int // positions of their contents
	resourceSchema, scopeSchema string
}

// reserved is the number of bytes for the length of a message before it is known.
const reserved = 2

func (w *partWriter) add(s *splitter, span *otlpdata.Span) error {
	if w.resource != s.resources {
		w.endResource()
		if err := s.reserve(&s.resourceWritten, s.resource.Raw, s.resource.SchemaURL); err != nil {
			return err
		}
		w.beginResource(s)
	}
	if w.scope != s.scopes {
		w.endScope()
		if err := s.reserve(&s.scopeWritten, s.scope.Raw, s.scope.SchemaURL); err != nil {
			return err
		}
		w.beginScope(s)
	}
	w.out = protoenc.AppendBytes(w.out, 2, span.Raw)
	w.services[len(w.services)-1].Add(span.ParentID.IsZero(), span.NativeFlags()&otlpdata.FlagDebug != 0)
	return nil
}

// reserve reserves memory for a resource or scope that was written before.
func (s *splitter) reserve(written *bool, raw []byte, schema string) error {
	if !*written {
		*written = true
		return nil
	}
	return s.grow(len(raw) + len(schema))
}

func (w *partWriter) beginResource(s *splitter) {
	if w.out == nil {
		w.out = make([]byte, 0, s.share)
	}
	w.resource, w.resourceSchema = s.resources, s.resource.SchemaURL
	w.out, w.resourceAt = protoenc.BeginMessage(w.out, 1, reserved)
	w.out = protoenc.AppendBytes(w.out, 1, s.resource.Raw)
	w.services = append(w.services, otlpdata.ServiceCount{Service: s.resource.Service})
}

func (w *partWriter) beginScope(s *splitter) {
	w.scope, w.scopeSchema = s.scopes, s.scope.SchemaURL
	w.out, w.scopeAt = protoenc.BeginMessage(w.out, 2, reserved)
	w.out = protoenc.AppendBytes(w.out, 1, s.scope.Raw)
}

func (w *partWriter) endScope() {
	if w.scope == 0 {
		return
	}
	w.out = protoenc.AppendString(w.out, 3, w.scopeSchema)
	w.out = protoenc.EndMessage(w.out, w.scopeAt, reserved)
	w.scope = 0
}

func (w *partWriter) endResource() {
	if w.resource == 0 {
		return
	}
	w.endScope()
	w.out = protoenc.AppendString(w.out, 3, w.resourceSchema)
	w.out = protoenc.EndMessage(w.out, w.resourceAt, reserved)
	w.resource = 0
}
