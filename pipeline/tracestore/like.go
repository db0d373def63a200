package tracestore

import (
	"context"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// MaxLikeBytes is the number of bytes of a value that Like examines. A regular expression may take
// ten microseconds per byte.
const MaxLikeBytes = 256 << 10

// likeStep is the number of bytes that Like examines between two checks of the context.
const likeStep = 4 << 10

// WithContext returns an expression that is equivalent to e until ctx ends. After that, Like
// examines only the beginning of a value, and its result may be wrong: check ctx before using
// results. Its conditions have no [Field.Names], except those on parents, so that stores need not
// support them.
func WithContext(ctx context.Context, e Expr) Expr { return contextMapper(ctx).expr(e) }

// OperandWithContext is [WithContext] for the conditions in an operand.
func OperandWithContext(ctx context.Context, o Operand) Operand { return contextMapper(ctx).operand(o) }

func contextMapper(ctx context.Context) mapper {
	return mapper{func(c Cond) Expr {
		if c.Op == Like {
			c.Value.ctx = ctx
			c.Value.time = newPatternCost(ctx, c.Value.Regexp)
		}
		if c.Field.Parent {
			return c
		}
		return c.WithoutNames()
	}, func(f Field) Field { return f }}
}

// WithContext returns a with the condition of its selection as returned by [WithContext].
func (a Aggregation) WithContext(ctx context.Context) Aggregation {
	if a.Facets.Selection != nil {
		s := *a.Facets.Selection
		s.Where = WithContext(ctx, s.Where)
		a.Facets.Selection = &s
	}
	return a
}

// like reports whether the regular expression matches somewhere in the beginning of a text.
func (l *Literal) like(text string) bool {
	text = beginning(text)
	return l.time.measure(len(text), func() bool { return l.matches(text) })
}

func (l *Literal) matches(text string) bool {
	if l.ctx == nil || len(text) <= likeStep {
		return l.Regexp.MatchString(text)
	}
	switch prefix, complete := l.Regexp.LiteralPrefix(); {
	case complete: // takes about a microsecond per kilobyte
		return l.Regexp.MatchString(text)
	case !strings.Contains(text, prefix):
		return false
	}
	return l.Regexp.MatchReader(&likeReader{ctx: l.ctx, text: text})
}

// likeReader reads a text until its context ends.
type likeReader struct {
	ctx  context.Context // of the query; a regexp cannot be interrupted otherwise
	text string
	at   int
	next int // position of the next check of ctx
}

// ReadRune implements io.RuneReader.
func (r *likeReader) ReadRune() (c rune, size int, err error) {
	if r.at >= r.next {
		if r.ctx.Err() != nil {
			return 0, 0, io.EOF
		}
		r.next = r.at + likeStep
	}
	if r.at == len(r.text) {
		return 0, 0, io.EOF
	}
	if b := r.text[r.at]; b < utf8.RuneSelf {
		r.at++
		return rune(b), 1, nil
	}
	c, size = utf8.DecodeRuneInString(r.text[r.at:])
	r.at += size
	return c, size, nil
}

// beginning returns the part of a text that Like examines, cut between characters.
func beginning(s string) string {
	if len(s) <= MaxLikeBytes {
		return s
	}
	n := MaxLikeBytes
	for n > MaxLikeBytes-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

var _ io.RuneReader = (*likeReader)(nil)

// Pattern returns the literal of a Like condition.
func Pattern(re *regexp.Regexp) Literal { return Literal{Regexp: re} }

// PatternSteps estimates the length of the program of a regular expression, which determines the
// cost of compiling and running it. The result is at most limit + 1.
func PatternSteps(re *syntax.Regexp, limit int) int {
	const bounds = 16 // range bounds in a character class that cost as much as one step
	n := 1 + len(re.Rune)/bounds
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += PatternSteps(sub, limit)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, 1+limit)
}
