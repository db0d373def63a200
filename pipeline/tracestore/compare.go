package tracestore

import (
	"math"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Compare is a condition that compares two computed values. Searches evaluate it on whole traces
// (package storequery); [Query.Where] does not support it. It holds if it holds for a value of each
// side; only a [Field] can have several. With Exists, Left must have a value, and Right is nil.
// Numbers of any type are comparable; all other values only with values of their own type. If one
// side has no value or the types differ, every operator is false, including Ne.
type Compare struct {
	Op          Op
	Left, Right Operand
}

// Operand is a value that is computed for a span: a [Field], a [Constant], [Arithmetic], a [Truth]
// or, for a group of spans, an aggregate of package storequery.
type Operand interface{ IsOperand() }

// Constant is a value that is the same for all spans. Durations are floats, in nanoseconds.
type Constant struct{ Value otlpdata.Value }

// Arithmetic calculates with the first values of its operands. It has no value if one of them has
// none or is not a number. Two integers give an integer; division by zero gives no value for
// integers.
type Arithmetic struct {
	Op          byte // one of + - * / % ^
	Left, Right Operand
}

// Truth is the boolean value of a condition.
type Truth struct{ Expr Expr }

// IsOperand implements Operand.
func (Field) IsOperand() {}

// IsOperand implements Operand.
func (Constant) IsOperand() {}

// IsOperand implements Operand.
func (Arithmetic) IsOperand() {}

// IsOperand implements Operand.
func (Truth) IsOperand() {}

// maxCompared is the maximum number of values of a field that a comparison of two fields examines.
const maxCompared = 64

func (c Compare) match(s Span) bool {
	if c.Op == Exists {
		_, ok := ValueOf(c.Left, s)
		return ok
	}
	left, right := operandValues(c.Left, s), operandValues(c.Right, s)
	return slices.ContainsFunc(left, func(l otlpdata.Value) bool {
		return slices.ContainsFunc(right, func(r otlpdata.Value) bool { return CompareValues(c.Op, l, r) })
	})
}

func operandValues(o Operand, s Span) (values []otlpdata.Value) {
	if f, ok := o.(Field); ok {
		f.visit(s, func(v otlpdata.Value) bool {
			values = append(values, v)
			return len(values) < maxCompared
		})
		return values
	}
	if v, ok := ValueOf(o, s); ok {
		values = append(values, v)
	}
	return values
}

// ValueOf returns the value of an operand, the first one of a field with several.
func ValueOf(o Operand, s Span) (otlpdata.Value, bool) {
	return Compute(o, func(o Operand) (v otlpdata.Value, ok bool) {
		switch o := o.(type) {
		case Field:
			o.visit(s, func(first otlpdata.Value) bool {
				v, ok = first, true
				return false
			})
		case Truth:
			return otlpdata.BoolValue(Match(o.Expr, s)), true
		}
		return v, ok
	})
}

// Compute evaluates arithmetic. value returns the values of operands other than constants.
func Compute(o Operand, value func(Operand) (otlpdata.Value, bool)) (v otlpdata.Value, ok bool) {
	switch o := o.(type) {
	case nil:
		return v, false
	case Constant:
		return o.Value, true
	case Arithmetic:
		left, ok := Compute(o.Left, value)
		if !ok {
			return v, false
		}
		right, ok := Compute(o.Right, value)
		if !ok {
			return v, false
		}
		return calculate(o.Op, left, right)
	}
	return value(o)
}

func calculate(op byte, left, right otlpdata.Value) (v otlpdata.Value, ok bool) {
	if left.Kind() == otlpdata.ValueInt && right.Kind() == otlpdata.ValueInt {
		n, ok := calculateInt(op, left.Int(), right.Int())
		return otlpdata.IntValue(n), ok
	}
	x, ok1 := number(left)
	y, ok2 := number(right)
	if !ok1 || !ok2 {
		return v, false
	}
	switch op {
	case '+':
		x += y
	case '-':
		x -= y
	case '*':
		x *= y
	case '/':
		x /= y
	case '%':
		x = math.Mod(x, y)
	case '^':
		x = math.Pow(x, y)
	}
	return otlpdata.DoubleValue(x), true
}

func calculateInt(op byte, x, y int64) (n int64, ok bool) {
	switch op {
	case '+':
		return x + y, true
	case '-':
		return x - y, true
	case '*':
		return x * y, true
	case '/', '%':
		if y == 0 {
			return 0, false
		}
		if y == -1 { // the processor may trap on the minimum
			if op == '%' {
				return 0, true
			}
			return -x, true
		}
		if op == '%' {
			return x % y, true
		}
		return x / y, true
	}
	f := math.Pow(float64(x), float64(y))
	return int64(f), math.Abs(f) < 1<<63 // the conversion of others depends on the processor
}

// CompareValues compares two values as described for [Compare]. An array and another value are
// compared by the elements of the array, as described for [Cond].
func CompareValues(op Op, left, right otlpdata.Value) bool {
	switch leftIs, rightIs := left.Kind() == otlpdata.ValueArray, right.Kind() == otlpdata.ValueArray; {
	case leftIs && !rightIs:
		return holdsInArray(left, op, func(op Op, e otlpdata.Value) bool { return compareValues(op, e, right) })
	case rightIs && !leftIs:
		return holdsInArray(right, op, func(op Op, e otlpdata.Value) bool { return compareValues(op, left, e) })
	}
	return compareValues(op, left, right)
}

// compareValues is CompareValues without a look into arrays.
func compareValues(op Op, left, right otlpdata.Value) bool {
	x, ok1 := number(left)
	y, ok2 := number(right)
	switch {
	case ok1 && ok2 && left.Kind() == right.Kind() && left.Kind() == otlpdata.ValueInt:
		return compare(op, left.Int(), right.Int())
	case ok1 && ok2:
		return compare(op, x, y)
	case left.Kind() != right.Kind():
		return false
	case left.Kind() == otlpdata.ValueString:
		return compare(op, left.Str(), right.Str())
	}
	return (op == Eq || op == Ne) && compare(op, left.AsString(), right.AsString())
}

// OperandFields yields the fields of an operand, including repeated ones.
func OperandFields(o Operand, yield func(Field) bool) bool { return eachOperandField(o, yield) }

func eachOperandField(o Operand, yield func(Field) bool) bool {
	switch o := o.(type) {
	case Field:
		return yield(o)
	case Arithmetic:
		return eachOperandField(o.Left, yield) && eachOperandField(o.Right, yield)
	case Truth:
		return eachField(o.Expr, yield)
	}
	return true
}

// Needed returns a condition without fields of the trace that holds for each span for which the
// comparison holds: its fields have a value.
func (c Compare) Needed() Expr { return And(needed(needed(nil, c.Left), c.Right)) }

func needed(dst []Expr, o Operand) []Expr {
	switch o := o.(type) {
	case Field:
		if !o.OfTrace() {
			return append(dst, Cond{Field: o, Op: Exists}.WithoutNames())
		}
	case Arithmetic:
		return needed(needed(dst, o.Left), o.Right)
	}
	return dst
}
