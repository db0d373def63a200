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

// isConstant reports whether a token is a value in every context, unlike fields, kinds and
// statuses.
func isConstant(t token) bool {
	return t.kind == number || t.kind == quoted || t.isWord("true") || t.isWord("false") || t.isWord("nil")
}

// compare returns the condition for a comparison. The field may be on either side.
func (p *parser) compare(left, op, right token) (tracestore.Expr, error) {
	if isConstant(left) || isWordField(right) && isWordValue(left) {
		if isConstant(right) {
			return nil, p.fail(left, "expected a field on one side of %s", op.text)
		}
		if op.text == "=~" || op.text == "!~" {
			return nil, p.fail(left, "write the field before %s and the regular expression after it", op.text)
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
		return p.comparePattern(f, left, op, right)
	}
	switch f.class() {
	case tracestore.BooleanField:
		return p.compareBoolean(f, op, right)
	case tracestore.WordField:
		return p.compareWord(f, left, op, right)
	case tracestore.DurationField:
		return p.compareDuration(f, left, op, right)
	case tracestore.NumberField:
		return p.compareNumber(f, left, op, right)
	case tracestore.TextField:
		if right.kind != quoted {
			return nil, p.errNotText(left, right)
		}
		return cond(f, op, tracestore.Text(right.text)), nil
	}
	return p.compareAttribute(f, op, right)
}

func isWordField(t token) bool {
	f, ok := intrinsic(t.text)
	return t.kind == word && ok && f.class() == tracestore.WordField
}

// isWordValue reports whether a word is a value of a field with few values, such as a kind.
func isWordValue(t token) bool {
	return t.kind == word && slices.ContainsFunc(tracestore.Places(), func(p tracestore.PlaceInfo) bool {
		return slices.Contains(p.Words, t.text)
	})
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

func (p *parser) errNotText(left, right token) error {
	if right.kind == word && right.plain == len(right.text) {
		return p.fail(right, "put the text for %s in quotes: %s; comparing two fields is not supported", left.text, quote(right.text))
	}
	return p.fail(right, "put the text for %s in quotes: %s", left.text, quote(right.text))
}

func (p *parser) compareNil(f field, left, op token) (tracestore.Expr, error) {
	switch {
	case !isEquality(op):
		return nil, p.fail(op, "nil supports only = and !=")
	case f.shorthand != nil:
		return nil, p.fail(left, "%s always has a value: true or false", left.text)
	}
	e := tracestore.Cond{Field: f.Field, Op: tracestore.Exists}
	if op.text == "=" {
		return tracestore.Not{Expr: e}, nil
	}
	return e, nil
}

// comparePattern returns the condition for a regular expression. !~ holds if there is a value and
// none matches.
func (p *parser) comparePattern(f field, left, op, right token) (tracestore.Expr, error) {
	if c := f.class(); c == tracestore.DurationField || c == tracestore.NumberField || c == tracestore.BooleanField {
		return nil, p.fail(op, "%s is not text; regular expressions apply only to text", left.text)
	}
	if right.kind != quoted {
		return nil, p.fail(right, "put the regular expression in quotes: %s", quote(right.text))
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

// Anchors around a regular expression, so that it must match the whole text.
const (
	anchorBegin = "^(?s:"
	anchorEnd   = ")$"
)

// Prefix and suffix of the regular expression for a text that values of AnyText contain in any
// case.
const (
	containsBegin = "(?i).*"
	containsEnd   = ".*"
)

// containing returns the condition for a text in quotes without a field: the span contains the
// text.
func (p *parser) containing(t token) (tracestore.Expr, error) {
	if t.text == "" {
		return nil, p.fail(t, "the text to search for is empty")
	}
	t.text = containsBegin + regexp.QuoteMeta(t.text) + containsEnd
	re, err := p.pattern(t)
	if err != nil {
		return nil, err
	}
	return tracestore.Cond{Field: tracestore.Field{Place: tracestore.AnyText}, Op: tracestore.Like, Value: tracestore.Pattern(re)}, nil
}

// contained is the inverse of containing: it returns the text that a condition searches for, if
// containing could have returned the condition.
func contained(c tracestore.Cond) (text string, ok bool) {
	if c.Field.Place != tracestore.AnyText || c.Op != tracestore.Like {
		return "", false
	}
	escaped, ok1 := strings.CutPrefix(c.Value.Regexp.String(), anchorBegin+containsBegin)
	escaped, ok2 := strings.CutSuffix(escaped, containsEnd+anchorEnd)
	var b strings.Builder
	for i := 0; i < len(escaped); i++ {
		if escaped[i] == '\\' && i+1 < len(escaped) {
			i++
		}
		b.WriteByte(escaped[i])
	}
	text = b.String()
	return text, ok1 && ok2 && text != "" && regexp.QuoteMeta(text) == escaped
}

func (p *parser) pattern(t token) (*regexp.Regexp, error) {
	if len(t.text) > MaxPattern {
		return nil, p.fail(t, "regular expression has %d bytes; the maximum is %d", len(t.text), MaxPattern)
	}
	tree, err := syntax.Parse(t.text, syntax.Perl)
	if err != nil {
		return nil, p.fail(t, "invalid regular expression (RE2): %s", syntaxProblem(err))
	}
	if p.steps += tracestore.PatternSteps(tree, MaxPatternSteps); p.steps > MaxPatternSteps {
		return nil, p.fail(t, "regular expressions have more than %d steps with repetitions expanded", MaxPatternSteps)
	}
	re, err := regexp.Compile(anchorBegin + t.text + anchorEnd)
	if err != nil { // an open \Q would include the closing anchor
		re, err = regexp.Compile(anchorBegin + t.text + `\E` + anchorEnd)
	}
	if err != nil { // nested too deeply with the anchors
		return nil, p.fail(t, "invalid regular expression (RE2): %s", syntaxProblem(err))
	}
	return re, nil
}

func syntaxProblem(err error) string {
	if e, ok := err.(*syntax.Error); ok {
		return e.Code.String() + ": " + quote(e.Expr)
	}
	return err.Error()
}

func (p *parser) compareBoolean(f field, op, right token) (tracestore.Expr, error) {
	yes := right.isWord("true")
	if !isEquality(op) || !yes && !right.isWord("false") {
		return nil, p.fail(right, "expected = true or = false")
	}
	if yes != (op.text == "=") {
		return not(f.shorthand.Expr()), nil
	}
	return f.shorthand.Expr(), nil
}

// compareWord returns the condition for a field with few values.
func (p *parser) compareWord(f field, left, op, right token) (tracestore.Expr, error) {
	if !isEquality(op) {
		return nil, p.fail(op, "%s supports only = and !=", left.text)
	}
	info := f.Place.Info()
	if words := info.Words; right.kind == number || !slices.Contains(words, right.text) {
		return nil, p.fail(right, "unknown %s %s; use %s", strings.TrimPrefix(left.text, "span:"), quote(right.text), orList(words))
	}
	value := right.text
	if value == info.Empty {
		value = ""
	}
	return cond(f, op, tracestore.Text(value)), nil
}

func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (p *parser) compareDuration(f field, left, op, right token) (tracestore.Expr, error) {
	if right.kind != number {
		return nil, p.fail(right, "compare %s with a duration, such as 500ms, 1.5s or 2m30s", left.text)
	}
	if _, err := strconv.ParseFloat(right.text, 64); err == nil {
		return nil, p.fail(right, "missing unit of the duration: write %[1]sms or %[1]ss", shorten(right.text))
	}
	d, problem := parseDuration(right.text)
	if problem != "" {
		return nil, p.fail(right, "%s", problem)
	}
	return cond(f, op, tracestore.Number(float64(d))), nil
}

// compareNumber returns the condition for a field with numbers.
func (p *parser) compareNumber(f field, left, op, right token) (tracestore.Expr, error) {
	n, err := strconv.ParseFloat(right.text, 64)
	if right.kind != number || err != nil || strings.ContainsAny(right.text, "_xXpPiInN") {
		return nil, p.fail(right, "compare %s with a number, such as 3", left.text)
	}
	return cond(f, op, tracestore.Number(n)), nil
}

// compareAttribute returns the condition for an attribute, whose type is unknown.
func (p *parser) compareAttribute(f field, op, right token) (tracestore.Expr, error) {
	switch {
	case right.kind == quoted:
		return cond(f, op, tracestore.Text(right.text)), nil
	case right.isWord("true") || right.isWord("false"):
		if !isEquality(op) {
			return nil, p.fail(op, "%s supports only = and !=", right.text)
		}
		return cond(f, op, tracestore.Text(right.text)), nil
	case right.kind == word && isDigits(strings.TrimPrefix(right.text, ".")):
		return nil, p.fail(right, "numbers start with a digit: write 0%s", shorten(right.text))
	case right.kind == word:
		return nil, p.fail(right, "comparing two fields is not supported; put text in quotes: %s", quote(right.text))
	}
	n, err := strconv.ParseFloat(right.text, 64)
	switch {
	case err == nil && !strings.ContainsAny(right.text, "_xXpPiInN"):
		return cond(f, op, tracestore.Number(n)), nil
	case math.IsInf(n, 0):
		return nil, p.fail(right, "number is too large for a 64-bit float")
	}
	if _, problem := parseDuration(right.text); problem == "" {
		return nil, p.fail(right, "attributes have no unit; write only the number, in the unit of the attribute")
	}
	return nil, p.fail(right, "invalid number %s; put text in quotes", quote(right.text))
}

// maxDuration is the maximum of time.Duration in whole days.
const maxDuration = 106_751 * 24 * time.Hour

// parseDuration parses a sequence of numbers with the units d, h, m, s, ms, us, µs and ns. Numbers
// may have a decimal fraction. problem describes what is wrong; it is "" on success.
func parseDuration(s string) (sum time.Duration, problem string) {
	if strings.HasPrefix(s, "-") {
		return 0, "durations cannot be negative"
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
			return 0, "invalid duration " + quote(s) + "; write 500ms, 1.5s or 2m30s, with the units d, h, m, s, ms, us and ns"
		}
		if d > (maxDuration-sum)/days {
			return 0, "duration is too long; the maximum is 106751d"
		}
		sum += d * days
		rest = rest[digits+n:]
	}
	return sum, ""
}
