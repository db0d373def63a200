package traceql

import (
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// isConstant reports whether a token is a value in every context, unlike fields, kinds and
// statuses.
func isConstant(t token) bool {
	return t.kind == number || t.kind == quoted || t.isWord("true") || t.isWord("false") || t.isWord("nil") ||
		t.isWord("minInt") || t.isWord("maxInt")
}

// constant returns the value of a constant other than nil.
func (p *parser) constant(t token) (v otlpdata.Value, typ valueType, err error) {
	switch {
	case t.kind == quoted:
		return otlpdata.StringValue(t.text), textType, nil
	case t.isWord("true"), t.isWord("false"):
		return otlpdata.BoolValue(t.text == "true"), boolType, nil
	case t.isWord("nil"):
		return v, 0, p.fail(t, "nil is allowed only after = and !=")
	}
	v, _, err = p.number(t)
	return v, numberType, err
}

// number returns the value of a number or of a duration, which is in nanoseconds.
func (p *parser) number(t token) (v otlpdata.Value, duration bool, err error) {
	switch {
	case t.value != nil:
		return *t.value, false, nil
	case t.isWord("minInt"):
		return otlpdata.IntValue(math.MinInt64), false, nil
	case t.isWord("maxInt"):
		return otlpdata.IntValue(math.MaxInt64), false, nil
	case isDigits(t.text):
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			return v, false, p.fail(t, "integer is too large for 64 bits; write 1e20 for a float")
		}
		return otlpdata.IntValue(n), false, nil
	}
	n, err := strconv.ParseFloat(t.text, 64)
	switch {
	case math.IsInf(n, 0):
		return v, false, p.fail(t, "number is too large for a 64-bit float")
	case err == nil && !strings.ContainsAny(t.text, "_xXpPiInN"):
		return otlpdata.DoubleValue(n), false, nil
	}
	d, problem := parseDuration(t.text)
	if problem != "" {
		return v, true, p.fail(t, "%s", problem)
	}
	return otlpdata.DoubleValue(float64(d)), true, nil
}

func isFinite(v otlpdata.Value) bool {
	return v.Kind() == otlpdata.ValueInt || !math.IsInf(v.Double(), 0) && !math.IsNaN(v.Double())
}

// compareTerms returns the condition for a comparison.
func (p *parser) compareTerms(left term, op token, right term) (tracestore.Expr, error) {
	isNil := func(t *term) bool { return t.single && t.tok.isWord("nil") }
	l, r := left.single && isConstant(left.tok), right.single && isConstant(right.tok)
	switch {
	case isNil(&left) && isNil(&right):
		if !isEquality(op) {
			return nil, p.fail(op, "nil supports only = and !=")
		}
		return tracestore.Or{}, nil
	case left.single && right.single && l && r:
		if isNil(&left) || isNil(&right) {
			return p.compareComputedNil(op, isNil(&left), left, right)
		}
		return p.compareConstants(left.tok, op, right.tok)
	case left.single && right.single && (l || r || isWordField(left.tok) && isWordValue(right.tok) ||
		isWordField(right.tok) && isWordValue(left.tok)):
		return p.compare(left.tok, op, right.tok)
	case isNil(&left) || isNil(&right):
		return p.compareComputedNil(op, isNil(&left), left, right)
	case left.single && right.single && p.isUnknown(right.tok):
		return p.compare(left.tok, op, right.tok) // the error says what to write
	}
	return p.compareComputed(left, op, right)
}

// isUnknown reports whether a token is a word that is neither a field nor the beginning of one.
func (p *parser) isUnknown(t token) bool {
	if t.kind != word || strings.ContainsAny(t.text, ".:") {
		return false
	}
	_, err := p.field(t)
	return err != nil
}

