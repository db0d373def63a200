package traceql

import (
	"fmt"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// parser reads tokens by recursive descent; each method begins at its first token and ends behind its last one.
//
//	query     = set [ "|" "select" "(" field { "," field } ")" ]
//	set       = both { "||" both }
//	both      = below { "&&" below }
//	below     = spans { ( ">>" | ">" ) spans }
//	spans     = "{" [ any ] "}" | "(" set ")"
//	any       = all { "||" all }
//	all       = one { "&&" one }
//	one       = { "!" } ( "(" any ")" | "exists" "(" field ")" | "true" | "false" | field ) | comparison
type parser struct {
	text       string
	tokens     []token
	at         int
	depth      int
	conditions int
	steps      int // of regular expressions
}

// peek returns the token to be read.
func (p *parser) peek() token { return p.tokens[p.at] }

// take reads a token. The last one can be read again and again.
func (p *parser) take() token {
	t := p.tokens[p.at]
	if p.at < len(p.tokens)-1 {
		p.at++
	}
	return t
}

// skip reads an operator or bracket if it is the next token.
func (p *parser) skip(text string) bool {
	if p.peek().is(text) {
		p.take()
		return true
	}
	return false
}

// fail returns an error about a token; a token that is none has an error of its own.
func (p *parser) fail(t token, format string, args ...any) error {
	e := &Error{Text: p.text, Offset: t.begin, Length: t.end - t.begin, Msg: fmt.Sprintf(format, args...)}
	if t.kind == wrong {
		e.Msg = t.msg
	}
	return e
}

// nest goes into a bracket, whose token is t; unnest leaves it.
func (p *parser) nest(t token) error {
	if p.depth++; p.depth > MaxDepth {
		return p.fail(t, "brackets stand in each other more than %d deep", MaxDepth)
	}
	return nil
}

func (p *parser) unnest() { p.depth-- }

// condition counts one, which begins at t.
func (p *parser) condition(t token) error {
	if p.conditions++; p.conditions > MaxConditions {
		return p.fail(t, "a search has at most %d conditions", MaxConditions)
	}
	return nil
}

func (p *parser) query() (q Query, err error) {
	if q.Set, err = p.set(); err != nil {
		return q, err
	}
	if p.skip("|") {
		if q.Select, err = p.selection(); err != nil {
			return q, err
		}
	}
	if t := p.peek(); t.kind != end {
		return q, p.behindSet(t)
	}
	return q, nil
}

// behindSet says what is wrong with t, which stands where a search could end.
func (p *parser) behindSet(t token) error {
	switch {
	case t.is("<<") || t.is("<"):
		return p.fail(t, "%s is not supported; { a } %s { b } chooses spans of b, so name first what stands above",
			t.text, strings.ReplaceAll(t.text, "<", ">"))
	case t.is("~"):
		return p.fail(t, "siblings (~) are not supported; >> (below) and > (directly below) are")
	case t.kind == mark && len(t.text) > 1 && (t.text[0] == '!' || t.text[0] == '&'):
		return p.fail(t, "%s is not supported between sets of spans; >>, >, && and || are", t.text)
	case t.is("|"):
		return p.fail(t, "only one select(...) can follow a search")
	case t.is("}") || t.is(")"):
		return p.fail(t, "%s without an opening bracket", t.text)
	case t.isWord("with"):
		return p.fail(t, "with (...) is not supported")
	}
	return p.fail(t, "expected &&, ||, >> or > between sets of spans, or the end, not %s", describe(t))
}

// selection reads what follows the bar.
func (p *parser) selection() ([]tracestore.Field, error) {
	switch t := p.take(); {
	case t.kind == end:
		return nil, p.fail(t, "expected select(...)")
	case !t.isWord("select"):
		return nil, p.fail(t, "%s is not supported behind |; only select(...) is, and conditions stand in { }", describe(t))
	}
	if t := p.take(); !t.is("(") {
		return nil, p.fail(t, "expected ( and the fields to select")
	}
	fields, err := p.fields()
	if err != nil {
		return nil, err
	}
	if t := p.take(); !t.is(")") {
		return nil, p.fail(t, "expected , or ) in select(...), not %s", describe(t))
	}
	return fields, nil
}

// fields reads names with commas between them. They count as conditions, so that there are not too many.
func (p *parser) fields() ([]tracestore.Field, error) {
	var fields []tracestore.Field
	for {
		t := p.take()
		if err := p.condition(t); err != nil {
			return nil, err
		}
		f, err := p.value(t)
		if err != nil {
			return nil, err
		}
		if fields = append(fields, f.Field); !p.skip(",") {
			return fields, nil
		}
	}
}

func (p *parser) set() (storequery.SpanSet, error) {
	left, err := p.both()
	for err == nil && p.skip("||") {
		var right storequery.SpanSet
		right, err = p.both()
		left = storequery.Or{Left: left, Right: right}
	}
	return left, err
}

func (p *parser) both() (storequery.SpanSet, error) {
	left, err := p.below()
	for err == nil && p.skip("&&") {
		var right storequery.SpanSet
		right, err = p.below()
		left = storequery.And{Left: left, Right: right}
	}
	return left, err
}

func (p *parser) below() (storequery.SpanSet, error) {
	left, err := p.spans()
	for err == nil && (p.peek().is(">>") || p.peek().is(">")) {
		child := p.take().is(">")
		var right storequery.SpanSet
		right, err = p.spans()
		if child {
			left = storequery.Child{Parents: left, Spans: right}
		} else {
			left = storequery.Descendant{Ancestors: left, Spans: right}
		}
	}
	return left, err
}

func (p *parser) spans() (storequery.SpanSet, error) {
	t := p.take()
	switch {
	case t.is("("):
		return p.inBrackets(t)
	case t.is("{"):
		return p.choice(t)
	case t.kind == end:
		return nil, p.fail(t, "expected conditions on spans in { }, such as { duration > 1s }; {} is all spans")
	case t.is("!"):
		return nil, p.fail(t, "! stands within { }, before a condition; there is no ! for sets of spans")
	}
	return nil, p.fail(t, "expected {: conditions on spans stand in { }, such as { duration > 1s }")
}

func (p *parser) inBrackets(open token) (storequery.SpanSet, error) {
	if err := p.nest(open); err != nil {
		return nil, err
	}
	defer p.unnest()
	s, err := p.set()
	if err != nil {
		return nil, err
	}
	if t := p.take(); !t.is(")") {
		if t.kind == end {
			return nil, p.fail(open, "this ( is not closed")
		}
		if t.is("|") {
			return nil, p.fail(t, "select(...) stands at the end of the search")
		}
		return nil, p.behindSet(t)
	}
	return s, nil
}

// choice reads what stands behind a {.
func (p *parser) choice(open token) (storequery.SpanSet, error) {
	if p.skip("}") {
		return storequery.Select{}, p.condition(open)
	}
	e, err := p.any()
	if err != nil {
		return nil, err
	}
	if t := p.take(); !t.is("}") {
		if t.kind == end {
			return nil, p.fail(open, "this { is not closed")
		}
		return nil, p.behindCondition(t)
	}
	return storequery.Select{Where: e}, nil
}

// describe names a token in a message.
func describe(t token) string {
	switch t.kind {
	case end:
		return "the end"
	case quoted:
		return "the text " + quote(t.text)
	}
	return quote(t.text)
}
