package traceql

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

type kind uint8

// The kinds of tokens.
const (
	end      kind = iota
	word          // field names, kinds, statuses, true, false, nil
	number        // numbers and durations
	quoted        // "..." or `...`
	operator      // operators and brackets
	invalid       // anything else; msg describes the error
)

// token is one token of a search.
type token struct {
	kind       kind
	text       string // without quotes
	plain      int    // of a word: number of bytes of text before its first quoted part
	begin, end int    // offsets in the search
	msg        string
	value      *otlpdata.Value // of a number that was calculated
}

// is reports whether the token is the given operator or bracket.
func (t token) is(text string) bool { return t.kind == operator && t.text == text }

// isWord reports whether the token is the given word, without quotes.
func (t token) isWord(text string) bool {
	return t.kind == word && t.text == text && t.plain == len(text)
}

// tokens returns the tokens of a search. The last one is an invalid token or the end.
func tokens(text string) []token {
	l := lexer{text: text}
	var all []token
	for {
		t := l.next()
		if all = append(all, t); t.kind == end || t.kind == invalid {
			return all
		}
	}
}

type lexer struct {
	text string
	at   int
}

func (l *lexer) next() token {
	rest := l.skipSpace()
	t := token{begin: l.at}
	c, size := utf8.DecodeRuneInString(rest)
	switch {
	case rest == "":
		t.kind = end
	case c == '"' || c == '`':
		t.kind = quoted
		l.quoted(&t, false)
	case startsNumber(rest):
		t.kind = number
		l.at += numberLen(rest)
		t.text = l.text[t.begin:l.at]
	case c == '.' || c == '_' || unicode.IsLetter(c):
		l.word(&t)
	default:
		l.operator(&t, size)
	}
	t.end = l.at
	return t
}

// skipSpace skips white space and comments, and returns the rest of the text. It does not skip an
// open comment.
func (l *lexer) skipSpace() string {
	for {
		rest := strings.TrimLeftFunc(l.text[l.at:], unicode.IsSpace)
		if strings.HasPrefix(rest, "//") {
			_, rest, _ = strings.Cut(rest, "\n")
		} else if inside, ok := strings.CutPrefix(rest, "/*"); ok && strings.Contains(inside, "*/") {
			_, rest, _ = strings.Cut(inside, "*/")
		} else {
			l.at = len(l.text) - len(rest)
			return rest
		}
		l.at = len(l.text) - len(rest)
	}
}

// fail turns the token into an invalid one with n bytes.
func (t *token) fail(l *lexer, n int, msg string) {
	t.kind, t.msg = invalid, msg
	l.at = min(t.begin+n, len(l.text))
}

// isOperator reports whether s is an operator or bracket, including unsupported operators, for
// which the parser has specific errors.
func isOperator(s string) bool {
	switch s {
	case "!>>", "!<<", "&>>", "&<<", "/*",
		"&&", "||", ">>", "<<", ">=", "<=", "!=", "!~", "=~", "==", "!>", "!<", "&>", "&<", "&~",
		"{", "}", "(", ")", ",", "|", "=", "<", ">", "!", "~", "+", "-", "*", "/", "%", "^", "&":
		return true
	}
	return false
}

// operator reads the longest operator.
func (l *lexer) operator(t *token, size int) {
	rest := l.text[l.at:]
	for n := min(3, len(rest)); n > 0; n-- {
		if isOperator(rest[:n]) {
			t.kind, t.text = operator, rest[:n]
			l.at += n
			return
		}
	}
	msg := "unexpected character; put text in quotes, and also names with such characters: span.\"a b\""
	if rest[0] == '\'' {
		msg = "use double quotes or backquotes for text"
	}
	t.fail(l, size, msg)
}

func startsNumber(s string) bool {
	s = strings.TrimPrefix(s, ".")
	return s != "" && s[0] >= '0' && s[0] <= '9'
}

// numberLen returns the length of the number or duration at the beginning of s, including letters
// that directly follow it.
func numberLen(s string) int {
	for i, c := range s {
		switch {
		case unicode.IsLetter(c) || unicode.IsDigit(c) || c == '.' || c == '_':
		case (c == '-' || c == '+') && (s[i-1] == 'e' || s[i-1] == 'E') && isDigits(s[i+1:min(i+2, len(s))]):
		default:
			return i
		}
	}
	return len(s)
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// isWordRune reports whether names may contain c without quotes.
func isWordRune(c rune) bool {
	return unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("_.-/:@", c)
}

// isAttributeRune reports whether keys of attributes may contain c without quotes if the name
// begins with a scope.
func isAttributeRune(c rune) bool {
	return !unicode.IsSpace(c) && !strings.ContainsRune("{}()=~!<>&|^,\"", c)
}

// word reads a name. Parts after a dot may be in double quotes: span."a b".c.
func (l *lexer) word(t *token) {
	var text strings.Builder
	t.kind, t.plain = word, -1
	attribute := false
	for l.at < len(l.text) {
		c, size := utf8.DecodeRuneInString(l.text[l.at:])
		if c == '"' && (attribute || l.text[l.at-1] == '.') {
			if t.plain < 0 {
				t.plain = text.Len()
			}
			part := token{begin: l.at}
			if l.quoted(&part, true); part.kind == invalid {
				part.end = l.at
				*t = part
				return
			}
			text.WriteString(part.text)
			continue
		}
		if !isWordRune(c) && !(attribute && isAttributeRune(c)) {
			break
		}
		text.WriteString(l.text[l.at : l.at+size])
		l.at += size
		attribute = attribute || c == '.' && (text.Len() == 1 || isScope(text.String()[:text.Len()-1]) || text.String() == parentPrefix)
	}
	if t.text = text.String(); t.plain < 0 {
		t.plain = len(t.text)
	}
}

const unclosed = "missing closing quote"

// quoted reads "..." with the escapes of Go, or `...` without escapes. lines permits line feeds in
// double quotes.
func (l *lexer) quoted(t *token, lines bool) {
	rest := l.text[l.at:]
	if rest[0] == '`' {
		n := strings.IndexByte(rest[1:], '`')
		if n < 0 {
			t.fail(l, len(rest), unclosed)
			return
		}
		t.text = rest[1 : n+1]
		l.at += n + 2
		return
	}
	n := 1
	for n < len(rest) && rest[n] != '"' && (lines || rest[n] != '\n') {
		if rest[n] == '\\' {
			n++
		}
		n++
	}
	if n >= len(rest) || rest[n] != '"' {
		t.fail(l, min(n, len(rest)), unclosed+"; write \\n for a line feed")
		return
	}
	text, at, err := unquote(rest[1:n])
	if err != nil {
		t.begin += 1 + at
		t.fail(l, 2, "unknown escape sequence; write \\\\ for a backslash, or use backquotes")
		return
	}
	t.text = text
	l.at += n + 1
}

var errEscape = errors.New("unknown escape sequence")

// unquote interprets the escape sequences in s, the content of double quotes. With an error it
// returns the offset of the invalid sequence.
func unquote(s string) (text string, at int, err error) {
	if !strings.Contains(s, `\`) {
		return s, 0, nil
	}
	b := slices.Grow([]byte(nil), len(s))
	for rest := s; rest != ""; {
		c, multibyte, tail, err := strconv.UnquoteChar(rest, '"')
		if err != nil {
			return "", len(s) - len(rest), errEscape
		}
		if c < utf8.RuneSelf || !multibyte {
			b = append(b, byte(c))
		} else {
			b = utf8.AppendRune(b, c)
		}
		rest = tail
	}
	return string(b), 0, nil
}
