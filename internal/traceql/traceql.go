// Package traceql reads and writes the search language, a subset of TraceQL; docs/search-language.md is its reference. What it reads is a
// [storequery.SpanSet], which every store answers through storequery.Find.
package traceql

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// What a search may hold at most. Each is an error that names it.
const (
	MaxText         = 16 << 10 // bytes
	MaxDepth        = 64       // brackets within each other
	MaxConditions   = 256      // conditions; an empty {} is one
	MaxPattern      = 1 << 10  // bytes of one regular expression
	MaxPatternSteps = 1024     // of all regular expressions, with what they repeat written out
)

// Query is a search.
type Query struct {
	Set storequery.SpanSet
	// Select is what `| select(...)` asks for beside the usual; often empty.
	Select []tracestore.Field
}

// Parse reads a search. The error is an [*Error].
func Parse(text string) (Query, error) {
	p, err := newParser(text)
	if err != nil {
		return Query{}, err
	}
	q, err := p.query()
	if err != nil {
		return Query{}, err
	}
	return q, nil
}

// ParseFields reads names of fields with commas between them, as they stand in select(...). The error is an [*Error].
func ParseFields(text string) ([]tracestore.Field, error) {
	p, err := newParser(text)
	if err != nil {
		return nil, err
	}
	fields, err := p.fields()
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != end {
		return nil, p.fail(t, "expected a comma between fields, not %s", describe(t))
	}
	return fields, nil
}

func newParser(text string) (*parser, error) {
	if len(text) > MaxText {
		return nil, tooLong(text)
	}
	if !utf8.ValidString(text) {
		return nil, notUTF8(text)
	}
	return &parser{text: text, tokens: tokens(text)}, nil
}

func tooLong(text string) error {
	cut := MaxText
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return &Error{
		Text: strings.Clone(text[:cut]), Offset: cut,
		Msg: fmt.Sprintf("the search is %d bytes long; at most %d are read", len(text), MaxText),
	}
}

func notUTF8(text string) error {
	at := 0
	for {
		c, n := utf8.DecodeRuneInString(text[at:])
		if c == utf8.RuneError && n <= 1 {
			return &Error{Text: text, Offset: at, Length: n, Msg: "this byte is not UTF-8"}
		}
		at += n
	}
}
