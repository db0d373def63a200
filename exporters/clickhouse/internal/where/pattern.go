package where

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// maxPatternSteps limits the size of patterns that the server evaluates. It refuses very large
// ones.
const maxPatternSteps = 4000

// like returns the bounds of "re matches in a column". The server and Go agree on valid UTF-8; of
// long values, Go examines only the beginning.
func like(column string, re *regexp.Regexp) bounds {
	if re == nil {
		return exactly(Never)
	}
	pattern, ok := patternOf(re)
	if !ok {
		return bounds{may: Always, must: Never}
	}
	match := "match(" + column + ", " + Text(pattern) + ")"
	same := all("length("+column+") <= "+strconv.Itoa(tracestore.MaxLikeBytes), "isValidUTF8("+column+")")
	return bounds{may: Any(match, not(same)), must: all(match, same)}
}

// patternOf returns a pattern for the server that matches the same valid texts. ok is false if
// there is none.
func patternOf(re *regexp.Regexp) (pattern string, ok bool) {
	parsed, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil || tracestore.PatternSteps(parsed, maxPatternSteps) > maxPatternSteps {
		return "", false
	}
	w := patternWriter{ok: true}
	w.write(parsed)
	return w.String(), w.ok
}

// patternWriter writes a pattern in a form that does not depend on flags and on tables of
// characters.
type patternWriter struct {
	strings.Builder
	ok bool // no part is unsupported
}

func (w *patternWriter) write(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		w.WriteString("(?:)")
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			w.literal(r, re.Flags&syntax.FoldCase != 0)
		}
	case syntax.OpCharClass:
		w.class(re.Rune)
	case syntax.OpAnyCharNotNL:
		w.class([]rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune})
	case syntax.OpAnyChar:
		w.class([]rune{0, unicode.MaxRune})
	case syntax.OpBeginLine:
		w.WriteString("(?m:^)")
	case syntax.OpEndLine:
		w.WriteString("(?m:$)")
	case syntax.OpBeginText:
		w.WriteString(`\A`)
	case syntax.OpEndText:
		w.WriteString(`\z`)
	case syntax.OpWordBoundary:
		w.WriteString(`\b`)
	case syntax.OpCapture, syntax.OpConcat, syntax.OpAlternate, syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		w.group(re)
	default: // OpNoWordBoundary, which the server finds within characters, and OpNoMatch
		w.ok = false
	}
}

func (w *patternWriter) group(re *syntax.Regexp) {
	w.WriteString("(?:")
	for i, sub := range re.Sub {
		if i > 0 && re.Op == syntax.OpAlternate {
			w.WriteByte('|')
		}
		w.write(sub)
	}
	w.WriteByte(')')
	switch re.Op {
	case syntax.OpStar:
		w.WriteByte('*')
	case syntax.OpPlus:
		w.WriteByte('+')
	case syntax.OpQuest:
		w.WriteByte('?')
	case syntax.OpRepeat:
		w.repeat(re.Min, re.Max)
	}
}

func (w *patternWriter) repeat(least, most int) {
	if most < 0 {
		fmt.Fprintf(w, "{%d,}", least)
		return
	}
	fmt.Fprintf(w, "{%d,%d}", least, most)
}

func (w *patternWriter) literal(r rune, fold bool) {
	if r == utf8.RuneError { // also matches invalid UTF-8 in Go
		w.ok = false
	}
	if !fold || unicode.SimpleFold(r) == r {
		w.character(r)
		return
	}
	set := []rune{r, r}
	for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
		set = append(set, o, o)
	}
	w.class(set)
}

func (w *patternWriter) character(r rune) {
	switch {
	case r < ' ' || r == 0x7f:
		fmt.Fprintf(w, `\x{%x}`, r)
	case r < utf8.RuneSelf && !isWord(r) && r != ' ':
		w.WriteByte('\\')
		w.WriteRune(r)
	default:
		w.WriteRune(r)
	}
}

func isWord(r rune) bool {
	return r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// class writes a class of characters as pairs of bounds.
func (w *patternWriter) class(ranges []rune) {
	if len(ranges) == 0 {
		w.ok = false // matches nothing
		return
	}
	w.WriteByte('[')
	for i := 0; i+1 < len(ranges); i += 2 {
		fmt.Fprintf(w, `\x{%x}-\x{%x}`, ranges[i], ranges[i+1])
	}
	w.WriteByte(']')
}
