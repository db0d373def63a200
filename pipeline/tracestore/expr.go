package tracestore

import (
	"iter"
	"regexp"
)

// Expr is a condition on one span: [And], [Or], [Not] or [Cond]. nil holds on every span.
type Expr interface{ isExpr() }

// And holds where all parts do; an empty And holds everywhere.
type And []Expr

// Or holds where a part does; an empty Or holds nowhere.
type Or []Expr

// Not holds where its part does not.
type Not struct{ Expr Expr }

// Cond compares a field of a span with a constant. It holds when one of the field's values does: an attribute may occur in several places
// and several times. A field without values makes every operator false, also Ne; use Not(Eq) for "has no such value".
type Cond struct {
	Field Field
	Op    Op
	Value Literal
}

func (And) isExpr()  {}
func (Or) isExpr()   {}
func (Not) isExpr()  {}
func (Cond) isExpr() {}

// Place says where a field is looked for.
type Place uint8

// The places of a field. Attributes are looked up by Key; the others are properties of the span or of its trace and have no key. A span has
// one value, be it "", of every property except EventName (one for each event), ParentID and those of the trace.
const (
	AnyAttribute      Place = iota // span, resource, scope, event and link attributes
	SpanAttribute                  //
	ResourceAttribute              //
	ScopeAttribute                 //
	EventAttribute                 //
	LinkAttribute                  //
	Service                        // service name as otlpdata.ServiceName mends it
	Name                           // span name as otlpdata.Span.Operation mends it
	Kind                           // client, server, producer, consumer, internal, or ""
	Status                         // unset, ok, error
	StatusMessage                  //
	Duration                       // nanoseconds, as otlpdata.Span.Duration mends it
	ScopeName                      //
	ScopeVersion                   //
	EventName                      //
	ParentID                       // 16 hex digits; no value for a root
	TraceDuration                  // of the trace, nanoseconds from its first start to its last end; see Span.Trace
	RootService                    // Summary.RootService of the trace
	RootName                       // Summary.RootName of the trace
)

// Field names what a condition looks at.
type Field struct {
	Place Place
	Key   string
}

// HasKey reports whether fields of a place are looked up by their key.
func (p Place) HasKey() bool { return p <= LinkAttribute }

// OfTrace reports whether a place is one of the trace, which [Reader.Find] does not know.
func (p Place) OfTrace() bool { return p == TraceDuration || p == RootService || p == RootName }

// Fields yields the field of each [Cond] in e, as often as it occurs.
func Fields(e Expr) iter.Seq[Field] {
	return func(yield func(Field) bool) { eachField(e, yield) }
}

// eachField reports whether yield wants to go on.
func eachField(e Expr, yield func(Field) bool) bool {
	var parts []Expr
	switch e := e.(type) {
	case And:
		parts = e
	case Or:
		parts = e
	case Not:
		return eachField(e.Expr, yield)
	case Cond:
		return yield(e.Field)
	}
	for _, part := range parts {
		if !eachField(part, yield) {
			return false
		}
	}
	return true
}

// Op is a comparison.
type Op uint8

// The comparisons. A text literal compares by Eq and Ne with the value's text form (otlpdata.Value.AsString), whatever its type, and by
// the orderings with strings, byte by byte. A number literal compares with integers and floats, as 64-bit floats. Everything else is
// false, Ne included: a string neither equals a number nor differs from it.
const (
	Eq Op = iota
	Ne
	Lt
	Le
	Gt
	Ge
	Like   // the first MaxLike bytes of the text form match Literal.Regexp somewhere
	Exists // there is a value; the literal is not looked at
)

// MaxLikeBytes is how many bytes of a value Like looks at. An expression may take ten microseconds for a byte, and no
// query can be stopped while one value is looked at.
const MaxLikeBytes = 256 << 10

// Literal is the constant of a condition.
type Literal struct {
	Text     string
	Number   float64 // when IsNumber
	IsNumber bool
	Regexp   *regexp.Regexp // for Like
}

// Text returns a text literal.
func Text(s string) Literal { return Literal{Text: s} }

// Number returns a number literal. Durations are given in nanoseconds.
func Number(f float64) Literal { return Literal{Number: f, IsNumber: true} }

// Pattern returns the literal of a Like condition.
func Pattern(re *regexp.Regexp) Literal { return Literal{Regexp: re} }
