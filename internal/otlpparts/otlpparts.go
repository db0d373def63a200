// Package otlpparts divides the spans of a batch among several encoded requests, by any criterion.
// Spans keep their bytes, their resource and their scope. Exporters that distribute spans use it.
package otlpparts

import (
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// Position is the place of a walk: the resource and scope of the spans that follow. A visitor calls
// SetResource and SetScope, and passes the Position to writers.
type Position struct {
	Resource *otlpdata.Resource
	Scope    *otlpdata.Scope
	// Grow is called before a resource or scope is repeated in another part, with its size in
	// bytes. Add returns its error.
	Grow func(bytes int) error

	resources, scopes int // seen so far
	resourceWritten   bool
	scopeWritten      bool
}

// SetResource begins a resource.
func (p *Position) SetResource(r *otlpdata.Resource) {
	p.Resource, p.resourceWritten = r, false
	p.resources++
}

// SetScope begins a scope of the resource.
func (p *Position) SetScope(s *otlpdata.Scope) {
	p.Scope, p.scopeWritten = s, false
	p.scopes++
}

// Numbers returns the numbers of the resource and the scope in the order of the walk, from 1.
func (p *Position) Numbers() (resource, scope int) { return p.resources, p.scopes }

// reserve reserves memory for a resource or scope that was written before.
func (p *Position) reserve(written *bool, raw []byte, schema string) error {
	if !*written {
		*written = true
		return nil
	}
	return p.Grow(len(raw) + len(schema))
}

// Writer writes the encoded request of one part. The zero value is an empty part.
type Writer struct {
	out      []byte
	services []otlpdata.ServiceCount // one for each resource

	resource, scope             int // numbers of the open messages; 0: none
	resourceAt, scopeAt         int // positions of their contents
	resourceSchema, scopeSchema string
}

// reserved is the number of bytes for the length of a message before it is known, and maxLength the
// maximum that it takes.
const (
	reserved  = 2
	maxLength = 5
)

// Use makes an empty Writer write to a buffer, and to a larger one when it is full.
func (w *Writer) Use(buffer []byte) { w.out = buffer[:0] }

// Empty reports whether the part has no spans.
func (w *Writer) Empty() bool { return len(w.out) == 0 }

// Size returns the size of the request so far, in bytes.
func (w *Writer) Size() int { return len(w.out) }

// SizeWith returns the maximum size of the request in bytes if the span at p is added.
func (w *Writer) SizeWith(p *Position, span *otlpdata.Span) int {
	size := len(w.out) + 1 + maxLength + len(span.Raw)
	if w.scope != p.scopes {
		size += 2*(1+maxLength) + len(p.Scope.Raw) + 1 + maxLength + len(p.Scope.SchemaURL)
	}
	if w.resource != p.resources {
		size += 2*(1+maxLength) + len(p.Resource.Raw) + 1 + maxLength + len(p.Resource.SchemaURL)
	}
	// The lengths and schema URLs of the open messages are not written yet.
	return size + 2*maxLength + 2*(1+maxLength) + len(w.resourceSchema) + len(w.scopeSchema)
}

// Add adds a span at p. expected is the approximate size of the part in bytes; it is used for the
// first span, unless the Writer has a buffer.
func (w *Writer) Add(p *Position, span *otlpdata.Span, expected int) error {
	if w.resource != p.resources {
		w.endResource()
		if err := p.reserve(&p.resourceWritten, p.Resource.Raw, p.Resource.SchemaURL); err != nil {
			return err
		}
		w.beginResource(p, expected)
	}
	if w.scope != p.scopes {
		w.endScope()
		if err := p.reserve(&p.scopeWritten, p.Scope.Raw, p.Scope.SchemaURL); err != nil {
			return err
		}
		w.beginScope(p)
	}
	w.out = protoenc.AppendBytes(w.out, 2, span.Raw)
	w.services[len(w.services)-1].Add(span.ParentID.IsZero(), span.NativeFlags()&otlpdata.FlagDebug != 0)
	return nil
}

// Finish returns the request and the number of spans of each service; a service may occur several
// times. The Writer is empty afterwards.
func (w *Writer) Finish() (request []byte, services []otlpdata.ServiceCount) {
	w.endResource()
	request, services = w.out, w.services
	*w = Writer{}
	return request, services
}

func (w *Writer) beginResource(p *Position, expected int) {
	if w.out == nil {
		w.out = make([]byte, 0, expected)
	}
	w.resource, w.resourceSchema = p.resources, p.Resource.SchemaURL
	w.out, w.resourceAt = protoenc.BeginMessage(w.out, 1, reserved)
	w.out = protoenc.AppendBytes(w.out, 1, p.Resource.Raw)
	w.services = append(w.services, otlpdata.ServiceCount{Service: p.Resource.Service})
}

func (w *Writer) beginScope(p *Position) {
	w.scope, w.scopeSchema = p.scopes, p.Scope.SchemaURL
	w.out, w.scopeAt = protoenc.BeginMessage(w.out, 2, reserved)
	w.out = protoenc.AppendBytes(w.out, 1, p.Scope.Raw)
}

func (w *Writer) endScope() {
	if w.scope == 0 {
		return
	}
	w.out = protoenc.AppendString(w.out, 3, w.scopeSchema)
	w.out = protoenc.EndMessage(w.out, w.scopeAt, reserved)
	w.scope, w.scopeSchema = 0, ""
}

func (w *Writer) endResource() {
	if w.resource == 0 {
		return
	}
	w.endScope()
	w.out = protoenc.AppendString(w.out, 3, w.resourceSchema)
	w.out = protoenc.EndMessage(w.out, w.resourceAt, reserved)
	w.resource, w.resourceSchema = 0, ""
}
