package traceql

import (
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// isConstant reports whether a token is none of a field, nor a word that means something to one field only.
func isConstant(t token) bool {
	return t.kind == number || t.kind == quoted || t.isWord("true") || t.isWord("false") || t.isWord("nil")
}

// compare returns what a comparison asks for. The field may stand on either side.
func (p *parser) compare(left, op, right token) (tracestore.Expr, error) {
	if isConstant(left) || isOneOf(right) && isValue(left) {
		if isConstant(right) {
			return nil, p.fail(left, "expected a field on one side of %s", op.text)
		}
		if op.text == "=~" || op.text == "!~" {
			return nil, p.fail(left, "the regular expression stands behind %s, the field before it", op.text)
		}
		left, right, op.text = right, left, mirrored(op.text)
	}
	f, err := p.field(left)
	switch {
	case err != nil:
		return nil, err
	case right.isWord("nil"):
		return p.compareNil(f, left, op)
	case op.text == "=~" || op.text == "!~":
		return p.compareLike(f, left, op, right)
	}
	switch f.class {
	case boolean:
		return p.compareBoolean(f, op, right)
	case oneOf:
		return p.compareWord(f, left, op, right)
	case timed:
		return p.compareDuration(f, left, op, right)
	case textual:
		if right.kind != quoted {
			return nil, p.noText(left, right)
		}
		return cond(f, op, tracestore.Text(right.text)), nil
	}
	return p.compareAttribute(f, op, right)
}

func isOneOf(t token) bool {
	f, ok := intrinsic(t.text)
	return t.kind == word && ok && f.class == oneOf
}

// isValue reports whether a word is a kind or a status.
func isValue(t token) bool {
	return t.kind == word && (slices.Contains(kinds(), t.text) || slices.Contains(statuses(), t.text))
}

func mirrored(op string) string {
	switch op[0] {
	case '<':
		return ">" + op[1:]
	case '>':
		return "<" + op[1:]
	}
	return op
}

func cond(f field, op token, value tracestore.Literal) tracestore.Cond {
	c := tracestore.Cond{Field: f.Field, Value: value}
	switch op.text {
	case "=":
		c.Op = tracestore.Eq
	case "!=":
		c.Op = tracestore.Ne
	case "<":
		c.Op = tracestore.Lt
	case "<=":
		c.Op = tracestore.Le
	case ">":
		c.Op = tracestore.Gt
	case ">=":
		c.Op = tracestore.Ge
	}
	return c
}

func isEquality(op token) bool { return op.text == "=" || op.text == "!=" }

func (p *parser) noText(left, right token) error {
	if right.kind == word && right.plain == len(right.text) {
		return p.fail(right, "%s is text, which stands in quotes: %s; fields are not compared with each other", left.text, quote(right.text))
	}
	return p.fail(right, "%s is text, which stands in quotes: %s", left.text, quote(right.text))
}

func (p *parser) compareNil(f field, left, op token) (tracestore.Expr, error) {
	switch {
	case !isEquality(op):
		return nil, p.fail(op, "nil is compared by = and != only")
	case f.class == boolean:
		return nil, p.fail(left, "%s is always true or false", left.text)
	}
	e := tracestore.Cond{Field: f.Field, Op: tracestore.Exists}
	if op.text == "=" {
		return tracestore.Not{Expr: e}, nil
	}
	return e, nil
}

// compareLike asks for a regular expression. !~ holds where there is a value and none matches.
func (p *parser) compareLike(f field, left, op, right token) (tracestore.Expr, error) {
	if f.class == timed || f.class == boolean {
		return nil, p.fail(op, "%s is no text; regular expressions are for text", left.text)
	}
	if right.kind != quoted {
		return nil, p.fail(right, "a regular expression stands in quotes: %s", quote(right.text))
	}
	re, err := p.pattern(right)
	if err != nil {
		return nil, err
	}
	like := tracestore.Cond{Field: f.Field, Op: tracestore.Like, Value: tracestore.Pattern(re)}
	if op.text == "=~" {
		return like, nil
	}
	return tracestore.And{tracestore.Cond{Field: f.Field, Op: tracestore.Exists}, tracestore.Not{Expr: like}}, nil
}

// What stands around a regular expression that must match all of a text.
const (
	anchorBegin = "^(?s:"
	anchorEnd   = ")$"
)

func (p *parser) pattern(t token) (*regexp.Regexp, error) {
	if len(t.text) > MaxPattern {
		return nil, p.fail(t, "this regular expression is %d bytes long; at most %d are allowed", len(t.text), MaxPattern)
	}
	tree, err := syntax.Parse(t.text, syntax.Perl)
	if err != nil {
		return nil, p.fail(t, "this is no regular expression (RE2): %s", patternProblem(err))
	}
	if p.steps += steps(tree); p.steps > MaxPatternSteps {
		return nil, p.fail(t, "the regular expressions, with what they repeat written out, have more than %d steps", MaxPatternSteps)
	}
	re, err := regexp.Compile(anchorBegin + t.text + anchorEnd)
	if err != nil { // of an open \Q, which would take in what stands behind
		re, err = regexp.Compile(anchorBegin + t.text + `\E` + anchorEnd)
	}
	if err != nil { // it stands deeper than alone
		return nil, p.fail(t, "this is no regular expression (RE2): %s", patternProblem(err))
	}
	return re, nil
}

func patternProblem(err error) string {
	if e, ok := err.(*syntax.Error); ok {
		return e.Code.String() + ": " + quote(e.Expr)
	}
	return err.Error()
}

// steps returns about how long the program of a regular expression is, which bounds what it costs to build and to run. It does not count
// beyond what is too much.
func steps(re *syntax.Regexp) int {
	const bounds = 16 // of ranges in a class of characters that cost as much as a step
	n := 1 + len(re.Rune)/bounds
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += steps(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, 1+MaxPatternSteps)
}

func (p *parser) compareBoolean(f field, op, right token) (tracestore.Expr, error) {
	yes := right.isWord("true")
	if !isEquality(op) || !yes && !right.isWord("false") {
		return nil, p.fail(right, "expected = true or = false")
	}
	if yes != (op.text == "=") {
		return not(f.holds), nil
	}
	return f.holds, nil
}

// compareWord compares a kind or a status.
func (p *parser) compareWord(f field, left, op, right token) (tracestore.Expr, error) {
	if !isEquality(op) {
		return nil, p.fail(op, "%s is compared by = and != only", left.text)
	}
	words := statuses()
	if f.Place == tracestore.Kind {
		words = kinds()
	}
	if right.kind == number || !slices.Contains(words, right.text) {
		return nil, p.fail(right, "unknown %s %s; use %s", strings.TrimPrefix(left.text, "span:"), quote(right.text), listed(words))
	}
	value := right.text
	if value == unspecified {
		value = ""
	}
	return cond(f, op, tracestore.Text(value)), nil
}

// unspecified is the word for a kind that the store knows as "".
const unspecified = "unspecified"

func kinds() []string {
	return []string{"server", "client", "producer", "consumer", "internal", unspecified}
}

func statuses() []string { return []string{"error", "ok", "unset"} }

func listed(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (p *parser) compareDuration(f field, left, op, right token) (tracestore.Expr, error) {
	if right.kind != number {
		return nil, p.fail(right, "%s is compared with a duration, such as 500ms, 1.5s or 2m30s", left.text)
	}
	if _, err := strconv.ParseFloat(right.text, 64); err == nil {
		return nil, p.fail(right, "a duration has a unit: %[1]sms or %[1]ss", clipped(right.text))
	}
	d, problem := parseDuration(right.text)
	if problem != "" {
		return nil, p.fail(right, "%s", problem)
	}
	return cond(f, op, tracestore.Number(float64(d))), nil
}

// compareAttribute compares a value whose type is not known.
func (p *parser) compareAttribute(f field, op, right token) (tracestore.Expr, error) {
	switch {
	case right.kind == quoted:
		return cond(f, op, tracestore.Text(right.text)), nil
	case right.isWord("true") || right.isWord("false"):
		if !isEquality(op) {
			return nil, p.fail(op, "%s is compared by = and != only", right.text)
		}
		return cond(f, op, tracestore.Text(right.text)), nil
	case right.kind == word && isDigits(strings.TrimPrefix(right.text, ".")):
		return nil, p.fail(right, "a number begins with a digit: 0%s", clipped(right.text))
	case right.kind == word:
		return nil, p.fail(right, "fields are not compared with each other; text stands in quotes: %s", quote(right.text))
	}
	n, err := strconv.ParseFloat(right.text, 64)
	switch {
	case err == nil && !strings.ContainsAny(right.text, "_xXpPiInN"):
		return cond(f, op, tracestore.Number(n)), nil
	case math.IsInf(n, 0):
		return nil, p.fail(right, "this number is too large for 64-bit floats")
	}
	if _, problem := parseDuration(right.text); problem == "" {
		return nil, p.fail(right, "attributes have no unit; write the number alone, in the unit that the attribute is in")
	}
	return nil, p.fail(right, "%s is no number; text stands in quotes", quote(right.text))
}

// maxDuration is what fits the nanoseconds of a time.Duration, in whole days.
const maxDuration = 106_751 * 24 * time.Hour

// parseDuration reads whole numbers and decimal fractions with the units d, h, m, s, ms, us, µs and ns, one after the other. Otherwise it
// says what is wrong.
func parseDuration(s string) (sum time.Duration, problem string) {
	if strings.HasPrefix(s, "-") {
		return 0, "durations are not negative"
	}
	for rest := s; rest != ""; {
		digits := max(0, strings.IndexFunc(rest, unicode.IsLetter))
		n := strings.IndexFunc(rest[digits:], func(c rune) bool { return !unicode.IsLetter(c) })
		if n < 0 {
			n = len(rest) - digits
		}
		part, days := rest[:digits+n], time.Duration(1)
		if number, ok := strings.CutSuffix(part, "d"); ok {
			part, days = number+"h", 24
		}
		d, err := time.ParseDuration(part)
		if err != nil || digits == 0 {
			return 0, quote(s) + " is no duration; write it as 500ms, 1.5s or 2m30s, with the units d, h, m, s, ms, us and ns"
		}
		if d > (maxDuration-sum)/days {
			return 0, "this duration is too long; it can be 106751d at most"
		}
		sum += d * days
		rest = rest[digits+n:]
	}
	return sum, ""
}
