package tracestore

import (
	"context"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Expr is a condition on one span: [And], [Or], [Not], [Cond] or [Compare]. nil holds for every
// span.
type Expr interface{ isExpr() }

// And holds if all parts hold. An empty And holds for every span.
type And []Expr

// Or holds if at least one part holds. An empty Or holds for no span.
type Or []Expr

// Not holds if its part does not.
type Not struct{ Expr Expr }

// Cond compares a field of a span with a constant. A field may have several values, because an
// attribute may occur in several places and several times; the condition holds if it holds for at
// least one value. If the field has no value, every operator is false, including Ne. Use Not with
// Eq for "has no such value".
//
// A condition holds for an array if it holds for its text or for one of its elements
// ([otlpdata.Value.ElementsInJSON]). But Ne holds only if Eq does not hold for any of them.
type Cond struct {
	Field Field
	Op    Op
	Value Literal
}

// WithoutNames returns an equivalent condition on fields without Names.
func (c Cond) WithoutNames() Expr {
	if c.Field.Names == "" {
		return c
	}
	var any Or
	var absent And // the names before this one
	for c.Field = range c.Field.EachName() {
		if c.Op == Exists && c.Value.Kind == otlpdata.ValueEmpty || len(absent) == 0 {
			any = append(any, c)
		} else {
			any = append(any, append(slices.Clip(absent), c))
		}
		absent = append(absent, Not{Cond{Field: c.Field, Op: Exists}})
	}
	return any
}

func (And) isExpr()     {}
func (Or) isExpr()      {}
func (Not) isExpr()     {}
func (Cond) isExpr()    {}
func (Compare) isExpr() {}

// Field identifies the values that a condition tests.
type Field struct {
	Place Place
	Key   string // of an attribute; "" for properties
	// Names, unless empty, are all keys of an attribute that was renamed, as returned by JoinNames.
	// The first key that a span has gives the values. Then Key is only what users see.
	Names string
	// Parent means the first value in the parent of the span; see Span.Parent. Like fields of the
	// trace, such fields are only in conditions of the search language.
	Parent bool
}

// JoinNames returns the value of Field.Names for keys, the preferred one first.
func JoinNames(keys ...string) string { return strings.Join(keys, "\x00") }

// EachName yields a field for each of the Names, or f itself if it has none.
func (f Field) EachName() iter.Seq[Field] {
	return func(yield func(Field) bool) {
		if f.Names == "" {
			yield(f)
			return
		}
		for key := range strings.SplitSeq(f.Names, "\x00") {
			if !yield(Field{Place: f.Place, Key: key, Parent: f.Parent}) {
				return
			}
		}
	}
}

// MapFields returns e with each field replaced by what field returns for it.
func MapFields(e Expr, field func(Field) Field) Expr {
	return mapper{func(c Cond) Expr {
		c.Field = field(c.Field)
		return c
	}, field}.expr(e)
}

// mapper replaces the conditions of an expression and the fields of its comparisons.
type mapper struct {
	cond  func(Cond) Expr
	field func(Field) Field
}

func (m mapper) expr(e Expr) Expr {
	switch e := e.(type) {
	case And:
		return And(m.exprs(e))
	case Or:
		return Or(m.exprs(e))
	case Not:
		return Not{m.expr(e.Expr)}
	case Cond:
		return m.cond(e)
	case Compare:
		e.Left, e.Right = m.operand(e.Left), m.operand(e.Right)
		return e
	}
	return e
}

func (m mapper) exprs(parts []Expr) []Expr {
	out := slices.Clone(parts)
	for i := range out {
		out[i] = m.expr(out[i])
	}
	return out
}

func (m mapper) operand(o Operand) Operand {
	switch o := o.(type) {
	case Field:
		return m.field(o)
	case Arithmetic:
		o.Left, o.Right = m.operand(o.Left), m.operand(o.Right)
		return o
	case Truth:
		return Truth{m.expr(o.Expr)}
	}
	return o
}

// IsNewer reports whether Key is preferred to another one of the Names.
func (f Field) IsNewer(than string) bool {
	for name := range f.EachName() {
		switch name.Key {
		case than:
			return false
		case f.Key:
			return true
		}
	}
	return false
}

// OfTrace reports whether values depend on the whole trace.
func (f Field) OfTrace() bool { return f.Parent || f.Place.OfTrace() }

// OfSpan reports whether spans of a trace may have different values.
func (f Field) OfSpan() bool { return f.Parent || f.Place.OfSpan() }

// Fields yields the field of each [Cond] and [Compare] in e, including repeated fields.
func Fields(e Expr) iter.Seq[Field] {
	return func(yield func(Field) bool) { eachField(e, yield) }
}

// eachField calls yield for each field until it returns false, and returns the last result.
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
	case Compare:
		return eachOperandField(e.Left, yield) && eachOperandField(e.Right, yield)
	}
	for _, part := range parts {
		if !eachField(part, yield) {
			return false
		}
	}
	return true
}

// Op is a comparison operator.
type Op uint8

// The operators. Eq and Ne compare a text literal with the text form of a value of any type
// (otlpdata.Value.AsString). Lt, Le, Gt and Ge compare a text literal with string values only, byte
// by byte. A number literal is compared with integer and float values, as 64-bit floats. All other
// comparisons are false, including Ne: a string neither equals a number nor differs from it.
const (
	Eq Op = iota
	Ne
	Lt
	Le
	Gt
	Ge
	Like   // Literal.Regexp matches somewhere in the first MaxLikeBytes bytes of the text form
	Exists // the field has a value; of the literal, only Kind counts
)

// Literal is the constant of a condition.
type Literal struct {
	Text     string
	Number   float64 // if IsNumber
	IsNumber bool
	Regexp   *regexp.Regexp // for Like
	// Kind is otlpdata.ValueString or otlpdata.ValueBool if the condition can hold only for values
	// of that kind, or 0. Only conditions on attributes have a kind.
	Kind otlpdata.ValueKind
	ctx  context.Context // see WithContext; nil: Like is not interrupted
	time *patternCost    // nil: the time of Like is not limited
}

// Text returns a literal that is compared with the text form of values of all types.
func Text(s string) Literal { return Literal{Text: s} }

// String returns a literal that is compared only with strings.
func String(s string) Literal { return Literal{Text: s, Kind: otlpdata.ValueString} }

// Bool returns a literal that is compared only with booleans.
func Bool(b bool) Literal { return Literal{Text: strconv.FormatBool(b), Kind: otlpdata.ValueBool} }

// Number returns a number literal. Durations are in nanoseconds.
func Number(f float64) Literal { return Literal{Number: f, IsNumber: true} }
