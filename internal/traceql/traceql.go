// Package traceql parses and formats the search language, TraceQL with additions;
// docs/search-language.md is its reference. The result of parsing is a [storequery.SpanSet], with
// which storequery.Find searches a store.
package traceql

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Limits of a search. Exceeding a limit is an error that names it.
const (
	MaxText         = 16 << 10 // bytes
	MaxDepth        = 64       // nested brackets
	MaxConditions   = 256      // conditions; an empty {} counts as one
	MaxGroupings    = 5        // stages by(...); each may make a group of every span, with values of its own
	MaxPattern      = 1 << 10  // bytes of one regular expression
	MaxPatternSteps = 1024     // of all regular expressions, with repetitions expanded
)

// Query is a parsed search.
type Query struct {
	Set storequery.SpanSet
	// Select lists the additional fields requested with `| select(...)`.
	Select []tracestore.Field
	// Hints are the names and values in `with (...)`. Searches ignore them.
	Hints []Hint
}

// Hint is a name and a value as written in `with (name=value)`, without quotes.
type Hint struct{ Name, Value string }

// Language is the search language. The zero value takes names of attributes as they are written.
type Language struct {
	// Names returns tracestore.Field.Names for the key of an attribute. It may be nil.
	Names func(key string) string
}

// Attribute returns the field of an attribute.
func (l Language) Attribute(p tracestore.Place, key string) tracestore.Field {
	return l.withNames(tracestore.Field{Place: p, Key: key})
}

// withNames returns a field with the names of its attribute.
func (l Language) withNames(f tracestore.Field) tracestore.Field {
	if l.Names != nil && f.Place.HasKey() {
		f.Names = l.Names(f.Key)
	}
	return f
}

// WithNames returns a condition that was not parsed with the names of its attributes.
func (l Language) WithNames(e tracestore.Expr) tracestore.Expr {
	return tracestore.MapFields(e, l.withNames)
}

// Parse is [Language.Parse] of the zero value.
func Parse(text string) (Query, error) { return Language{}.Parse(text) }

// Parse parses a search. The error is an [*Error].
func (l Language) Parse(text string) (Query, error) {
	p, err := l.parser(text)
	if err != nil {
		return Query{}, err
	}
	q, err := p.parseQuery()
	if err != nil {
		return Query{}, err
	}
	return q, nil
}

// ParseFields parses a comma-separated list of fields, as in select(...). The error is an [*Error].
func (l Language) ParseFields(text string) ([]tracestore.Field, error) {
	p, err := l.parser(text)
	if err != nil {
		return nil, err
	}
	fields, err := p.parseFields()
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != end {
		return nil, p.fail(t, "expected a comma between fields, found %s", describe(t))
	}
	return fields, nil
}

func (l Language) parser(text string) (*parser, error) {
	if len(text) > MaxText {
		return nil, tooLong(text)
	}
	if !utf8.ValidString(text) {
		return nil, notUTF8(text)
	}
	return &parser{language: l, text: text, tokens: tokens(text)}, nil
}

func tooLong(text string) error {
	cut := MaxText
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return &Error{
		Text: strings.Clone(text[:cut]), Offset: cut,
		Msg: fmt.Sprintf("search has %d bytes; the maximum is %d", len(text), MaxText),
	}
}

func notUTF8(text string) error {
	at := 0
	for {
		c, n := utf8.DecodeRuneInString(text[at:])
		if c == utf8.RuneError && n <= 1 {
			return &Error{Text: text, Offset: at, Length: n, Msg: "invalid UTF-8"}
		}
		at += n
	}
}
