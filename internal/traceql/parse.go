package traceql

import (
	"fmt"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// parser is a recursive descent parser. Each method begins at the first token of its rule and ends
// after the last one.
//
//	query    = pipeline { hints }
//	pipeline = stage { "|" stage }
//	stage    = set | filter | "by" "(" expr ")" | "coalesce" "(" ")" | "select" "(" fields ")"
//	set      = relation { ( "&&" | "||" ) relation }
//	relation = spans { ( ">>" | ">" | "!>" | ... ) spans }
//	spans    = "{" [ expr ] "}" | "(" pipeline ")"
//	filter   = scalar ( "=" | ">" | ... ) scalar
//	scalar   = arithmetic with numbers, aggregates and "(" pipeline "|" aggregate ")"
//	expr     = operators of [precedence] on operands, from left to right
//	operand  = { "!" | "-" } ( "(" expr ")" | "exists" "(" field ")" | field | value )
//	hints    = "with" "(" name "=" value { "," name "=" value } ")"
type parser struct {
	language   Language
	text       string
	tokens     []token
	at         int
	depth      int
	conditions int
	groupings  int                // by(...)
	steps      int                // of regular expressions
	selected   []tracestore.Field // by select(...)
}

// peek returns the next token.
func (p *parser) peek() token { return p.tokens[p.at] }

// takeToken returns the next token and advances. It does not advance beyond the last token.
func (p *parser) takeToken() token {
	t := p.tokens[p.at]
	if p.at < len(p.tokens)-1 {
		p.at++
	}
	return t
}

// skip takes the next token if it is the given operator or bracket.
func (p *parser) skip(text string) bool {
	if p.peek().is(text) {
		p.takeToken()
		return true
	}
	return false
}

// fail returns an error at a token. For an invalid token, it returns the error of that token.
func (p *parser) fail(t token, format string, args ...any) error {
	e := &Error{Text: p.text, Offset: t.begin, Length: t.end - t.begin, Msg: fmt.Sprintf(format, args...)}
	if t.kind == invalid {
		e.Msg = t.msg
	}
	return e
}

// enter counts an opening bracket t; leave counts its end.
func (p *parser) enter(t token) error {
	if p.depth++; p.depth > MaxDepth {
		return p.fail(t, "brackets are nested more than %d deep", MaxDepth)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// countCondition counts a condition, which begins at t.
func (p *parser) countCondition(t token) error {
	if p.conditions++; p.conditions > MaxConditions {
		return p.fail(t, "search has more than %d conditions", MaxConditions)
	}
	return nil
}

func (p *parser) parseQuery() (q Query, err error) {
	all, err := p.parsePipeline()
	if err != nil {
		return q, err
	}
	if q.Set, err = p.needSet(all); err != nil {
		return q, err
	}
	q.Select = p.selected
	for p.peek().isWord("with") {
		if q.Hints, err = p.parseHints(q.Hints); err != nil {
			return q, err
		}
	}
	if t := p.peek(); t.kind != end {
		return q, p.errAfterSet(t)
	}
	return q, nil
}

// needSet returns the set of a pipeline, and an error for a number.
func (p *parser) needSet(all item) (storequery.SpanSet, error) {
	if all.scalar != nil {
		return nil, p.fail(p.peek(), "compare the number with a value, such as count() > 2")
	}
	return all.set, nil
}

// errAfterSet returns the error for t, which follows a complete set.
func (p *parser) errAfterSet(t token) error {
	switch {
	case t.is("}") || t.is(")"):
		return p.fail(t, "%s has no opening bracket", t.text)
	case t.kind == operator && (precedence(t) > 0 || t.is("==")):
		return p.fail(t, "%s is not allowed between { }; compare within { }, or compare a number such as count() > 2", t.text)
	}
	return p.fail(t, "expected |, &&, ||, >> or > after { }, or the end, found %s", describe(t))
}

// parseHints parses `with (name=value, ...)`.
func (p *parser) parseHints(hints []Hint) ([]Hint, error) {
	p.takeToken()
	if t := p.takeToken(); !t.is("(") {
		return nil, p.fail(t, "expected ( and hints such as most_recent=true")
	}
	for {
		name, equals, value := p.takeToken(), p.takeToken(), p.takeToken()
		if name.kind != word || !equals.is("=") || value.kind != word && value.kind != number && value.kind != quoted {
			return nil, p.fail(name, "expected a hint, such as most_recent=true")
		}
		hints = append(hints, Hint{name.text, value.text})
		switch t := p.takeToken(); {
		case t.is(")"):
			return hints, nil
		case !t.is(","):
			return nil, p.fail(t, "expected , or ) in with(...), found %s", describe(t))
		}
	}
}

// item is a part of a pipeline: a set, or a number that is calculated of one.
type item struct {
	set    storequery.SpanSet
	scalar tracestore.Operand
	tok    token
}

// pipe adds a stage to a set. A nil set selects all spans.
func pipe(set storequery.SpanSet, stage storequery.Stage) storequery.SpanSet {
	refine, ok := stage.(storequery.Refine)
	if ok && set == nil {
		return refine.Set
	}
	if set == nil {
		set = storequery.Select{}
	}
	first, ok1 := set.(storequery.Select)
	second, ok2 := refine.Set.(storequery.Select)
	switch {
	case !ok1 || !ok2:
	case first.Where == nil:
		return second
	case second.Where == nil:
		return first
	default:
		return storequery.Select{Where: joinAnd(tracestore.And{first.Where, second.Where})}
	}
	if before, ok := set.(storequery.Pipeline); ok {
		return storequery.Pipeline{Set: before.Set, Stages: append(slices.Clip(before.Stages), stage)}
	}
	return storequery.Pipeline{Set: set, Stages: []storequery.Stage{stage}}
}

// parsePipeline parses the stages up to the end of the query or to a closing bracket. A number as
// the last stage is its result.
func (p *parser) parsePipeline() (all item, err error) {
	for first := true; ; first = false {
		t := p.peek()
		var stage storequery.Stage
		switch {
		case first && (t.isWord("coalesce") || t.kind == end):
			return all, p.fail(t, "expected conditions on spans in { }, such as { duration > 1s }; {} selects all spans")
		case t.isWord("by"):
			stage, err = p.parseBy()
		case t.isWord("coalesce"):
			stage, err = storequery.Coalesce{}, p.parseEmptyBrackets()
		case t.isWord("select"):
			if err = p.parseSelection(); first {
				all.set = storequery.Select{}
			}
		case isAggregate(t) || p.startsScalar():
			stage, err = p.parseFilter(&all, nil)
		default:
			var next item
			if next, err = p.parseSet(); err == nil && next.scalar != nil {
				stage, err = p.parseFilter(&all, &next)
			} else {
				stage = storequery.Refine{Set: next.set}
			}
		}
		if err != nil {
			return all, err
		}
		if all.scalar != nil {
			return all, nil
		}
		if stage != nil {
			all.set = pipe(all.set, stage)
		}
		if !p.skip("|") {
			return all, nil
		}
		if t := p.peek(); t.kind == end {
			return all, p.fail(t, "expected a stage, such as { ... }, count() > 2, by(...) or select(...)")
		}
	}
}

func (p *parser) parseEmptyBrackets() error {
	t := p.takeToken()
	for _, bracket := range []string{"(", ")"} {
		if !p.skip(bracket) {
			return p.fail(p.peek(), "write %s()", t.text)
		}
	}
	return p.countCondition(t)
}

// parseArgument parses an expression in brackets after the name of a function. It must depend on
// the span.
func (p *parser) parseArgument() (o tracestore.Operand, typ valueType, err error) {
	name := p.takeToken()
	if err := p.countCondition(name); err != nil {
		return nil, 0, err
	}
	if t := p.takeToken(); !t.is("(") {
		return nil, 0, p.fail(t, "expected ( after %s, found %s", name.text, describe(t))
	}
	t, err := p.parseExpr(precLogic)
	if err != nil {
		return nil, 0, err
	}
	if o, typ, err = p.computed(t); err != nil {
		return nil, 0, err
	}
	constant := true
	tracestore.OperandFields(o, func(tracestore.Field) bool {
		constant = false
		return false
	})
	if constant {
		return nil, 0, p.fail(t.tok, "%s(...) needs a field", name.text)
	}
	if t := p.takeToken(); !t.is(")") {
		return nil, 0, p.fail(t, "expected ) after the expression, found %s", describe(t))
	}
	return o, typ, nil
}

func (p *parser) parseBy() (storequery.Stage, error) {
	if p.groupings++; p.groupings > MaxGroupings {
		return nil, p.fail(p.peek(), "search has more than %d stages by(...)", MaxGroupings)
	}
	by, _, err := p.parseArgument()
	return storequery.GroupBy{By: by}, err
}

// parseSelection parses select(...).
func (p *parser) parseSelection() error {
	p.takeToken()
	if t := p.takeToken(); !t.is("(") {
		return p.fail(t, "expected ( and the fields to select")
	}
	fields, err := p.parseFields()
	if err != nil {
		return err
	}
	p.selected = append(p.selected, fields...)
	if t := p.takeToken(); !t.is(")") {
		return p.fail(t, "expected , or ) in select(...), found %s", describe(t))
	}
	return nil
}

// parseFields parses comma-separated fields. They count as conditions, which limits their number.
func (p *parser) parseFields() ([]tracestore.Field, error) {
	var fields []tracestore.Field
	for {
		t := p.takeToken()
		if err := p.countCondition(t); err != nil {
			return nil, err
		}
		f, err := p.value(t)
		if err != nil {
			return nil, err
		}
		if f.Place.Info().SearchOnly {
			return nil, p.fail(t, "%s is only for conditions: its values are the values of other fields", t.text)
		}
		if f.Parent {
			return nil, p.fail(t, "attributes of the parent are only for conditions; write .%s", f.Key)
		}
		if fields = append(fields, f.Field); !p.skip(",") {
			return fields, nil
		}
	}
}

// setPrecedence returns the precedence of an operator between sets.
func setPrecedence(t token) int {
	if t.is("&&") || t.is("||") {
		return 1
	}
	if _, ok := relationOf(t); ok {
		return 2
	}
	return 0
}

// relationOf returns the relation of an operator.
func relationOf(t token) (r storequery.Relation, ok bool) {
	if t.kind != operator {
		return r, false
	}
	text := t.text
	if len(text) > 1 && text != "&&" {
		switch text[0] {
		case '!':
			r.Mode, text = storequery.Unrelated, text[1:]
		case '&':
			r.Mode, text = storequery.Both, text[1:]
		}
	}
	kind := slices.Index(relationSigns, text)
	r.Kind = storequery.RelationKind(max(kind, 0))
	return r, kind >= 0
}

// relationSigns are the operators by kind of relation.
var relationSigns = []string{storequery.Descendant: ">>", storequery.Child: ">", storequery.Ancestor: "<<", storequery.Parent: "<",
	storequery.Sibling: "~"}

// parseSet parses sets and the operators between them.
func (p *parser) parseSet() (item, error) { return p.parseSets(1) }

func (p *parser) parseSets(least int) (item, error) {
	left, err := p.parseSpans()
	for err == nil && left.scalar == nil {
		op := p.peek()
		if prec := setPrecedence(op); prec < max(least, 1) {
			break
		} else {
			p.takeToken()
			var right item
			if right, err = p.parseSets(prec + 1); err != nil {
				break
			}
			if right.scalar != nil {
				return left, p.fail(right.tok, "compare the number with a value in the brackets, such as count() > 2")
			}
			left.set = joinSets(left.set, op, right.set)
		}
	}
	return left, err
}

func joinSets(left storequery.SpanSet, op token, right storequery.SpanSet) storequery.SpanSet {
	switch {
	case op.is("&&"):
		return storequery.And{Left: left, Right: right}
	case op.is("||"):
		return storequery.Or{Left: left, Right: right}
	}
	r, _ := relationOf(op)
	r.Left, r.Right = left, right
	return r
}

func (p *parser) parseSpans() (all item, err error) {
	t := p.takeToken()
	switch {
	case t.is("("):
		return p.parseBrackets(t)
	case t.is("{"):
		all.set, err = p.parseSelect(t)
		return all, err
	case t.kind == end:
		return all, p.fail(t, "expected conditions on spans in { }, such as { duration > 1s }; {} selects all spans")
	case t.is("!"):
		return all, p.fail(t, "! is allowed only within { }, before a condition")
	case t.kind == word && t.plain == len(t.text) && p.peek().is("("):
		return all, p.fail(t, "unknown function %s; use count, avg, min, max, sum, by, coalesce or select", quote(t.text))
	}
	return all, p.fail(t, "expected {; put conditions in { }, such as { duration > 1s } or { \"text\" }")
}

// parseBrackets parses a pipeline after (.
func (p *parser) parseBrackets(open token) (all item, err error) {
	if err := p.enter(open); err != nil {
		return all, err
	}
	defer p.leave()
	if all, err = p.parsePipeline(); err != nil {
		return all, err
	}
	all.tok = open
	if t := p.takeToken(); !t.is(")") {
		if t.kind == end {
			return all, p.fail(open, "missing closing )")
		}
		return all, p.errAfterSet(t)
	}
	return all, nil
}

// parseSelect parses the conditions after {.
func (p *parser) parseSelect(open token) (storequery.SpanSet, error) {
	if p.skip("}") {
		return storequery.Select{}, p.countCondition(open)
	}
	e, err := p.parseCondition()
	if err != nil {
		return nil, err
	}
	if t := p.takeToken(); !t.is("}") {
		if t.kind == end {
			return nil, p.fail(open, "missing closing }")
		}
		return nil, p.errAfterCondition(t)
	}
	return storequery.Select{Where: e}, nil
}

// describe describes a token for a message.
func describe(t token) string {
	switch t.kind {
	case end:
		return "the end"
	case quoted:
		return "the text " + quote(t.text)
	}
	return quote(t.text)
}
