package traceql

import (
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// class says what a field can be compared with.
type class uint8

// The classes of fields.
const (
	anything class = iota // attributes
	textual
	oneOf // kind and status: one of a few words
	timed // durations
	boolean
)

// field is what a name stands for.
type field struct {
	tracestore.Field
	class class
	holds tracestore.Expr // of a boolean one: what it says
}

func place(p tracestore.Place, c class) field {
	return field{Field: tracestore.Field{Place: p}, class: c}
}

// intrinsic returns the field of a name that is none of an attribute. These are the names of TraceQL, of which the first in a case is the
// one to print, and a few of our own.
func intrinsic(name string) (f field, ok bool) {
	switch name {
	case "name", "span:name":
		return place(tracestore.Name, textual), true
	case "service", "service.name", "resource.service.name", ".service.name":
		return place(tracestore.Service, textual), true
	case "statusMessage", "span:statusMessage":
		return place(tracestore.StatusMessage, textual), true
	case "instrumentation:name":
		return place(tracestore.ScopeName, textual), true
	case "instrumentation:version":
		return place(tracestore.ScopeVersion, textual), true
	case "event:name":
		return place(tracestore.EventName, textual), true
	case "span:parentID":
		return place(tracestore.ParentID, textual), true
	case "trace.rootService", "trace:rootService", "rootServiceName":
		return place(tracestore.RootService, textual), true
	case "trace.rootName", "trace:rootName", "rootName":
		return place(tracestore.RootName, textual), true
	case "kind", "span:kind":
		return place(tracestore.Kind, oneOf), true
	case "status", "span:status":
		return place(tracestore.Status, oneOf), true
	case "duration", "span:duration":
		return place(tracestore.Duration, timed), true
	case "trace.duration", "trace:duration", "traceDuration":
		return place(tracestore.TraceDuration, timed), true
	case "error":
		f := place(tracestore.Status, oneOf)
		return field{class: boolean, holds: equal(f, "error")}, true
	case "root":
		parent := tracestore.Field{Place: tracestore.ParentID}
		return field{class: boolean, holds: tracestore.Not{Expr: tracestore.Cond{Field: parent, Op: tracestore.Exists}}}, true
	}
	return field{}, false
}

// scope is where attributes are looked for, and what stands before their names.
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
		return field{}, p.fail(t, "expected a field, not %s", describe(t))
	}
	if f, ok := intrinsic(t.text); ok {
		return f, nil
	}
	for _, s := range scopes() {
		if key, ok := strings.CutPrefix(t.text, s.prefix); ok && t.plain >= len(s.prefix) {
			if key == "" && t.end-t.begin == len(t.text) { // without quotes
				return field{}, p.fail(t, "the name of the attribute is missing behind %q", t.text)
			}
			return p.attribute(t, s.place, key)
		}
	}
	if plain := t.text[:t.plain]; !strings.Contains(plain, ".") || strings.Contains(plain, ":") || isReserved(plain) {
		return field{}, p.unknown(t)
	}
	return p.attribute(t, tracestore.AnyAttribute, t.text)
}

// attribute refuses the attribute that no answer shows.
func (p *parser) attribute(t token, place tracestore.Place, key string) (field, error) {
	if key == otlpdata.FlagsAttribute {
		return field{}, p.fail(t, "this name is reserved; no span shows an attribute of it")
	}
	return field{Field: tracestore.Field{Place: place, Key: key}}, nil
}

// isReserved reports whether a dotted name begins like something else than an attribute.
func isReserved(name string) bool {
	return strings.HasPrefix(name, "trace.") || strings.HasPrefix(name, "parent.")
}

// value resolves the name of a field that has values.
func (p *parser) value(t token) (field, error) {
	f, err := p.field(t)
	if err == nil && f.class == boolean {
		return f, p.fail(t, "%s is a condition, not a field with a value; there are status and span:parentID", t.text)
	}
	return f, err
}

// unknown says what is wrong with a name.
func (p *parser) unknown(t token) error {
	scope, name, colon := strings.Cut(clipped(t.text), ":")
	switch {
	case t.text == "trace:id" || t.text == "span:id" || t.text == "span:parent" || t.text == "link:traceID" || t.text == "link:spanID":
		return p.fail(t, "ids are not searched for; ask for the trace by its id")
	case strings.HasPrefix(t.text, "parent."):
		return p.fail(t, "parent. is not supported; write { ... } > { ... }, and .%s for an attribute of that name", clipped(t.text))
	case strings.HasPrefix(t.text, "nestedSet"):
		return p.fail(t, "%s is not supported; write root for spans without a parent, and >> or > for structure", clipped(t.text))
	case t.text == "childCount" || t.text == "span:childCount" || t.text == "event:timeSinceStart":
		return p.fail(t, "%s is not supported", t.text)
	case strings.HasPrefix(t.text, "trace.") || colon && scope == "trace":
		return p.fail(t, "unknown field %s of a trace; use trace.duration, trace.rootName or trace.rootService", quote(t.text))
	case colon && isScope(scope):
		return p.fail(t, "unknown field %s; write %s.%s for an attribute of that name", quote(t.text), scope, name)
	case colon:
		return p.fail(t, "unknown scope %s; use span, resource, event, link or instrumentation", quote(scope))
	}
	return p.fail(t, "unknown field %s; write .%s for an attribute of that name, and text in quotes", quote(t.text), clipped(t.text))
}

func isScope(name string) bool {
	switch name {
	case "span", "resource", "event", "link", "instrumentation":
		return true
	}
	return false
}
