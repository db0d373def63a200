package queryfilter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/internal/wire/expression_v1"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// The levels.
const (
	levelSpan     = "span"
	levelResource = "resource"
	levelScope    = "scope"
	levelEvent    = "event"
	levelLink     = "link"
)

// reference is an attribute or a property in a filter.
type reference struct {
	name   string // in messages
	level  string
	fields []tracestore.Field // two for an attribute without a level
	typ    tracestore.FieldType
}

// properties are the fields of the levels.
var properties = map[string]map[string]tracestore.Place{
	levelSpan: {
		"traceID": tracestore.TraceID, "spanID": tracestore.SpanID, "parentSpanID": tracestore.ParentID,
		"name": tracestore.Name, "kind": tracestore.Kind, "status": tracestore.Status,
		"statusMessage": tracestore.StatusMessage, "duration": tracestore.Duration,
	},
	levelResource: {"service": tracestore.Service},
	levelScope:    {"name": tracestore.ScopeName, "version": tracestore.ScopeVersion},
	levelEvent:    {"name": tracestore.EventName, "timeSinceStart": tracestore.EventTime},
	levelLink:     {"traceID": tracestore.LinkTraceID, "spanID": tracestore.LinkSpanID},
}

// unsupported are the fields of the levels for which package tracestore has no condition.
var unsupported = map[string][]string{
	levelSpan:     {"traceState", "startTime", "endTime"},
	levelResource: {"schemaURL"},
	levelScope:    {"schemaURL"},
	levelEvent:    {"time"},
	levelLink:     {"traceState"},
}

// attributes are the places of attributes. Without a level, an attribute of the span or of its
// resource is meant.
var attributes = map[string][]tracestore.Place{
	"":            {tracestore.SpanAttribute, tracestore.ResourceAttribute},
	levelSpan:     {tracestore.SpanAttribute},
	levelResource: {tracestore.ResourceAttribute},
	levelScope:    {tracestore.ScopeAttribute},
	levelEvent:    {tracestore.EventAttribute},
	levelLink:     {tracestore.LinkAttribute},
}

// reference returns the reference that an argument is. It returns false for other arguments.
func (p *parser) reference(e *expression_v1.Expression) (r reference, ok bool, err error) {
	switch e.GetTerm().(type) {
	case *expression_v1.Expression_Attr:
		r, err = p.attribute(e.GetAttr())
		return r, true, err
	case *expression_v1.Expression_Field:
		r, err = property(e.GetField())
		return r, true, err
	}
	return r, false, nil
}

func (p *parser) attribute(a *expression_v1.AttributeReference) (reference, error) {
	r := reference{level: a.GetLevel(), typ: tracestore.AttributeField, name: fmt.Sprintf("attribute %q", a.GetKey())}
	places, ok := attributes[r.level]
	if !ok {
		return r, errLevel(r.level)
	}
	if a.GetKey() == "" {
		return r, errors.New("attribute has no key")
	}
	for _, place := range places {
		r.fields = append(r.fields, tracestore.Field{Place: place, Key: a.GetKey()})
	}
	return r, p.addText(a.GetKey())
}

func property(f *expression_v1.FieldReference) (reference, error) {
	r := reference{level: f.GetLevel(), name: f.GetLevel() + "." + f.GetName()}
	of, ok := properties[r.level]
	if !ok {
		return r, errLevel(r.level)
	}
	place, ok := of[f.GetName()]
	switch {
	case ok:
		r.fields, r.typ = []tracestore.Field{{Place: place}}, place.Info().Type
		return r, nil
	case slices.Contains(unsupported[r.level], f.GetName()):
		return r, fmt.Errorf("field %s is not supported", r.name)
	}
	return r, fmt.Errorf("level %s has no field %q; for an attribute of that name use attr", r.level, f.GetName())
}

func errLevel(level string) error {
	return fmt.Errorf("unknown level %q; use one of %s", level, strings.Join(Levels(), ", "))
}

// anyOf returns the condition that f holds for one of the fields.
func (r reference) anyOf(f func(tracestore.Field) tracestore.Expr) tracestore.Expr {
	if len(r.fields) == 1 {
		return f(r.fields[0])
	}
	var or tracestore.Or
	for _, field := range r.fields {
		or = append(or, f(field))
	}
	return or
}

// exists returns the condition that there is a value. An empty text of a property is none.
func (r reference) exists() tracestore.Expr {
	return r.anyOf(func(f tracestore.Field) tracestore.Expr {
		switch f.Place {
		case tracestore.Service, tracestore.Name, tracestore.StatusMessage, tracestore.ScopeName, tracestore.ScopeVersion:
			return tracestore.Cond{Field: f, Op: tracestore.Ne, Value: tracestore.Text("")}
		}
		return tracestore.Cond{Field: f, Op: tracestore.Exists}
	})
}

// none returns the condition that there is a value and that a condition on the reference is false.
func (r reference) none(e tracestore.Expr) tracestore.Expr {
	return tracestore.And{r.exists(), tracestore.Not{Expr: e}}
}

// subject returns the reference that must be the argument of an operator.
func (p *parser) subject(op string, e *expression_v1.Expression) (reference, error) {
	r, ok, err := p.reference(e)
	if err == nil && !ok {
		err = fmt.Errorf("operator %q takes an attribute or a field, got %s", op, termName(e))
	}
	if err == nil {
		err = p.addConditions(len(r.fields))
	}
	return r, err
}