// compareConstants returns the constant result of a comparison.
func (p *parser) compareConstants(left, op, right token) (tracestore.Expr, error) {
	x, typ, err := p.constant(left)
	if err != nil {
		return nil, err
	}
	y, other, err := p.constant(right)
	if err != nil {
		return nil, err
	}
	if typ != other {
		return nil, p.fail(op, "%s compares values of the same type", op.text)
	}
	holds := false
	switch {
	case op.text == "=~" || op.text == "!~":
		if typ != textType {
			return nil, p.fail(op, "regular expressions apply only to text")
		}
		re, err := p.pattern(right)
		if err != nil {
			return nil, err
		}
		holds = re.MatchString(x.Str()) == (op.text == "=~")
	case typ == boolType && !isEquality(op):
		return nil, p.fail(op, "%s supports only = and !=", right.text)
	default:
		holds = tracestore.CompareValues(opOf(op), x, y)
	}
	if holds {
		return tracestore.And{}, nil
	}
	return tracestore.Or{}, nil
}

// compareComputedNil returns the condition for a comparison of a computed value with nil.
func (p *parser) compareComputedNil(op token, leftIsNil bool, left, right term) (tracestore.Expr, error) {
	if !isEquality(op) {
		return nil, p.fail(op, "nil supports only = and !=")
	}
	if leftIsNil {
		left = right
	}
	o, _, err := p.computed(left)
	if err != nil {
		return nil, err
	}
	var e tracestore.Expr = tracestore.Compare{Op: tracestore.Exists, Left: o}
	switch o.(type) {
	case tracestore.Constant, tracestore.Truth:
		e = tracestore.And{}
	}
	if op.text == "=" {
		return not(e), nil
	}
	return e, nil
}

// compareComputed returns the condition for a comparison of two values. Both are not nil.
func (p *parser) compareComputed(left term, op token, right term) (tracestore.Expr, error) {
	for _, side := range []term{left, right} {
		if side.single && !isConstant(side.tok) && isWordValue(side.tok) && !isShorthand(side.tok) {
			return nil, p.errUnquoted(side.tok)
		}
	}
	l, typ, err := p.computed(left)
	if err != nil {
		return nil, err
	}
	r, other, err := p.computed(right)
	if err != nil {
		return nil, err
	}
	switch {
	case op.text == "=~" || op.text == "!~":
		if right.single && right.tok.kind == quoted && typ == anyType {
			_, err := p.pattern(right.tok)
			return tracestore.Or{}, err // the left side is a number
		}
		if right.single && right.tok.kind == quoted {
			return nil, p.fail(op, "regular expressions apply only to text")
		}
		return nil, p.fail(right.tok, "put the regular expression in quotes: %s", quote(right.tok.text))
	case left.single && isShorthand(left.tok) && mayBeText(other):
		return nil, p.errUnquoted(left.tok)
	case right.single && isShorthand(right.tok) && mayBeText(typ):
		return nil, p.errUnquoted(right.tok)
	case typ != other && typ != anyType && other != anyType:
		return nil, p.fail(op, "both sides of %s must have the same type: text, numbers, conditions, kinds or statuses", op.text)
	case !isEquality(op) && (max(typ, other) >= boolType):
		return nil, p.fail(op, "%s compares only numbers and text", op.text)
	}
	e := tracestore.Compare{Op: opOf(op), Left: l, Right: r}
	truth, ok1 := l.(tracestore.Truth)
	constant, ok2 := r.(tracestore.Constant)
	if !ok1 || !ok2 {
		truth, ok1 = r.(tracestore.Truth)
		constant, ok2 = l.(tracestore.Constant)
	}
	if ok1 && ok2 { // a condition is always true or false
		if constant.Value.Bool() == (e.Op == tracestore.Eq) {
			return truth.Expr, nil
		}
		return not(truth.Expr), nil
	}
	return e, nil
}

// isShorthand reports whether a token is the name of a condition, such as error.
func isShorthand(t token) bool {
	f, ok := intrinsic(t.text)
	return t.kind == word && ok && f.shorthand != nil
}

func mayBeText(t valueType) bool { return t == anyType || t == textType }

func (p *parser) errUnquoted(t token) error {
	return p.fail(t, "put text in quotes: %s", quote(t.text))
}

