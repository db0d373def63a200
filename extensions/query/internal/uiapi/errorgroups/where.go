package errorgroups

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// maxLike is the maximum length in bytes of the regular expression for a frame. The language has a
// limit.
const maxLike = 512

// where returns conditions that find the spans of the group, as within braces. They may also find
// spans of other groups: with several exceptions, or with a type of higher precedence. withFrame
// adds the top frame, for groups that differ only in that.
func (g *group) where(withFrame bool) string {
	all := tracestore.And{equal(tracestore.Field{Place: tracestore.Service}, g.key.service), failed()}
	if kind := g.failure.kindIs(); kind != nil {
		all = append(all, kind)
	}
	if g.key.operation != "" {
		all = append(all, equal(tracestore.Field{Place: tracestore.Name}, g.key.operation))
	}
	if message := g.messageIs(); message != nil {
		all = append(all, message)
	}
	if withFrame {
		if frame := g.frameIs(); frame != nil {
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

// like returns the condition that a regular expression matches the whole value. Of an expression
// that is not UTF-8, each invalid byte matches U+FFFD, as which invalid bytes of values count.
func like(f tracestore.Field, expression string) tracestore.Expr {
	expression = string([]rune(expression))
	return tracestore.Cond{Field: f, Op: tracestore.Like, Value: tracestore.Pattern(regexp.MustCompile("^(?s:" + expression + ")$"))}
}

// kindIs returns the condition on the type, or nil if there is none.
func (f *failure) kindIs() tracestore.Expr {
	switch len(f.kindFields) {
	case 0:
		return nil
	case 1:
		return equal(f.kindFields[0], f.kindValue)
	}
	var any tracestore.Or
	for _, field := range f.kindFields {
		any = append(any, equal(field, f.kindValue))
	}
	return any
}

// messageIs returns the condition on the message, or nil if it is empty.
func (g *group) messageIs() tracestore.Expr {
	fixed, ok := g.pattern.fixed()
	switch {
	case ok && fixed == "":
		return nil
	case ok:
		return equal(g.failure.messageField, fixed)
	}
	return like(g.failure.messageField, g.pattern.expression())
}

// frameIs returns the condition on the top frame, or nil if there is none.
func (g *group) frameIs() tracestore.Expr {
	stack := exceptionField("stacktrace")
	switch {
	case len(g.frame.like) > maxLike:
	case g.key.frame != "":
		return like(stack, ".*"+g.frame.like+".*")
	case g.stackless:
		return tracestore.Not{Expr: tracestore.Cond{Field: stack, Op: tracestore.Exists}}
	}
	return nil
}
