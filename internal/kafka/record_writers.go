package kafka

import (
	"github.com/tracing-backend/tracing/internal/otlpparts"
	"github.com/tracing-backend/tracing/internal/translate/otlpjson"
	"github.com/tracing-backend/tracing/internal/translate/zipkin"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// recordWriter writes the value of one record.
type recordWriter interface {
	// addSpan adds a span, unless the value would then be larger than limit bytes. It reports
	// whether it has added the span; otherwise the value is unchanged.
	addSpan(p *otlpparts.Position, s *otlpdata.Span, limit int) (bool, error)
	// size returns the size of the value so far, in bytes.
	size() int
	// finish returns the value. The writer must not be used afterwards.
	finish() []byte
}

// newRecordWriter returns a function that creates writers for an encoding with several spans in a
// record. expected is the approximate size of a record in bytes. Only values of otlp_proto are
// written to buffers.
func newRecordWriter(encoding string, expected int, buffers *Buffers) func() recordWriter {
	switch encoding {
	case OTLPJSON:
		return func() recordWriter {
			return &jsonWriter{w: otlpjson.Writer{Buf: append(make([]byte, 0, 2*expected), jsonStart...)}}
		}
	case ZipkinJSON, ZipkinProto:
		shared := &zipkinSpans{w: zipkin.NewSpans(encoding == ZipkinJSON, zipkin.NoServiceName)}
		return func() recordWriter { return &zipkinWriter{shared: shared} }
	}
	return func() recordWriter {
		w := &protoWriter{}
		w.w.Use(buffers.get(expected))
		return w
	}
}

// protoWriter writes an OTLP request in protobuf.
type protoWriter struct{ w otlpparts.Writer }

func (w *protoWriter) addSpan(p *otlpparts.Position, s *otlpdata.Span, limit int) (bool, error) {
	if w.w.SizeWith(p, s) > limit {
		return false, nil
	}
	return true, w.w.Add(p, s, 0)
}

func (w *protoWriter) size() int { return w.w.Size() }

func (w *protoWriter) finish() []byte {
	value, _ := w.w.Finish()
	return value
}

// place is the resource and scope that a writer has open.
type place struct{ resource, scope int }

// follow calls v for the resource and scope at p if they have changed.
func (o *place) follow(p *otlpparts.Position, v interface {
	Resource(r *otlpdata.Resource) error
	Scope(s *otlpdata.Scope) error
}) {
	resource, scope := p.Numbers()
	if o.resource != resource {
		v.Resource(p.Resource) //nolint:errcheck // never fails
	}
	if o.scope != scope {
		v.Scope(p.Scope) //nolint:errcheck // never fails
	}
	o.resource, o.scope = resource, scope
}

// jsonWriter writes an OTLP request in JSON.
type jsonWriter struct {
	open place
	w    otlpjson.Writer
}

const (
	jsonStart = `{"resourceSpans":[`
	jsonEnd   = `]}`
)

func (w *jsonWriter) addSpan(p *otlpparts.Position, s *otlpdata.Span, limit int) (bool, error) {
	w.open.follow(p, &w.w)
	before := w.w
	w.w.Span(s) //nolint:errcheck // never fails
	ended := w.w
	if ended.End(); len(ended.Buf)+len(jsonEnd) > limit {
		w.w = before
		return false, nil
	}
	return true, nil
}

func (w *jsonWriter) size() int { return len(w.w.Buf) }

func (w *jsonWriter) finish() []byte {
	w.w.End()
	return append(w.w.Buf, jsonEnd...)
}

// zipkinWriter writes a list of Zipkin spans.
type zipkinWriter struct {
	shared *zipkinSpans
	list   []byte // without its end
}

// zipkinSpans translates the spans of all records, so that resources and scopes are translated
// once.
type zipkinSpans struct {
	open place
	w    *zipkin.Spans
}

const zipkinEnd = 1 // maximum size of the end of a list

func (w *zipkinWriter) addSpan(p *otlpparts.Position, s *otlpdata.Span, limit int) (bool, error) {
	w.shared.open.follow(p, w.shared.w)
	list := w.shared.w.Append(w.list, s)
	if len(list)+zipkinEnd > limit {
		w.list = list[:len(w.list)]
		return false, nil
	}
	w.list = list
	return true, nil
}

func (w *zipkinWriter) size() int { return len(w.list) }

func (w *zipkinWriter) finish() []byte { return w.shared.w.End(w.list) }
