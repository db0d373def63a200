package traceql

import (
	"fmt"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// parser is a recursive descent parser. Each method begins at the first token of its rule and ends
// after the last one.
//
//	query      = set [ "|" "select" "(" field { "," field } ")" ]
//	set        = setAnd { "||" setAnd }
//	setAnd     = relation { "&&" relation }
//	relation   = spans { ( ">>" | ">" ) spans }
//	spans      = "{" [ or ] "}" | "(" set ")"
//	or         = and { "||" and }
//	and        = term { "&&" term }
//	term       = { "!" } ( "(" or ")" | exists | "true" | "false" | field ) | comparison
//	exists     = "exists" "(" field ")"
type parser struct {
	text       string
	tokens     []token
	at         int
	depth      int
	conditions int
	steps      int // of regular expressions
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
	if q.Set, err = p.parseSet(); err != nil {
		return q, err
	}
	if p.skip("|") {
		if q.Select, err = p.parseSelection(); err != nil {
			return q, err
		}
	}
	if t := p.peek(); t.kind != end {
		return q, p.errAfterSet(t)
	}
	return q, nil
}

// errAfterSet returns the error for t, which follows a complete set.
func (p *parser) errAfterSet(t token) error {
	switch {
	case t.is("<<") || t.is("<"):
		return p.fail(t, "%s is not supported; { a } %s { b } selects spans of b, so write the ancestor first",
			t.text, strings.ReplaceAll(t.text, "<", ">"))
	case t.is("~"):
		return p.fail(t, "~ (sibling) is not supported; use >> (descendant) or > (child)")
	case t.kind == operator && len(t.text) > 1 && (t.text[0] == '!' || t.text[0] == '&'):
		return p.fail(t, "%s is not supported between { }; use >>, >, && or ||", t.text)
	case t.is("|"):
		return p.fail(t, "only one select(...) can follow a search")
	case t.is("}") || t.is(")"):
		return p.fail(t, "%s has no opening bracket", t.text)
	case t.isWord("with"):
		return p.fail(t, "with (...) is not supported")
	}
	return p.fail(t, "expected &&, ||, >> or > between { }, or the end, found %s", describe(t))
}

// parseSelection parses the part after |.
func (p *parser) parseSelection() ([]tracestore.Field, error) {
	switch t := p.takeToken(); {
	case t.kind == end:
		return nil, p.fail(t, "expected select(...)")
	case !t.isWord("select"):
		return nil, p.fail(t, "%s is not supported after |, only select(...); put conditions in { }", describe(t))
	}
	if t := p.takeToken(); !t.is("(") {
		return nil, p.fail(t, "expected ( and the fields to select")
	}
	fields, err := p.parseFields()
	if err != nil {
		return nil, err
	}
	if t := p.takeToken(); !t.is(")") {
		return nil, p.fail(t, "expected , or ) in select(...), found %s", describe(t))
	}
	return fields, nil
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
		if fields = append(fields, f.Field); !p.skip(",") {
			return fields, nil
		}
	}
}

func (p *parser) parseSet() (storequery.SpanSet, error) {
	left, err := p.parseSetAnd()
	for err == nil && p.skip("||") {
		var right storequery.SpanSet
		right, err = p.parseSetAnd()
		left = storequery.Or{Left: left, Right: right}
	}
	return left, err
}

func (p *parser) parseSetAnd() (storequery.SpanSet, error) {
	left, err := p.parseRelation()
	for err == nil && p.skip("&&") {
		var right storequery.SpanSet
		right, err = p.parseRelation()
		left = storequery.And{Left: left, Right: right}
	}
	return left, err
}

func (p *parser) parseRelation() (storequery.SpanSet, error) {
	left, err := p.parseSpans()
	for err == nil && (p.peek().is(">>") || p.peek().is(">")) {
		child := p.takeToken().is(">")
		var right storequery.SpanSet
		right, err = p.parseSpans()
		if child {
			left = storequery.Child{Parents: left, Spans: right}
		} else {
			left = storequery.Descendant{Ancestors: left, Spans: right}
		}
	}
	return left, err
}

func (p *parser) parseSpans() (storequery.SpanSet, error) {
	t := p.takeToken()
	switch {
	case t.is("("):
		return p.parseParenthesizedSet(t)
	case t.is("{"):
		return p.parseSelect(t)
	case t.kind == end:
		return nil, p.fail(t, "expected conditions on spans in { }, such as { duration > 1s }; {} selects all spans")
	case t.is("!"):
		return nil, p.fail(t, "! is allowed only within { }, before a condition")
	}
	return nil, p.fail(t, "expected {; put conditions in { }, such as { duration > 1s } or { \"text\" }")
}

func (p *parser) parseParenthesizedSet(open token) (storequery.SpanSet, error) {
	if err := p.enter(open); err != nil {
		return nil, err
	}
	defer p.leave()
	s, err := p.parseSet()
	if err != nil {
		return nil, err
	}
	if t := p.takeToken(); !t.is(")") {
		if t.kind == end {
			return nil, p.fail(open, "missing closing )")
		}
		if t.is("|") {
			return nil, p.fail(t, "select(...) is allowed only at the end of the search")
		}
		return nil, p.errAfterSet(t)
	}
	return s, nil
}

// parseSelect parses the conditions after {.
func (p *parser) parseSelect(open token) (storequery.SpanSet, error) {
	if p.skip("}") {
		return storequery.Select{}, p.countCondition(open)
	}
	e, err := p.parseOr()
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
