package traceql

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Format returns the text of a set. If the set is a result of [Parse] and the text has at most
// MaxText bytes, parsing the text returns the same set. Parts of other sets that the language
// cannot express are written in a similar notation.
func Format(set storequery.SpanSet) string {
	w := printer{clear: true}
	if w.set(set, setPipe); w.deepest > MaxDepth {
		w = printer{}
		w.set(set, setPipe)
	}
	return w.String()
}

// FormatStage returns the text of a [storequery.GroupBy] or a [storequery.Aggregate] with the names
// of fields in TraceQL.
func FormatStage(stage any) string {
	w := printer{clear: true, traceQL: true}
	switch s := stage.(type) {
	case storequery.GroupBy:
		return groupText(&w, s)
	case storequery.Aggregate:
		w.aggregate(s)
	}
	return w.String()
}

type printer struct {
	strings.Builder
	clear         bool // write parentheses that are not necessary, but make the order of && and || clear
	open, deepest int  // parentheses
	traceQL       bool // write the names of fields in TraceQL
}

// The precedence of operators between sets. An operand on the right side of an operator must have a
// higher one.
const (
	setPipe = iota
	setLogic
	setRelation
	setAtom
)

// The precedence of conditions.
const (
	exprLogic = iota
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
		_, mixed := s.Left.(storequery.And)
		w.binary(s.Left, mixed, " || ", s.Right, setLogic, place)
	case storequery.And:
		_, mixed := s.Left.(storequery.Or)
		w.binary(s.Left, mixed, " && ", s.Right, setLogic, place)
	case storequery.Relation:
		w.binary(s.Left, false, " "+[...]string{"", "!", "&"}[s.Mode]+relationSigns[s.Kind]+" ", s.Right, setRelation, place)
	case storequery.Pipeline:
		w.parenthesized(setPipe < place, func() { w.pipeline(s) })
	}
}

// binary writes two sets and the operator between them. If mixed is true, parentheses make the
// order clear.
func (w *printer) binary(left storequery.SpanSet, mixed bool, op string, right storequery.SpanSet, own, place int) {
	w.parenthesized(own < place, func() {
		if mixed && w.clear {
			w.set(left, own+1)
		} else {
			w.set(left, own)
		}
		w.WriteString(op)
		w.set(right, own+1)
	})
}

func (w *printer) pipeline(p storequery.Pipeline) {
	stages := p.Stages
	if f, ok := stages[0].(storequery.Filter); ok {
		over, _ := overOf(nil, f.Left)
		over, _ = overOf(over, f.Right)
		if over != nil && reflect.DeepEqual(over, p.Set) {
			w.filter(f)
			w.stages(stages[1:])
			return
		}
	}
	w.set(p.Set, setLogic)
	w.stages(stages)
}

func (w *printer) stages(stages []storequery.Stage) {
	for _, stage := range stages {
		w.WriteString(" | ")
		switch s := stage.(type) {
		case storequery.Refine:
			w.set(s.Set, setLogic)
		case storequery.GroupBy:
			w.WriteString(groupText(w, s))
		case storequery.Coalesce:
			w.WriteString("coalesce()")
		case storequery.Filter:
			w.filter(s)
		}
	}
}

func groupText(w *printer, g storequery.GroupBy) string {
	part := printer{clear: w.clear, traceQL: w.traceQL}
	part.WriteString("by(")
	part.operand(g.By, precLogic)
	part.WriteByte(')')
	w.deepest = max(w.deepest, w.open+part.deepest)
	return part.String()
}

func (w *printer) filter(f storequery.Filter) {
	w.operand(f.Left, precAdd)
	w.WriteString(opText(f.Op))
	w.operand(f.Right, precAdd)
}

// operand writes an operand, in parentheses if its precedence is below the one required at its
// position.
func (w *printer) operand(o tracestore.Operand, place int) {
	switch o := o.(type) {
	case tracestore.Field:
		w.WriteString(w.field(o))
	case tracestore.Constant:
		text := constantText(o.Value)
		w.parenthesized(place > precAdd && text[0] == '-', func() { w.WriteString(text) })
	case tracestore.Truth:
		w.parenthesized(place > precLogic, func() { w.expr(o.Expr, exprLogic) })
	case tracestore.Arithmetic:
		own := precedence(token{kind: operator, text: string(o.Op)})
		w.parenthesized(own < place, func() {
			left, right := own, own+1
			if own == precPower {
				left, right = own+1, own
			}
			w.operand(o.Left, left)
			w.WriteString(" " + string(o.Op) + " ")
			w.operand(o.Right, right)
		})
	case storequery.Aggregate:
		w.aggregate(o)
	}
}

func (w *printer) field(f tracestore.Field) string {
	names := f.Place.Info().TraceQL
	switch {
	case !w.traceQL || f.Parent:
	case f.Place == tracestore.Service:
		return "resource.service.name"
	case len(names) > 0:
		return names[0]
	}
	return FormatField(f)
}

func (w *printer) aggregate(a storequery.Aggregate) {
	w.parenthesized(a.Over != nil, func() {
		if a.Over != nil {
			w.set(a.Over, setPipe)
			w.WriteString(" | ")
		}
		w.WriteString(string(a.Func) + "(")
		if a.Of != nil {
			w.operand(a.Of, precLogic)
		}
		w.WriteByte(')')
	})
}

