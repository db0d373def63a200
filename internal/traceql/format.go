package traceql

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Format returns the text of a set. If the set is a result of [Parse] and the text has at most
// MaxText bytes, parsing the text returns the same set. Parts of other sets that the language
// cannot express are written in a similar notation.
func Format(set storequery.SpanSet) string {
	var w printer
	w.set(set, setOr)
	return w.String()
}

type printer struct{ strings.Builder }

// Precedence of operators, in ascending order.
const (
	setOr = iota
	setAnd
	setRelation
	setAtom

	exprOr
	exprAnd
	exprAtom
)

// set writes a set, in parentheses if its precedence is below the one required at its position.
func (w *printer) set(s storequery.SpanSet, place int) {
	switch s := s.(type) {
	case nil:
		w.selectNode(nil)
	case storequery.Select:
		w.selectNode(s.Where)
	case storequery.Or:
		w.binary(s.Left, " || ", s.Right, setOr, place)
	case storequery.And:
		w.binary(s.Left, " && ", s.Right, setAnd, place)
	case storequery.Descendant:
		w.binary(s.Ancestors, " >> ", s.Spans, setRelation, place)
	case storequery.Child:
		w.binary(s.Parents, " > ", s.Spans, setRelation, place)
	}
}

func (w *printer) binary(left storequery.SpanSet, op string, right storequery.SpanSet, own, place int) {
	w.parenthesized(own < place, func() {
		w.set(left, own)
		w.WriteString(op)
		w.set(right, own+1)
	})
}

func (w *printer) parenthesized(needed bool, write func()) {
	if !needed {
		write()
		return
	}
	w.WriteByte('(')
	write()
	w.WriteByte(')')
}

func (w *printer) selectNode(e tracestore.Expr) {
	if e == nil {
		w.WriteString("{}")
		return
	}
	w.WriteString("{ ")
	w.expr(e, exprOr)
	w.WriteString(" }")
}

func (w *printer) expr(e tracestore.Expr, place int) {
	switch e := e.(type) {
	case nil:
		w.WriteString("true")
	case tracestore.And:
		w.and(e, place)
	case tracestore.Or:
		w.or(e, place)
	case tracestore.Not:
		w.not(e.Expr)
	case tracestore.Cond:
		w.cond(e)
	}
}

func (w *printer) or(parts tracestore.Or, place int) {
	if len(parts) == 0 {
		w.WriteString("false")
		return
	}
	w.parenthesized(exprOr < place && len(parts) > 1, func() {
		for i, part := range parts {
			if i > 0 {
				w.WriteString(" || ")
			}
			w.expr(part, exprAnd)
		}
	})
}

func (w *printer) and(parts tracestore.And, place int) {
	if len(parts) == 0 {
		w.WriteString("true")
		return
	}
	w.parenthesized(exprAnd < place, func() {
		for i := 0; i < len(parts); i++ {
			if i > 0 {
				w.WriteString(" && ")
			}
			if like, ok := isNotLike(parts[i:]); ok {
				w.comparison(like, " !~ ", literal(like))
				i++
				continue
			}
			w.expr(parts[i], exprAtom)
		}
	})
}

// isNotLike reports whether parts begin with the two conditions that !~ stands for.
func isNotLike(parts tracestore.And) (like tracestore.Cond, ok bool) {
	if len(parts) < 2 {
		return like, false
	}
	exists, isCond := parts[0].(tracestore.Cond)
	negation, isNot := parts[1].(tracestore.Not)
	if !isCond || !isNot || exists.Op != tracestore.Exists {
		return like, false
	}
	like, ok = negation.Expr.(tracestore.Cond)
	return like, ok && like.Op == tracestore.Like && like.Field == exists.Field
}

func (w *printer) not(e tracestore.Expr) {
	c, ok := e.(tracestore.Cond)
	if s := shorthand(c); ok && s != nil && s.Negated {
		w.WriteString(s.Name)
		return
	}
	w.WriteByte('!')
	switch s := shorthand(c); {
	case ok && s != nil:
		w.WriteString(s.Name)
		return
	case ok && c.Op == tracestore.Exists:
		w.cond(c)
		return
	case ok && c.Field.Place.HasKey() && equals(c, "true"):
		w.WriteString(FormatField(c.Field))
		return
	}
	w.parenthesized(!isConstantExpr(e), func() { w.expr(e, exprOr) })
}