// compare returns the condition for a comparison of a field with a constant. The field may be on
// either side.
func (p *parser) compare(left, op, right token) (tracestore.Expr, error) {
	if isConstant(left) || isWordField(right) && isWordValue(left) {
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
	case tracestore.DurationField, tracestore.NumberField:
		return p.compareNumber(f, left, op, right)
	case tracestore.TextField:
		if right.kind != quoted {
			return nil, p.errNotText(left, right)
		}
		return cond(f, op, tracestore.Text(IDText(f.Place, right.text))), nil
	}
	return p.compareAttribute(f, op, right)
}

// IDText returns the text of an id as stores write it: in lower case and with leading zeros.
func IDText(place tracestore.Place, text string) string {
	digits := 16
	switch place {
	case tracestore.TraceID, tracestore.LinkTraceID:
		digits = 32
	case tracestore.SpanID, tracestore.ParentID, tracestore.LinkSpanID:
	default:
		return text
	}
	lower := strings.ToLower(text)
	if text == "" || len(text) > digits || strings.Trim(lower, "0123456789abcdef") != "" {
		return text
	}
	return strings.Repeat("0", digits-len(text)) + lower
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
	return tracestore.Cond{Field: f.Field, Op: opOf(op), Value: value}
}

// opOf returns the operator for a comparison other than =~ and !~.
func opOf(op token) tracestore.Op {
	switch op.text {
	case "!=":
		return tracestore.Ne
	case "<":
		return tracestore.Lt
	case "<=":
		return tracestore.Le
	case ">":
		return tracestore.Gt
	case ">=":
		return tracestore.Ge
	}
	return tracestore.Eq
}

func isEquality(op token) bool { return op.text == "=" || op.text == "!=" }

func (p *parser) errNotText(left, right token) error {
	return p.fail(right, "put the text for %s in quotes: %s", left.text, quote(right.text))
}

// mayBeAbsent reports whether a span may have no value of a field.
func mayBeAbsent(f field, name string) bool {
	switch f.Place {
	case tracestore.EventName, tracestore.ParentID, tracestore.ErrorGroup, tracestore.EventTime,
		tracestore.LinkTraceID, tracestore.LinkSpanID:
		return true
	}
	return f.Place.HasKey() || f.Parent || name == ".service.name"
}

func (p *parser) compareNil(f field, left, op token) (tracestore.Expr, error) {
	switch {
	case !isEquality(op):
		return nil, p.fail(op, "nil supports only = and !=")
	case f.shorthand != nil:
		return nil, p.fail(left, "%s always has a value: true or false", left.text)
	}
	e := tracestore.Cond{Field: f.Field, Op: tracestore.Exists}
	if op.text == "=" && !mayBeAbsent(f, left.text) {
		return nil, p.fail(left, "%s always has a value, so it is never nil", left.text)
	}
	if op.text == "=" {
		return tracestore.Not{Expr: e}, nil
	}
	return e, nil
}

// comparePattern returns the condition for a regular expression. !~ holds if there is a text and
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
	exists := tracestore.Cond{Field: f.Field, Op: tracestore.Exists}
	if f.Place.HasKey() {
		like.Value.Kind, exists.Value.Kind = otlpdata.ValueString, otlpdata.ValueString
	}
	if op.text == "=~" {
		return like, nil
	}
	return tracestore.And{exists, tracestore.Not{Expr: like}}, nil
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

// CheckPattern checks a regular expression against MaxPattern and MaxPatternSteps. steps are those
// of the other expressions of the search; the result includes them.
func CheckPattern(text string, steps int) (int, error) {
	if len(text) > MaxPattern {
		return steps, fmt.Errorf("regular expression has %d bytes; the maximum is %d", len(text), MaxPattern)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return steps, fmt.Errorf("invalid regular expression (RE2): %s", syntaxProblem(err))
	}
	if steps += tracestore.PatternSteps(tree, MaxPatternSteps); steps > MaxPatternSteps {
		return steps, fmt.Errorf("regular expressions have more than %d steps with repetitions expanded", MaxPatternSteps)
	}
	return steps, nil
}

