package loadbalancing

import (
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// part holds the spans of a batch that belong to one backend.
type part struct {
	backend int // index in the ring
	batch   *otlpdata.Batch
}

// split divides a batch by backend. Spans keep their bytes, their resource and their scope. A batch
// of one backend is returned as it is; parts without spans are left out.
func split(b *otlpdata.Batch, ring ring, by *routing) ([]part, error) {
	if b.Len() == 0 {
		return nil, nil
	}
	if len(ring.seeds) == 1 {
		return []part{{0, b}}, nil
	}
	s := &splitter{ring: ring, by: by, parts: make([]partWriter, len(ring.seeds)), share: b.Size() / len(ring.seeds)}
	if err := b.Walk(s); err != nil {
		return nil, err
	}
	var parts []part
	for i := range s.parts {
		w := &s.parts[i]
		switch w.spans {
		case 0:
		case b.Len():
			return []part{{i, b}}, nil
		default:
			w.endResource()
			parts = append(parts, part{i, otlpdata.FromStored(w.out, b.Meta(), w.services...)})
		}
	}
	return parts, nil
}

// splitter is the visitor that copies each span to the part of its backend.
type splitter struct {
	ring  ring
	by    *routing
	parts []partWriter
	share int // bytes of a part, if all are equal

	resource          *otlpdata.Resource
	scope             *otlpdata.Scope
	resources, scopes int // seen so far
	lastKey           uint64
	lastPart          int
	lastSet           bool
}

// Resource implements otlpdata.Visitor.
func (s *splitter) Resource(r *otlpdata.Resource) error {
	s.resource = r
	s.resources++
	return nil
}

// Scope implements otlpdata.Visitor.
func (s *splitter) Scope(scope *otlpdata.Scope) error {
	s.scope = scope
	s.scopes++
	return nil
}

// Span implements otlpdata.Visitor. Neighbors often have the same key.
func (s *splitter) Span(span *otlpdata.Span) error {
	key := s.by.key(s.resource, s.scope, span)
	if !s.lastSet || key != s.lastKey {
		s.lastKey, s.lastPart, s.lastSet = key, s.ring.pick(key), true
	}
	s.parts[s.lastPart].add(s, span)
	return nil
}

// partWriter writes the encoded request of one part.
type partWriter struct {
	out      []byte
	spans    int
	services []otlpdata.ServiceCount // one for each resource

	resource, scope             int // numbers of the open messages; 0: none
	resourceAt, scopeAt         int // positions of their contents
	resourceSchema, scopeSchema string
}

// reserved is the number of bytes for the length of a message before it is known.
const reserved = 2

func (w *partWriter) add(s *splitter, span *otlpdata.Span) {
	if w.resource != s.resources {
		w.endResource()
		w.beginResource(s)
	}
	if w.scope != s.scopes {
		w.endScope()
		w.beginScope(s)
	}
	w.out = protoenc.AppendBytes(w.out, 2, span.Raw)
	w.spans++
	w.services[len(w.services)-1].Add(span.ParentID.IsZero(), span.NativeFlags()&otlpdata.FlagDebug != 0)
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
