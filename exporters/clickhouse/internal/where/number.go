package where

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Integers are compared as 64-bit floats, to which several integers may be rounded. The rounding is
// monotonic, so that a comparison is the same as one with exact integers.

// integers are the values of a column of integers, in ascending order by number: the integer with
// number i.
type integers struct {
	float func(i uint64) float64
	text  func(i uint64) string
}

// unsigned are the integers of a column of type UInt64.
func unsigned() integers { return integers{func(i uint64) float64 { return float64(i) }, Uint} }

// signed are the integers of a column of type Int64.
func signed() integers {
	value := func(i uint64) int64 { return int64(i - 1<<63) }
	return integers{
		func(i uint64) float64 { return float64(value(i)) },
		func(i uint64) string { return strconv.FormatInt(value(i), 10) },
	}
}

// compare returns the comparison of a column of integers with a number.
func (t integers) compare(column string, op tracestore.Op, n float64) string {
	if math.IsNaN(n) {
		if op == tracestore.Ne {
			return Always
		}
		return Never
	}
	atLeast := t.first(func(f float64) bool { return f >= n })
	above := t.first(func(f float64) bool { return f > n })
	switch op {
	case tracestore.Eq:
		return t.between(column, atLeast, above)
	case tracestore.Ne:
		return not(t.between(column, atLeast, above))
	case tracestore.Lt:
		return t.below(column, atLeast)
	case tracestore.Le:
		return t.below(column, above)
	case tracestore.Gt:
		return t.from(column, above)
	case tracestore.Ge:
		return t.from(column, atLeast)
	}
	return Never
}

// limit is the number of an integer. none is true if it is above all.
type limit struct {
	at   uint64
	none bool
}

// first returns the first integer for which a monotonic predicate holds.
func (t integers) first(holds func(float64) bool) limit {
	if !holds(t.float(math.MaxUint64)) {
		return limit{none: true}
	}
	low, high := uint64(0), uint64(math.MaxUint64) // holds for high
	for low < high {
		if middle := low + (high-low)/2; holds(t.float(middle)) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return limit{at: low}
}

// from returns the condition that a column is at least a limit.
func (t integers) from(column string, l limit) string {
	switch {
	case l.none:
		return Never
	case l.at == 0:
		return Always
	}
	return column + " >= " + t.text(l.at)
}

// below returns the condition that a column is below a limit.
func (t integers) below(column string, l limit) string {
	switch {
	case l.none:
		return Always
	case l.at == 0:
		return Never
	}
	return column + " < " + t.text(l.at)
}

// between returns the condition that a column is at least one limit and below another.
func (t integers) between(column string, from, to limit) string {
	switch {
	case from == to:
		return Never
	case !to.none && to.at == from.at+1:
		return column + " = " + t.text(from.at)
	}
	return all(t.from(column, from), t.below(column, to))
}

// sqlFloat returns the literal of a float. It has the same bits, unless it is NaN.
func sqlFloat(f float64) string {
	const exact = 1 << 53
	if i := int64(f); math.Abs(f) < exact && float64(i) == f && (i != 0 || !math.Signbit(f)) {
		return strconv.FormatInt(i, 10)
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], math.Float64bits(f))
	return "reinterpretAsFloat64(unhex('" + hex.EncodeToString(b[:]) + "'))"
}

// compareFloat returns the comparison of a column of floats with a number.
func compareFloat(column string, op tracestore.Op, n float64) string {
	if math.IsNaN(n) {
		if op == tracestore.Ne {
			return Always
		}
		return Never
	}
	symbol, ok := symbolOf(op)
	if !ok {
		return Never
	}
	return column + " " + symbol + " " + sqlFloat(n)
}

// symbolOf returns the comparison operator of SQL.
func symbolOf(op tracestore.Op) (string, bool) {
	symbols := [...]string{
		tracestore.Eq: "=", tracestore.Ne: "!=", tracestore.Lt: "<", tracestore.Le: "<=", tracestore.Gt: ">", tracestore.Ge: ">=",
	}
	if int(op) >= len(symbols) {
		return "", false
	}
	return symbols[op], true
}