// isConstantExpr reports whether an expression is formatted as true or false.
func isConstantExpr(e tracestore.Expr) bool {
	switch e := e.(type) {
	case nil:
		return true
	case tracestore.And:
		return len(e) == 0
	case tracestore.Or:
		return len(e) == 0
	}
	return false
}

// shorthand returns the shorthand for a condition or for its negation, or nil.
func shorthand(c tracestore.Cond) *tracestore.Shorthand {
	for _, s := range tracestore.Shorthands() {
		if c.Field == s.Cond.Field && c.Op == s.Cond.Op && (c.Op == tracestore.Exists || equals(c, s.Cond.Value.Text)) {
			return &s
		}
	}
	return nil
}

// equals reports whether a condition compares a field with a text for equality.
func equals(c tracestore.Cond, text string) bool {
	return c.Op == tracestore.Eq && !c.Value.IsNumber && c.Value.Text == text
}

func (w *printer) cond(c tracestore.Cond) {
	text, contains := contained(c)
	switch s := shorthand(c); {
	case contains:
		w.WriteString(quotedText(text))
	case s != nil && s.Negated:
		w.WriteString("!" + s.Name)
	case c.Op == tracestore.Exists:
		w.WriteString("exists(" + FormatField(c.Field) + ")")
	case c.Op == tracestore.Like:
		w.comparison(c, " =~ ", literal(c))
	default:
		w.comparison(c, opText(c.Op), literal(c))
	}
}

func (w *printer) comparison(c tracestore.Cond, op, value string) {
	w.WriteString(FormatField(c.Field))
	w.WriteString(op)
	w.WriteString(value)
}

func opText(op tracestore.Op) string {
	switch op {
	case tracestore.Eq:
		return " = "
	case tracestore.Ne:
		return " != "
	case tracestore.Lt:
		return " < "
	case tracestore.Le:
		return " <= "
	case tracestore.Gt:
		return " > "
	}
	return " >= "
}

// FormatField returns the name of a field, which Parse parses as the same field, as in Format.
func FormatField(f tracestore.Field) string {
	if f.Place.HasKey() {
		return f.Place.Info().Name + keyText(f.Key)
	}
	return f.Place.Info().Name
}

func keyText(key string) string {
	for _, c := range key {
		if !isWordRune(c) {
			return quotedText(key)
		}
	}
	if key == "" {
		return `""`
	}
	return key
}

func literal(c tracestore.Cond) string {
	v, info := c.Value, c.Field.Place.Info()
	switch {
	case v.Regexp != nil:
		source := strings.TrimPrefix(v.Regexp.String(), anchorBegin)
		return rawText(strings.TrimSuffix(source, anchorEnd))
	case v.IsNumber && info.Type == tracestore.DurationField:
		return durationText(v.Number)
	case v.IsNumber:
		return strconv.FormatFloat(v.Number, 'g', -1, 64)
	case info.Type == tracestore.WordField || info.Type == tracestore.NumberField:
		return info.Shown(v.Text)
	case c.Field.Place.HasKey() && (v.Text == "true" || v.Text == "false") && (c.Op == tracestore.Eq || c.Op == tracestore.Ne):
		return v.Text
	}
	return quotedText(v.Text)
}

// quotedText returns a text in double quotes with as few escape sequences as possible.
func quotedText(s string) string {
	b := append(make([]byte, 0, len(s)+2), '"')
	for rest := s; rest != ""; {
		c, n := utf8.DecodeRuneInString(rest)
		switch {
		case c == utf8.RuneError && n == 1, c == '"', c == '\\', c == '\n':
			escaped := strconv.Quote(rest[:n])
			b = append(b, escaped[1:len(escaped)-1]...)
		default:
			b = append(b, rest[:n]...)
		}
		rest = rest[n:]
	}
	return string(append(b, '"'))
}

// rawText is like quotedText, but uses backquotes if that avoids escape sequences.
func rawText(s string) string {
	if strings.ContainsAny(s, `\"`) && !strings.Contains(s, "`") && utf8.ValidString(s) {
		return "`" + s + "`"
	}
	return quotedText(s)
}

func durationText(ns float64) string {
	if ns < 0 || ns >= math.MaxInt64 || ns != math.Trunc(ns) {
		return strconv.FormatFloat(ns, 'g', -1, 64) + "ns"
	}
	return formatDuration(time.Duration(ns))
}

// formatDuration is like time.Duration.String without trailing zero units.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
