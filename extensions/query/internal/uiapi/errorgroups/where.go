package errorgroups

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/failure"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// maxLike is the maximum length in bytes of the regular expression for a frame. The language has a
// limit.
const maxLike = 512

// where returns conditions that find the spans of the group, as within braces. They may also find
// spans of other groups: with several exceptions, or with a type of higher precedence. withFrame
// adds the top frame, for groups that differ only in the frame.
func (e *example) where(withFrame bool) string {
	all := tracestore.And{equal(tracestore.Field{Place: tracestore.Service}, e.service), failed()}
	if kind := e.kindIs(); kind != nil {
		all = append(all, kind)
	}
	if e.pattern.String() == "" && e.frame.String() == "" {
		all = append(all, equal(tracestore.Field{Place: tracestore.Name}, e.operation))
	}
	if message := e.messageIs(); message != nil {
		all = append(all, message)
	}
	if withFrame {
		if frame := e.frameIs(); frame != nil {
			all = append(all, frame)
		}
	}
	text := traceql.Format(storequery.Select{Where: all})
	return strings.TrimSuffix(strings.TrimPrefix(text, "{ "), " }")
}

func equal(f tracestore.Field, text string) tracestore.Expr {
	if len(text) > storequery.MaxFacetText-utf8.UTFMax && utf8.ValidString(text) { // it may have been cut
		return like(f, regexp.QuoteMeta(text)+".*")
	}
	return tracestore.Cond{Field: f, Op: tracestore.Eq, Value: tracestore.Text(text)}
}

// like returns the condition that a regular expression matches the whole value. Each invalid UTF-8
// byte in the expression matches U+FFFD, because invalid bytes of values count as U+FFFD.
func like(f tracestore.Field, expression string) tracestore.Expr {
	expression = string([]rune(expression))
	return tracestore.Cond{Field: f, Op: tracestore.Like, Value: tracestore.Pattern(regexp.MustCompile("^(?s:" + expression + ")$"))}
}

// kindIs returns the condition on the type, or nil if there is none.
func (e *example) kindIs() tracestore.Expr {
	place := tracestore.SpanAttribute
	if e.failure.TypeOfEvent {
		place = tracestore.EventAttribute
	}
	var any tracestore.Or
	for _, key := range e.failure.TypeKeys {
		any = append(any, equal(tracestore.Field{Place: place, Key: key}, e.failure.TypeValue))
	}
	switch len(any) {
	case 0:
		return nil
	case 1:
		return any[0]
	}
	return any
}

// messageIs returns the condition on the message, or nil if it is empty.
func (e *example) messageIs() tracestore.Expr {
	field := tracestore.Field{Place: tracestore.StatusMessage}
	if e.failure.MessageOfEvent {
		field = tracestore.Field{Place: tracestore.EventAttribute, Key: failure.MessageKey}
	}
	fixed, ok := e.pattern.Fixed()
	switch {
	case ok && fixed == "":
		return nil
	case ok:
		return equal(field, fixed)
	}
	return like(field, e.pattern.Expression())
}

// frameIs returns the condition on the top frame, or nil if there is none.
func (e *example) frameIs() tracestore.Expr {
	stack := tracestore.Field{Place: tracestore.EventAttribute, Key: failure.StackKey}
	switch {
	case len(e.frame.Like) > maxLike:
	case e.frame.String() != "":
		return like(stack, ".*"+e.frame.Like+".*")
	case e.stackless:
		return tracestore.Not{Expr: tracestore.Cond{Field: stack, Op: tracestore.Exists}}
	}
	return nil
}
