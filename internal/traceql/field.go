package traceql

import (
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// field is a resolved field name.
type field struct {
	tracestore.Field
	shorthand *tracestore.Shorthand // of a name that is not a field
}

func (f field) class() tracestore.FieldType {
	if f.shorthand != nil {
		return tracestore.BooleanField
	}
	return f.Place.Info().Type
}

// intrinsic returns the field for a name that is not an attribute.
func intrinsic(name string) (f field, ok bool) {
	for _, p := range tracestore.Places() {
		if !p.Place.HasKey() && slices.Contains(p.Names(), name) {
			return field{Field: tracestore.Field{Place: p.Place}}, true
		}
	}
	for _, s := range tracestore.Shorthands() {
		if s.Name == name {
			return field{shorthand: &s}, true
		}
	}
	return field{}, false
}

// field resolves a name.
func (p *parser) field(t token) (field, error) {
	if t.kind != word {
		return field{}, p.fail(t, "expected a field, found %s", describe(t))
	}
	if f, ok := intrinsic(t.text); ok {
		return f, nil
	}
	if rest, ok := strings.CutPrefix(t.text, parentPrefix); ok && t.plain >= len(parentPrefix) {
		return p.parentField(t, rest)
	}
	for _, s := range tracestore.Places() {
		if key, ok := strings.CutPrefix(t.text, s.Name); ok && s.Place.HasKey() && t.plain >= len(s.Name) {
			if key == "" && t.end-t.begin == len(t.text) { // without quotes
				return field{}, p.fail(t, "missing attribute name after %q", t.text)
			}
			return p.attribute(t, s.Place, key)
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
	return field{Field: p.language.Attribute(place, key)}, nil
}

// isReserved reports whether a name with a dot has a prefix that is not one of attributes.
func isReserved(name string) bool { return strings.HasPrefix(name, "trace.") }

// parentPrefix begins the name of an attribute of the parent.
const parentPrefix = "parent."

// parentField resolves a name after parentPrefix, which is the name of an attribute.
func (p *parser) parentField(t token, rest string) (field, error) {
	if rest == "" && t.end-t.begin == len(t.text) {
		return field{}, p.fail(t, "missing attribute name after %q", t.text)
	}
	t.text, t.plain = rest, t.plain-len(parentPrefix)
	if plain := rest[:t.plain]; !strings.HasPrefix(plain, "span.") && !strings.HasPrefix(plain, "resource.") {
		t.text, t.plain = "."+rest, t.plain+1
	}
	f, err := p.field(t)
	f.Parent = true
	return f, err
}

// value resolves the name of a field that has values.
func (p *parser) value(t token) (field, error) {
	f, err := p.field(t)
	if err == nil && f.shorthand != nil {
		return f, p.fail(t, "%s is a condition and has no value; use status or span:parentID", t.text)
	}
	return f, err
}

// errUnknownField returns the error for an unknown name.
func (p *parser) errUnknownField(t token) error {
	scope, name, colon := strings.Cut(shorten(t.text), ":")
	switch {
	case t.text == "parent":
		return p.fail(t, "parent is not a field; write parent.KEY for an attribute of the parent, or root")
	case strings.HasPrefix(t.text, "trace.") || colon && scope == "trace":
		return p.fail(t, "unknown field %s of a trace; use trace.duration, trace.rootName or trace.rootService", quote(t.text))
	case colon && isScope(scope):
		return p.fail(t, "unknown field %s; write %s.%s for an attribute of that name", quote(t.text), scope, name)
	case colon:
		return p.fail(t, "unknown scope %s; use span, resource, event, link or instrumentation", quote(scope))
	}
	return p.fail(t, "unknown field %s; write .%s for an attribute of that name, or put text in quotes", quote(t.text), shorten(t.text))
}

// isScope reports whether a name is the name of a scope of attributes.
func isScope(name string) bool {
	return name != "" && slices.ContainsFunc(tracestore.Places(), func(p tracestore.PlaceInfo) bool {
		return p.Place.HasKey() && p.Name == name+"."
	})
}