func constantText(v otlpdata.Value) string {
	switch v.Kind() {
	case otlpdata.ValueString:
		return quotedText(v.Str())
	case otlpdata.ValueInt:
		if v.Int() == math.MinInt64 {
			return "minInt"
		}
	case otlpdata.ValueDouble:
		s := strconv.FormatFloat(v.Double(), 'g', -1, 64)
		if !strings.ContainsAny(s, ".e") {
			s += ".0" // not an integer
		}
		return s
	}
	return v.AsString()
}

func (w *printer) parenthesized(needed bool, write func()) {
	if !needed {
		write()
		return
	}
	w.WriteByte('(')
	w.open++
	w.deepest = max(w.deepest, w.open)
	write()
	w.open--
	w.WriteByte(')')
}

func (w *printer) selectNode(e tracestore.Expr) {
	if e == nil {
		w.WriteString("{}")
		return
	}
	w.WriteString("{ ")
	w.expr(e, exprLogic)
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
	case tracestore.Compare:
		w.compare(e)
	}
}

func (w *printer) compare(c tracestore.Compare) {
	w.operand(c.Left, precAdd)
	if c.Op == tracestore.Exists {
		w.WriteString(" != nil")
		return
	}
	w.WriteString(opText(c.Op))
	w.operand(c.Right, precAdd)
}

func (w *printer) or(parts tracestore.Or, place int) {
	if len(parts) == 0 {
		w.WriteString("false")
		return
	}
	w.parenthesized(exprLogic < place && len(parts) > 1, func() {
		for i, part := range parts {
			if i > 0 {
				w.WriteString(" || ")
			}
			w.part(part, i)
		}
	})
}

// part writes the part of a conjunction or disjunction at an index. The first one needs no
// parentheses.
func (w *printer) part(e tracestore.Expr, at int) {
	if at == 0 && !w.clear {
		w.expr(e, exprLogic)
		return
	}
	w.expr(e, exprAtom)
}

func (w *printer) and(parts tracestore.And, place int) {
	if len(parts) == 0 {
		w.WriteString("true")
		return
	}
	if like, ok := isNotLike(parts); ok && len(parts) == 2 {
		w.comparison(like, " !~ ", literal(like))
		return
	}
	w.parenthesized(exprLogic < place, func() {
		for i := 0; i < len(parts); i++ {
			if i > 0 {
				w.WriteString(" && ")
			}
			if like, ok := isNotLike(parts[i:]); ok {
				w.comparison(like, " !~ ", literal(like))
				i++
				continue
			}
			w.part(parts[i], i)
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
	return like, ok && like.Op == tracestore.Like && like.Field == exists.Field && like.Value.Kind == exists.Value.Kind
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
	case ok && equals(c, "true") && c.Value.Kind == otlpdata.ValueBool:
		w.WriteString(FormatField(c.Field))
		return
	case ok && len(literals(c)) > 1:
		w.cond(c)
		return
	}
	w.parenthesized(!isConstantExpr(e), func() { w.expr(e, exprLogic) })
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
	switch s, all := shorthand(c), literals(c); {
	case len(all) > 1:
		w.parenthesized(true, func() {
			w.comparison(c, opText(c.Op), all[0])
			w.WriteString(" || ")
			w.comparison(c, opText(c.Op), all[1])
		})
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

// literals returns the constants for a text that is compared with values of all types, as for tags,
// facets and groups: the text in quotes and, if it is one, the number or boolean.
func literals(c tracestore.Cond) []string {
	v := c.Value
	if !c.Field.Place.HasKey() || c.Op != tracestore.Eq && c.Op != tracestore.Ne || v.IsNumber || v.Kind != otlpdata.ValueEmpty {
		return nil
	}
	all := []string{quotedText(v.Text)}
	if isNumber(v.Text) || v.Text == "true" || v.Text == "false" {
		all = append(all, v.Text)
	}
	return all
}

// isNumber reports whether a text is the text form of a number and also a number in the language.
// The latter has no integers beyond 64 bits.
func isNumber(text string) bool {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return strconv.FormatInt(n, 10) == text
	}
	n, err := strconv.ParseFloat(text, 64)
	return err == nil && strings.ContainsAny(text, ".e") && otlpdata.DoubleValue(n).AsString() == text
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
	if f.Parent {
		f.Parent = false
		name := FormatField(f)
		switch {
		case f.Place == tracestore.Service:
			return parentPrefix + "resource.service.name"
		case f.Place == tracestore.AnyAttribute:
			if strings.HasPrefix(f.Key, "span.") || strings.HasPrefix(f.Key, "resource.") {
				return parentPrefix + quotedText(f.Key)
			}
			return parentPrefix + name[1:]
		}
		return parentPrefix + name
	}
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
	case v.Kind == otlpdata.ValueBool:
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

// durationText returns a duration, or a number if it is not a duration in whole nanoseconds.
func durationText(ns float64) string {
	if ns < 0 || ns >= math.MaxInt64 || ns != math.Trunc(ns) {
		return strconv.FormatFloat(ns, 'g', -1, 64)
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
