package traceql

import (
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// class is the kind of values that a field can be compared with.
type class uint8

// The classes of fields.
const (
	anyType class = iota // attributes
	textType
	enumType     // kind and status
	durationType // durations
	boolType
)

// field is a resolved field name.
type field struct {
	tracestore.Field
	class     class
	condition tracestore.Expr // of a boolType field: the condition that it stands for
}

func place(p tracestore.Place, c class) field {
	return field{Field: tracestore.Field{Place: p}, class: c}
}

// intrinsic returns the field for a name that is not an attribute. The names are those of TraceQL
// and some additional ones. The first name of each case is the one that Format writes.
func intrinsic(name string) (f field, ok bool) {
	switch name {
	case "name", "span:name":
		return place(tracestore.Name, textType), true
	case "service", "service.name", "resource.service.name", ".service.name":
		return place(tracestore.Service, textType), true
	case "statusMessage", "span:statusMessage":
		return place(tracestore.StatusMessage, textType), true
	case "instrumentation:name":
		return place(tracestore.ScopeName, textType), true
	case "instrumentation:version":
		return place(tracestore.ScopeVersion, textType), true
	case "event:name":
		return place(tracestore.EventName, textType), true
	case "span:parentID":
		return place(tracestore.ParentID, textType), true
	case "trace.rootService", "trace:rootService", "rootServiceName":
		return place(tracestore.RootService, textType), true
	case "trace.rootName", "trace:rootName", "rootName":
		return place(tracestore.RootName, textType), true
	case "kind", "span:kind":
		return place(tracestore.Kind, enumType), true
	case "status", "span:status":
		return place(tracestore.Status, enumType), true
	case "duration", "span:duration":
		return place(tracestore.Duration, durationType), true
	case "trace.duration", "trace:duration", "traceDuration":
		return place(tracestore.TraceDuration, durationType), true
	case "error":
		f := place(tracestore.Status, enumType)
		return field{class: boolType, condition: equal(f, "error")}, true
	case "root":
		parent := tracestore.Field{Place: tracestore.ParentID}
		return field{class: boolType, condition: tracestore.Not{Expr: tracestore.Cond{Field: parent, Op: tracestore.Exists}}}, true
	}
	return field{}, false
}

// scope is a place of attributes and its prefix in names.
type scope struct {
	prefix string
	place  tracestore.Place
}

func scopes() [6]scope {
	return [...]scope{
		{".", tracestore.AnyAttribute},
		{"span.", tracestore.SpanAttribute},
		{"resource.", tracestore.ResourceAttribute},
		{"instrumentation.", tracestore.ScopeAttribute},
		{"event.", tracestore.EventAttribute},
		{"link.", tracestore.LinkAttribute},
	}
}

// field resolves a name.
func (p *parser) field(t token) (field, error) {
	if t.kind != word {
		return field{}, p.fail(t, "expected a field, found %s", describe(t))
	}
	if f, ok := intrinsic(t.text); ok {
		return f, nil
	}
	for _, s := range scopes() {
		if key, ok := strings.CutPrefix(t.text, s.prefix); ok && t.plain >= len(s.prefix) {
			if key == "" && t.end-t.begin == len(t.text) { // without quotes
				return field{}, p.fail(t, "missing attribute name after %q", t.text)
			}
			return p.attribute(t, s.place, key)
		}
	}
	if plain := t.text[:t.plain]; !strings.Contains(plain, ".") || strings.Contains(plain, ":") || isReserved(plain) {
		return field{}, p.errUnknownField(t)
	}
	return p.attribute(t, tracestore.AnyAttribute, t.text)
}

// attribute returns the field of an attribute, and an error for the reserved one.
func (p *parser) attribute(t token, place tracestore.Place, key string) (field, error) {
	if key == otlpdata.FlagsAttribute {
		return field{}, p.fail(t, "reserved attribute name; no span shows this attribute")
	}
	return field{Field: tracestore.Field{Place: place, Key: key}}, nil
}

// isReserved reports whether a name with a dot has a prefix that is not one of attributes.
func isReserved(name string) bool {
	return strings.HasPrefix(name, "trace.") || strings.HasPrefix(name, "parent.")
}

// value resolves the name of a field that has values.
func (p *parser) value(t token) (field, error) {
	f, err := p.field(t)
	if err == nil && f.class == boolType {
		return f, p.fail(t, "%s is a condition and has no value; use status or span:parentID", t.text)
	}
	return f, err
}

// errUnknownField returns the error for an unknown name.
func (p *parser) errUnknownField(t token) error {
	scope, name, colon := strings.Cut(shorten(t.text), ":")
	switch {
	case t.text == "trace:id" || t.text == "span:id" || t.text == "span:parent" || t.text == "link:traceID" || t.text == "link:spanID":
		return p.fail(t, "searching by id is not supported; look up the trace by its id")
	case strings.HasPrefix(t.text, "parent."):
		return p.fail(t, "parent. is not supported; write { ... } > { ... }, or .%s for an attribute of that name", shorten(t.text))
	case strings.HasPrefix(t.text, "nestedSet"):
		return p.fail(t, "%s is not supported; use root for spans without a parent, and >> or > for structure", shorten(t.text))
	case t.text == "childCount" || t.text == "span:childCount" || t.text == "event:timeSinceStart":
		return p.fail(t, "%s is not supported", t.text)
	case strings.HasPrefix(t.text, "trace.") || colon && scope == "trace":
		return p.fail(t, "unknown field %s of a trace; use trace.duration, trace.rootName or trace.rootService", quote(t.text))
	case colon && isScope(scope):
		return p.fail(t, "unknown field %s; write %s.%s for an attribute of that name", quote(t.text), scope, name)
	case colon:
		return p.fail(t, "unknown scope %s; use span, resource, event, link or instrumentation", quote(scope))
	}
	return p.fail(t, "unknown field %s; write .%s for an attribute of that name, or put text in quotes", quote(t.text), shorten(t.text))
}

func isScope(name string) bool {
	switch name {
	case "span", "resource", "event", "link", "instrumentation":
		return true
	}
	return false
}
