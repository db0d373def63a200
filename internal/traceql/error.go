package traceql

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error describes what is wrong in a search, and where.
type Error struct {
	Text           string // the search
	Offset, Length int    // position of the error in bytes of Text; Length is 0 if something is missing
	Msg            string // what is wrong and what to write instead
}

// Error returns the position and the message as one line.
func (e *Error) Error() string {
	line, column := e.Position()
	if line == 1 {
		return fmt.Sprintf("column %d: %s", column, e.Msg)
	}
	return fmt.Sprintf("line %d, column %d: %s", line, column, e.Msg)
}

// MarkStructure returns an error with a message that marks the first part of a valid search that
// depends on the structure of traces: an operator between braces other than ||, or an aggregate.
func MarkStructure(text, msg string) *Error {
	e := &Error{Text: text, Msg: msg}
	depth := 0 // of braces, and of brackets after the name of a stage
	var last token
	for _, t := range tokens(text) {
		switch {
		case t.is("{"), t.is("(") && (depth > 0 || isGrouping(last)):
			depth++
		case depth > 0:
			if t.is("}") || t.is(")") {
				depth--
			}
		case !t.is("(") && !t.is(")") && !t.is("||") && !t.is("|") && !isGrouping(t):
			e.Offset, e.Length = t.begin, t.end-t.begin
			return e
		}
		last = t
	}
	return e
}

// isGrouping reports whether t begins a stage that selects no other spans, or hints.
func isGrouping(t token) bool {
	return t.isWord("by") || t.isWord("coalesce") || t.isWord("select") || t.isWord("with")
}

// Position returns the line and the column of Offset, counted from 1. Columns are characters.
func (e *Error) Position() (line, column int) {
	before := e.Text[:e.Offset]
	begin := strings.LastIndexByte(before, '\n') + 1
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[begin:])
}

// Parts of a line that Detail shows before, at and after the error, in characters.
const (
	shownBefore = 50
	shownMarked = 40
	shownAfter  = 20
	ellipsis    = "..."
)

// Detail returns three lines without a final line feed: the error, the line of the search, and
// marks under the error. A long line is cut to the part near the error. Invisible characters are
// replaced.
func (e *Error) Detail() string {
	begin := strings.LastIndexByte(e.Text[:e.Offset], '\n') + 1
	end := len(e.Text)
	if n := strings.IndexByte(e.Text[e.Offset:], '\n'); n >= 0 {
		end = e.Offset + n
	}
	before := []rune(e.Text[begin:e.Offset])
	marked := []rune(e.Text[e.Offset:min(e.Offset+e.Length, end)])
	after := []rune(e.Text[e.Offset+min(e.Length, end-e.Offset) : end])

	left, right := "", ""
	if len(before) > shownBefore {
		before, left = before[len(before)-shownBefore:], ellipsis
	}
	if len(marked) > shownMarked {
		marked, after, right = marked[:shownMarked], nil, ellipsis
	}
	if len(after) > shownAfter {
		after, right = after[:shownAfter], ellipsis
	}
	shown := left + visible(before) + visible(marked) + visible(after) + right
	return fmt.Sprintf("%s\n  %s\n  %s%s", e.Error(), strings.TrimRight(shown, " "),
		strings.Repeat(" ", len(left)+width(before)), strings.Repeat("^", max(1, width(marked))))
}

// width returns the number of terminal columns of a visible text. It does not cover all wide
// characters.
func width(text []rune) int {
	n := len(text)
	for _, c := range text {
		if unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			n++
		}
	}
	return n
}

// visible replaces characters that a terminal does not show as one column: white space, control
// characters and combining marks.
func visible(text []rune) string {
	for i, c := range text {
		switch {
		case unicode.IsSpace(c):
			text[i] = ' '
		case !unicode.IsPrint(c) || unicode.Is(unicode.Mn, c) || c == utf8.RuneError:
			text[i] = '?'
		}
	}
	return string(text)
}

// shorten returns the beginning of a text, for use in a message.
func shorten(s string) string {
	const maxChars = 40 // characters
	short := []rune(s[:min(len(s), maxChars*utf8.UTFMax)])
	if len(short) > maxChars {
		return visible(short[:maxChars]) + ellipsis
	}
	return visible(short)
}

func quote(s string) string { return strconv.Quote(shorten(s)) }
