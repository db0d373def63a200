package tracestore

import (
	"cmp"
	"encoding/hex"
	"iter"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Match reports whether e holds for s. It is the reference implementation: a store finds exactly
// the spans for which Match is true. A store that cannot evaluate a condition itself may call Match
// for each candidate.
func Match(e Expr, s Span) bool {
	switch e := e.(type) {
	case nil:
		return true
	case And:
		for _, part := range e {
			if !Match(part, s) {
				return false
			}
		}
		return true
	case Or:
		for _, part := range e {
			if Match(part, s) {
				return true
			}
		}
		return false
	case Not:
		return !Match(e.Expr, s)
	case Cond:
		return e.match(s)
	case Compare:
		return e.match(s)
	}
	return false
}

func (c Cond) match(s Span) bool {
	found := false
	c.Field.visit(s, func(v otlpdata.Value) bool {
		found = c.Holds(v)
		return !found
	})
	return found
}

// Holds reports whether the condition holds for one value of its field. It is for stores that hold
// values but not whole spans and therefore cannot call [Match].
func (c Cond) Holds(v otlpdata.Value) bool {
	if v.Kind() == otlpdata.ValueArray {
		return c.holdsInArray(v)
	}
	return c.holds(v)
}

func (c Cond) holdsInArray(array otlpdata.Value) bool {
	return holdsInArray(array, c.Op, func(op Op, v otlpdata.Value) bool {
		c.Op = op
		return c.holds(v)
	})
}

// holds is Holds for an array as a whole or a value that is not an array.
func (c Cond) holds(v otlpdata.Value) bool {
	switch {
	case c.Value.Kind != otlpdata.ValueEmpty && v.Kind() != c.Value.Kind:
		return false
	case c.Op == Exists:
		return true
	case c.Op == Like:
		return c.Value.Regexp != nil && c.Value.like(v.AsString())
	case c.Value.IsNumber:
		n, ok := number(v)
		return ok && compare(c.Op, n, c.Value.Number)
	case c.Op == Eq || c.Op == Ne:
		return compare(c.Op, v.AsString(), c.Value.Text)
	}
	return v.Kind() == otlpdata.ValueString && compare(c.Op, v.Str(), c.Value.Text)
}

// holdsInArray reports whether a comparison holds for an array, as described for [Cond]. holds
// compares the array as a whole, or an element.
func holdsInArray(array otlpdata.Value, op Op, holds func(Op, otlpdata.Value) bool) bool {
	if op == Ne && holds(Eq, array) {
		return false
	}
	found := holds(op, array)
	for e := range array.ElementsInJSON() {
		if op == Ne && holds(Eq, e) {
			return false
		}
		if found && op != Ne {
			break
		}
		found = found || holds(op, e)
	}
	return found
}

// number converts an integer or float value for comparison with number literals.
func number(v otlpdata.Value) (float64, bool) {
	switch v.Kind() {
	case otlpdata.ValueInt:
		return float64(v.Int()), true
	case otlpdata.ValueDouble:
		return v.Double(), true
	}
	return 0, false
}

// compare uses Go's operators, so that NaN differs from everything, including itself.
func compare[T cmp.Ordered](op Op, a, b T) bool {
	switch op {
	case Eq:
		return a == b
	case Ne:
		return a != b
	case Lt:
		return a < b
	case Le:
		return a <= b
	case Gt:
		return a > b
	case Ge:
		return a >= b
	}
	return false
}

// Values yields the values of the field in s. They are valid as long as s is.
func (f Field) Values(s Span) iter.Seq[otlpdata.Value] {
	return func(yield func(otlpdata.Value) bool) { f.visit(s, yield) }
}

// visit calls yield with the values of the field in s until it returns false.
func (f Field) visit(s Span, yield func(otlpdata.Value) bool) {
	if f.Parent {
		if s.Parent != nil {
			f.Parent = false
			if v, ok := s.Parent(f); ok {
				yield(v)
			}
		}
		return
	}
	if f.Names != "" {
		f.visitNames(s, yield)
		return
	}
	if f.Place.known() && places[f.Place].value != nil {
		if v, ok := places[f.Place].value(s); ok {
			yield(v)
		}
		return
	}
	switch f.Place {
	case AnyAttribute:
		_ = visitKey(s.Attributes, f.Key, yield) && visitKey(s.Resource.Attributes, f.Key, yield) &&
			visitKey(s.Scope.Attributes, f.Key, yield) && visitEvents(s, f.Key, yield) && visitLinks(s, f.Key, yield)
	case SpanAttribute:
		visitKey(s.Attributes, f.Key, yield)
	case ResourceAttribute:
		visitKey(s.Resource.Attributes, f.Key, yield)
	case ScopeAttribute:
		visitKey(s.Scope.Attributes, f.Key, yield)
	case EventAttribute:
		visitEvents(s, f.Key, yield)
	case LinkAttribute:
		visitLinks(s, f.Key, yield)
	case EventName:
		for i := range s.Events {
			if !yield(otlpdata.StringValue(s.Events[i].Name)) {
				return
			}
		}
	case EventTime:
		for i := 0; s.Nested != nil && i < len(s.Events); i++ {
			if !yield(otlpdata.DoubleValue(float64(s.Events[i].Time) - float64(s.Start))) {
				return
			}
		}
	case LinkTraceID:
		for i := 0; s.Nested != nil && i < len(s.Links); i++ {
			if !yield(otlpdata.StringValue(hex.EncodeToString(s.Links[i].TraceID[:]))) {
				return
			}
		}
	case LinkSpanID:
		for i := 0; s.Nested != nil && i < len(s.Links); i++ {
			if !yield(otlpdata.StringValue(s.Links[i].SpanID.String())) {
				return
			}
		}
	case AnyText:
		visitText(s, yield)
	}
}

// visitNames visits the values of the first name that the span has.
func (f Field) visitNames(s Span, yield func(otlpdata.Value) bool) {
	for one := range f.EachName() {
		found := false
		one.visit(s, func(v otlpdata.Value) bool {
			found = true
			return yield(v)
		})
		if found {
			return
		}
	}
}

// visitText visits all values of AnyText.
func visitText(s Span, yield func(otlpdata.Value) bool) {
	goesOn := true
	for _, p := range textPlaces {
		Field{Place: p}.visit(s, func(v otlpdata.Value) bool {
			goesOn = goesOn && yield(v)
			return goesOn
		})
	}
	if !goesOn || !visitAll(s.Attributes, yield) || !visitAll(s.Resource.Attributes, yield) ||
		!visitAll(s.Scope.Attributes, yield) {
		return
	}
	for i := range s.Events {
		if !visitAll(s.Events[i].Attributes, yield) {
			return
		}
	}
	for i := range s.Links {
		if !visitAll(s.Links[i].Attributes, yield) {
			return
		}
	}
}

func visitAll(kvs []otlpdata.KeyValue, yield func(otlpdata.Value) bool) bool {
	for i := range kvs {
		if !yield(kvs[i].Value) {
			return false
		}
	}
	return true
}

// visitKey visits the values of key and reports whether to continue.
func visitKey(kvs []otlpdata.KeyValue, key string, yield func(otlpdata.Value) bool) bool {
	for i := range kvs {
		if kvs[i].Key == key && !yield(kvs[i].Value) {
			return false
		}
	}
	return true
}

func visitEvents(s Span, key string, yield func(otlpdata.Value) bool) bool {
	for i := range s.Events {
		if !visitKey(s.Events[i].Attributes, key, yield) {
			return false
		}
	}
	return true
}

func visitLinks(s Span, key string, yield func(otlpdata.Value) bool) bool {
	for i := range s.Links {
		if !visitKey(s.Links[i].Attributes, key, yield) {
			return false
		}
	}
	return true
}
