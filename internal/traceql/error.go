package traceql

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error says what is wrong with a search, and where.
type Error struct {
	Text           string // the search
	Offset, Length int    // of what is wrong, in bytes of Text; the length is 0 where something is missing
	Msg            string // what is wrong, and what to write instead
}

// Error returns one line.
func (e *Error) Error() string {
	line, column := e.position()
	if line == 1 {
		return fmt.Sprintf("column %d: %s", column, e.Msg)
	}
	return fmt.Sprintf("line %d, column %d: %s", line, column, e.Msg)
}

// position returns the line and the column of Offset, from 1; columns are characters.
func (e *Error) position() (line, column int) {
	before := e.Text[:e.Offset]
	begin := strings.LastIndexByte(before, '\n') + 1
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[begin:])
}

// How much Detail shows of a line around the place, in characters.
const (
	shownBefore = 50
	shownMarked = 40
	shownBehind = 20
	cutMark     = "..."
)

// Detail returns three lines without a final line feed: the error, the line of the search with the place, and marks under the place. Of a
// long line it shows what is near. Each character that has no shape of its own is shown as one that has.
func (e *Error) Detail() string {
	begin := strings.LastIndexByte(e.Text[:e.Offset], '\n') + 1
	end := len(e.Text)
	if n := strings.IndexByte(e.Text[e.Offset:], '\n'); n >= 0 {
		end = e.Offset + n
	}
	before := []rune(e.Text[begin:e.Offset])
	marked := []rune(e.Text[e.Offset:min(e.Offset+e.Length, end)])
	behind := []rune(e.Text[e.Offset+min(e.Length, end-e.Offset) : end])

	left, right := "", ""
	if len(before) > shownBefore {
		before, left = before[len(before)-shownBefore:], cutMark
	}
	if len(marked) > shownMarked {
		marked, behind, right = marked[:shownMarked], nil, cutMark
	}
	if len(behind) > shownBehind {
		behind, right = behind[:shownBehind], cutMark
	}
	shown := left + visible(before) + visible(marked) + visible(behind) + right
	return fmt.Sprintf("%s\n  %s\n  %s%s", e.Error(), strings.TrimRight(shown, " "),
		strings.Repeat(" ", len(left)+width(before)), strings.Repeat("^", max(1, width(marked))))
}

// width returns how many columns a terminal takes for a text that is visible, besides characters that are rare in searches.
func width(text []rune) int {
	n := len(text)
	for _, c := range text {
		if unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			n++
		}
	}
	return n
}

// visible replaces what a terminal would not show as one column: tabs, controls, marks that join with the letter before them.
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

// clipped returns a piece of a search for a message, which stays a short line.
func clipped(s string) string {
	const most = 40 // characters
	short := []rune(s[:min(len(s), most*utf8.UTFMax)])
	if len(short) > most {
		return visible(short[:most]) + cutMark
	}
	return visible(short)
}

func quote(s string) string { return strconv.Quote(clipped(s)) }
