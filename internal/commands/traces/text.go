package traces

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// maxText is the maximum number of bytes shown of a value.
	maxText = 2000
	// maxRunesPerCell limits the number of zero-width characters for each column.
	maxRunesPerCell = 8
	ellipsis        = "…"
)

// clean returns text that is safe to print on a terminal: characters that are not printable, and
// invalid UTF-8, are escaped like in Go. Text longer than maxText is truncated with a notice.
func clean(s string) string {
	rest := 0
	if len(s) > maxText {
		cut := maxText
		for cut > maxText-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s, rest = s[:cut], len(s)-cut
	}
	if !isClean(s) {
		s = escaped(s)
	}
	if rest > 0 {
		s += fmt.Sprintf("%s (%d more bytes)", ellipsis, rest)
	}
	return s
}

// isPrintable reports whether a character is displayed, or joins its neighbors, without other
// effects. Control characters and characters that change the text direction are not printable.
func isPrintable(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	return unicode.IsPrint(r) || r == nonJoiner || r == joiner
}

func isClean(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !isPrintable(r) }) < 0
}

func escaped(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case isPrintable(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// wide holds the characters that take two columns: those with the Unicode property East Asian Width
// wide or fullwidth, without unassigned gaps.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x231a, 0x231b, 1}, {0x2329, 0x232a, 1}, {0x23e9, 0x23ec, 1}, {0x23f0, 0x23f3, 3}, {0x25fd, 0x25fe, 1},
		{0x2614, 0x2615, 1}, {0x2648, 0x2653, 1}, {0x267f, 0x2693, 20}, {0x26a1, 0x26a1, 1}, {0x26aa, 0x26ab, 1}, {0x26bd, 0x26be, 1},
		{0x26c4, 0x26c5, 1}, {0x26ce, 0x26d4, 6}, {0x26ea, 0x26ea, 1}, {0x26f2, 0x26f3, 1}, {0x26f5, 0x26fa, 5}, {0x26fd, 0x2705, 8},
		{0x270a, 0x270b, 1}, {0x2728, 0x2728, 1}, {0x274c, 0x274e, 2}, {0x2753, 0x2755, 1}, {0x2757, 0x2757, 1}, {0x2795, 0x2797, 1},
		{0x27b0, 0x27bf, 15}, {0x2b1b, 0x2b1c, 1}, {0x2b50, 0x2b55, 5}, {0x2e80, 0x303e, 1}, {0x3041, 0x4dbf, 1}, {0x4e00, 0xa4cf, 1},
		{0xa960, 0xa97f, 1}, {0xac00, 0xd7a3, 1}, {0xf900, 0xfaff, 1}, {0xfe10, 0xfe19, 1}, {0xfe30, 0xfe6f, 1}, {0xff01, 0xff60, 1},
		{0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{
		{0x16fe0, 0x18cff, 1}, {0x1b000, 0x1b2fb, 1}, {0x1f004, 0x1f004, 1}, {0x1f0cf, 0x1f0cf, 1}, {0x1f18e, 0x1f18e, 1},
		{0x1f191, 0x1f19a, 1}, {0x1f200, 0x1f320, 1}, {0x1f32d, 0x1f335, 1}, {0x1f337, 0x1f37c, 1}, {0x1f37e, 0x1f393, 1},
		{0x1f3a0, 0x1f3ca, 1}, {0x1f3cf, 0x1f3d3, 1}, {0x1f3e0, 0x1f3f0, 1}, {0x1f3f4, 0x1f3f4, 1}, {0x1f3f8, 0x1f43e, 1},
		{0x1f440, 0x1f440, 1}, {0x1f442, 0x1f4fc, 1}, {0x1f4ff, 0x1f53d, 1}, {0x1f54b, 0x1f54e, 1}, {0x1f550, 0x1f567, 1},
		{0x1f57a, 0x1f57a, 1}, {0x1f595, 0x1f596, 1}, {0x1f5a4, 0x1f5a4, 1}, {0x1f5fb, 0x1f64f, 1}, {0x1f680, 0x1f6c5, 1},
		{0x1f6cc, 0x1f6cc, 1}, {0x1f6d0, 0x1f6d2, 1}, {0x1f6d5, 0x1f6d7, 1}, {0x1f6dc, 0x1f6df, 1}, {0x1f6eb, 0x1f6ec, 1},
		{0x1f6f4, 0x1f6fc, 1}, {0x1f7e0, 0x1f7eb, 1}, {0x1f7f0, 0x1f7f0, 1}, {0x1f90c, 0x1f93a, 1}, {0x1f93c, 0x1f945, 1},
		{0x1f947, 0x1f9ff, 1}, {0x1fa70, 0x1faff, 1}, {0x20000, 0x3fffd, 1},
	},
}

// cells returns the number of terminal columns of a printable character.
func cells(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

func width(s string) int {
	n := 0
	for _, r := range s {
		n += cells(r)
	}
	return n
}

// fit returns printable text in exactly the given number of columns, cut or padded with spaces.
func fit(s string, columns int) string {
	s = shorten(s, columns)
	return s + strings.Repeat(" ", max(0, columns-width(s)))
}

// shorten returns printable text in at most the given number of columns.
func shorten(s string, columns int) string {
	runes, used, end := 0, 0, 0 // end: bytes that fit before an ellipsis
	for i, r := range s {
		used += cells(r)
		runes++
		if used > columns || runes > maxRunesPerCell*columns {
			return s[:end] + ellipsis[:len(ellipsis)*min(1, max(0, columns))]
		}
		if used < columns {
			end = i + utf8.RuneLen(r)
		}
	}
	return s
}

// alignRight pads text with spaces on the left. Longer text is not cut.
func alignRight(s string, columns int) string {
	return strings.Repeat(" ", max(0, columns-width(s))) + s
}

// short formats a duration with three digits; from one minute, with a precision of 0.1 s.
func short(d time.Duration) string {
	unit := time.Nanosecond
	for limit := d.Abs(); limit >= 1000*unit && unit < 100*time.Millisecond; unit *= 10 {
	}
	return d.Round(unit).String()
}

// count formats a number with a singular or plural noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
