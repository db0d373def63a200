package debug

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// writer is an otlpdata visitor that writes one line per span.
type writer struct {
	log      *zap.Logger
	detailed bool
	resource *otlpdata.Resource
	scope    *otlpdata.Scope
}

// Resource stores r for its spans.
func (w *writer) Resource(r *otlpdata.Resource) error {
	w.resource = r
	return nil
}

// Scope stores s for its spans.
func (w *writer) Scope(s *otlpdata.Scope) error {
	w.scope = s
	return nil
}

// Span writes one line.
func (w *writer) Span(s *otlpdata.Span) error {
	duration, _ := s.Duration()
	fields := []zap.Field{
		zap.String("service", w.resource.Service), zap.String("name", s.Name), zap.Stringer("trace-id", s.TraceID),
		zap.Stringer("span-id", s.SpanID), zap.Stringer("parent-id", s.ParentID), zap.String("kind", s.KindName()),
		zap.Int32("status", s.StatusCode), zap.Uint64("duration-ns", duration),
	}
	if w.detailed {
		fields = append(fields, zap.String("status-message", s.StatusMessage),
			zap.Time("start", unixNano(s.Start)), zap.Time("end", unixNano(s.End)),
			zap.String("trace-state", s.TraceState), zap.Uint32("flags", s.Flags), zap.Object("attributes", attributes(s.Attributes)),
			zap.Array("events", events(s.Events)), zap.Array("links", links(s.Links)), zap.Uint32("dropped-attributes", s.DroppedAttributes),
			zap.Uint32("dropped-events", s.DroppedEvents), zap.Uint32("dropped-links", s.DroppedLinks),
			zap.Object("resource", (*resource)(w.resource)), zap.Object("scope", (*scope)(w.scope)))
	}
	w.log.Info("span", fields...)
	return nil
}

func unixNano(ns uint64) time.Time { return time.Unix(int64(ns/1e9), int64(ns%1e9)).UTC() }

type attributes []otlpdata.KeyValue

// MarshalLogObject writes one field per attribute: scalars with their type, arrays and maps as
// JSON, bytes in base64.
func (a attributes) MarshalLogObject(e zapcore.ObjectEncoder) error {
	for _, kv := range a {
		switch v := kv.Value; v.Kind() {
		case otlpdata.ValueBool:
			e.AddBool(kv.Key, v.Bool())
		case otlpdata.ValueInt:
			e.AddInt64(kv.Key, v.Int())
		case otlpdata.ValueDouble:
			e.AddFloat64(kv.Key, v.Double())
		default:
			e.AddString(kv.Key, v.AsString())
		}
	}
	return nil
}

type resource otlpdata.Resource

// MarshalLogObject writes all fields of a resource.
func (r *resource) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddString("schema-url", r.SchemaURL)
	e.AddUint32("dropped-attributes", r.DroppedAttributes)
	return e.AddObject("attributes", attributes(r.Attributes))
}

type scope otlpdata.Scope

// MarshalLogObject writes all fields of a scope.
func (s *scope) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddString("name", s.Name)
	e.AddString("version", s.Version)
	e.AddString("schema-url", s.SchemaURL)
	e.AddUint32("dropped-attributes", s.DroppedAttributes)
	return e.AddObject("attributes", attributes(s.Attributes))
}

type events []otlpdata.Event

// MarshalLogArray writes one object per event.
func (es events) MarshalLogArray(e zapcore.ArrayEncoder) error {
	for i := range es {
		if err := e.AppendObject((*event)(&es[i])); err != nil {
			return err
		}
	}
	return nil
}

type event otlpdata.Event

// MarshalLogObject writes all fields of an event.
func (v *event) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddTime("time", unixNano(v.Time))
	e.AddString("name", v.Name)
	e.AddUint32("dropped-attributes", v.DroppedAttributes)
	return e.AddObject("attributes", attributes(v.Attributes))
}

type links []otlpdata.Link

// MarshalLogArray writes one object per link.
func (ls links) MarshalLogArray(e zapcore.ArrayEncoder) error {
	for i := range ls {
		if err := e.AppendObject((*link)(&ls[i])); err != nil {
			return err
		}
	}
	return nil
}

type link otlpdata.Link

// MarshalLogObject writes all fields of a link.
func (l *link) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddString("trace-id", l.TraceID.String())
	e.AddString("span-id", l.SpanID.String())
	e.AddString("trace-state", l.TraceState)
	e.AddUint32("flags", l.Flags)
	e.AddUint32("dropped-attributes", l.DroppedAttributes)
	return e.AddObject("attributes", attributes(l.Attributes))
}