func (p *parser) pattern(t token) (*regexp.Regexp, error) {
	var err error
	if p.steps, err = CheckPattern(t.text, p.steps); err != nil {
		return nil, p.fail(t, "%s", err)
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

// compareNumber returns the condition for a field with numbers or durations.
func (p *parser) compareNumber(f field, left, op, right token) (tracestore.Expr, error) {
	if right.kind != number && !right.isWord("minInt") && !right.isWord("maxInt") {
		if f.class() == tracestore.NumberField {
			return nil, p.fail(right, "compare %s with a number, such as 3", left.text)
		}
		return nil, p.fail(right, "compare %s with a duration, such as 500ms, 1.5s or 2m30s", left.text)
	}
	v, _, err := p.number(right)
	if err != nil {
		return nil, err
	}
	c := cond(f, op, numberLiteral(v))
	if n := c.Value.Number; f.Place == tracestore.NestedParent && !f.Parent &&
		(c.Op == tracestore.Lt && n == 0 || (c.Op == tracestore.Le || c.Op == tracestore.Eq) && n == -1) {
		return tracestore.Not{Expr: tracestore.Cond{Field: tracestore.Field{Place: tracestore.ParentID}, Op: tracestore.Exists}}, nil
	}
	return c, nil
}

func numberLiteral(v otlpdata.Value) tracestore.Literal {
	if v.Kind() == otlpdata.ValueInt {
		return tracestore.Number(float64(v.Int()))
	}
	return tracestore.Number(v.Double())
}

// compareAttribute returns the condition for an attribute, whose type is unknown. The language has
// no constants for arrays and maps, so a text that looks like their JSON is compared with values of
// all types.
func (p *parser) compareAttribute(f field, op, right token) (tracestore.Expr, error) {
	if !isConstant(right) {
		return nil, p.errUnquoted(right)
	}
	v, typ, err := p.constant(right)
	switch {
	case err != nil:
		return nil, err
	case typ == textType && isEquality(op) && (strings.HasPrefix(right.text, "[") || strings.HasPrefix(right.text, "{")):
		return cond(f, op, tracestore.Text(right.text)), nil
	case typ == textType:
		return cond(f, op, tracestore.String(right.text)), nil
	case typ == numberType:
		return cond(f, op, numberLiteral(v)), nil
	case !isEquality(op):
		return nil, p.fail(op, "%s supports only = and !=", right.text)
	}
	return cond(f, op, tracestore.Bool(v.Bool())), nil
}

// maxDuration is the maximum of time.Duration in whole days.
const maxDuration = 106_751 * 24 * time.Hour

// parseDuration parses a sequence of numbers with the units y, w, d, h, m, s, ms, us, µs and ns.
// Numbers may have a decimal fraction. problem describes what is wrong; it is "" on success.
func parseDuration(s string) (sum time.Duration, problem string) {
	for rest := s; rest != ""; {
		digits := max(0, strings.IndexFunc(rest, unicode.IsLetter))
		n := strings.IndexFunc(rest[digits:], func(c rune) bool { return !unicode.IsLetter(c) })
		if n < 0 {
			n = len(rest) - digits
		}
		part, days := rest[:digits+n], time.Duration(1)
		for unit, hours := range map[string]time.Duration{"d": 24, "w": 7 * 24, "y": 365 * 24} {
			if number, ok := strings.CutSuffix(part, unit); ok {
				part, days = number+"h", hours
			}
		}
		d, err := time.ParseDuration(part)
		if err != nil || digits == 0 {
			return 0, "invalid number or duration " + quote(s) + "; write 500ms, 1.5s or 2m30s, with the units y, w, d, h, m, s, ms, us and ns"
		}
		if d > (maxDuration-sum)/days {
			return 0, "duration is too long; the maximum is 106751d"
		}
		sum += d * days
		rest = rest[digits+n:]
	}
	return sum, ""
}
