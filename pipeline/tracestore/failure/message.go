package failure

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxMessage is the maximum number of bytes of a message that are examined.
	maxMessage = 4 << 10
	// maxPattern is the approximate maximum length of a pattern in bytes.
	maxPattern = 200
	// maxQuoted is the maximum length of a quoted value in bytes. A longer text in quotes is
	// treated like text without them, because the second quote may belong to another pair.
	maxQuoted = 200
)

// Pattern is a message without its variable parts.
type Pattern struct {
	parts []part
	// Whether messages have more text before or after the parts.
	before, after bool
}

// part is a literal text, or a placeholder.
type part struct {
	text        string
	placeholder bool
}

// Placeholders.
const (
	anyNumber = "<n>"
	anyID     = "<id>"
	anyText   = "<text>"
	anyPath   = "<path>"
	anyURL    = "<url>"
	anyEmail  = "<email>"
)

// PatternOf replaces the variable parts of the first non-empty line of a message:
//
//   - values in single, double or back quotes: the quotes stay
//   - URLs, email addresses, paths of files
//   - ids: UUIDs, hexadecimal digits (at least 6 with a decimal digit, or after 0x), words of at
//     least 16 characters with at least 4 digits
//   - numbers, also with separators and within words
//
// Spaces at both ends are removed.
func PatternOf(message string) Pattern {
	var p Pattern
	text := cut(message, maxMessage)
	begin := strings.TrimLeftFunc(text, unicode.IsSpace)
	line, _, _ := strings.Cut(begin, "\n")
	line = strings.TrimRightFunc(line, unicode.IsSpace)
	p.before = len(begin) < len(text)
	p.after = len(text)-len(begin)+len(line) < len(message)
	size := 0
	for line != "" {
		if size >= maxPattern {
			p.after = true
			break
		}
		n := p.next(line)
		size += len(p.parts[len(p.parts)-1].text)
		line = line[n:]
	}
	p.join()
	return p
}

// cut returns the beginning of a text, at most n bytes, between characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// next appends the part at the beginning of a text, and returns its length.
func (p *Pattern) next(text string) int {
	c, size := utf8.DecodeRuneInString(text)
	switch {
	case p.inWord():
	case c == '"' || c == '\'' || c == '`':
		if n := quoted(text, byte(c)); n > 0 {
			p.parts = append(p.parts, part{text: text[:1]}, part{anyText, true}, part{text: text[:1]})
			return n
		}
	default:
		if n, placeholder := variable(text); n > 0 {
			p.parts = append(p.parts, part{placeholder, true})
			return n
		}
	}
	if '0' <= c && c <= '9' {
		p.parts = append(p.parts, part{anyNumber, true})
		return number(text)
	}
	p.parts = append(p.parts, part{text: text[:size]})
	return size
}

// inWord reports whether the text so far ends within a word.
func (p *Pattern) inWord() bool {
	if len(p.parts) == 0 {
		return false
	}
	last := p.parts[len(p.parts)-1]
	c, _ := utf8.DecodeLastRuneInString(last.text)
	return last.placeholder || isWord(c)
}

func isWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

// quoted returns the length of a quoted value at the beginning of a text, or 0.
func quoted(text string, quote byte) int {
	limit := min(len(text), maxQuoted+2)
	for i := 1; i < limit; i++ {
		if text[i] != quote {
			continue
		}
		if c, _ := utf8.DecodeRuneInString(text[i+1:]); i+1 == len(text) || !isWord(c) {
			return i + 1
		}
	}
	return 0
}

// number returns the length of a number at the beginning of a text: digits, and separators between
// digits.
func number(text string) int {
	n := 0
	for n < len(text) && (isDigit(text[n]) || strings.IndexByte(".,:", text[n]) >= 0 && n+1 < len(text) && isDigit(text[n+1])) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// variable returns the length of a variable word at the beginning of a text, and its placeholder.
func variable(text string) (n int, placeholder string) {
	word := text[:wordEnd(text, func(c rune) bool { return !unicode.IsSpace(c) && !strings.ContainsRune("\"'`()[]{}<>,;", c) })]
	word = strings.TrimRight(word, ".:!?=&")
	if at := strings.Index(word, "://"); at > 0 && wordEnd(word, isWord) == at {
		return len(word), anyURL
	}
	if n := email(word); n > 0 {
		return n, anyEmail
	}
	if isPath(word) {
		return len(word), anyPath
	}
	if n := identifier(text); n > 0 {
		return n, anyID
	}
	return 0, ""
}

// wordEnd returns the length of the beginning of a text whose characters all meet a condition.
func wordEnd(text string, is func(rune) bool) int {
	if at := strings.IndexFunc(text, func(c rune) bool { return !is(c) }); at >= 0 {
		return at
	}
	return len(text)
}

// email returns the length of an email address, or 0.
func email(word string) int {
	at := strings.IndexByte(word, '@')
	if at <= 0 || wordEnd(word, func(c rune) bool { return isWord(c) || strings.ContainsRune(".+-%", c) }) != at {
		return 0
	}
	domain := word[at+1:][:wordEnd(word[at+1:], func(c rune) bool { return isWord(c) || c == '.' || c == '-' })]
	if domain = strings.TrimRight(domain, ".-"); strings.IndexByte(domain, '.') <= 0 {
		return 0
	}
	return at + 1 + len(domain)
}

// isPath reports whether a word is a file path: it begins with a slash, dots and a slash, or a
// drive, and has at least two names.
func isPath(word string) bool {
	rest := strings.TrimLeft(word, ".")
	if len(rest) > 2 && rest[1] == ':' && (rest[2] == '\\' || rest[2] == '/') && unicode.IsLetter(rune(rest[0])) {
		return true
	}
	if len(rest) < 2 || rest[0] != '/' || rest[1] == '/' {
		return false
	}
	return strings.Count(strings.Trim(rest, "/"), "/") > 0
}

// Lengths of words that are ids.
const (
	minHexID  = 6
	minLongID = 16
	minDigits = 4 // in a long id that is not hexadecimal
)

// identifier returns the length of an id at the beginning of a text, or 0.
func identifier(text string) int {
	n := 0
	for n < len(text) && (isHex(text[n]) || text[n] == '-' || text[n] == '_' || 'a' <= text[n]|0x20 && text[n]|0x20 <= 'z') {
		n++
	}
	if c, _ := utf8.DecodeRuneInString(text[n:]); n < len(text) && isWord(c) {
		return 0
	}
	word := strings.TrimRight(text[:n], "-_")
	digits, hex, letters := 0, 0, 0
	for i := range len(word) {
		switch {
		case isDigit(word[i]):
			digits++
		case isHex(word[i]):
			hex++
		case word[i] != '-':
			letters++
		}
	}
	prefixed := len(word) > 2 && word[0] == '0' && word[1]|0x20 == 'x'
	switch {
	case prefixed && letters == 1,
		letters == 0 && hex > 0 && digits > 0 && len(word) >= minHexID,
		len(word) >= minLongID && digits >= minDigits && hex+letters > 0:
		return len(word)
	}
	return 0
}

// join joins consecutive literal parts.
func (p *Pattern) join() {
	var out []part
	for _, one := range p.parts {
		if last := len(out) - 1; last >= 0 && !one.placeholder && !out[last].placeholder {
			out[last].text += one.text
			continue
		}
		out = append(out, one)
	}
	p.parts = out
}

// String returns the pattern for people.
func (p *Pattern) String() string {
	var b strings.Builder
	for _, one := range p.parts {
		b.WriteString(one.text)
	}
	return strings.ToValidUTF8(b.String(), "\ufffd")
}

// Fixed returns the message if only one message has the pattern: it has no variable parts, no text
// was cut off, and it is valid UTF-8.
func (p *Pattern) Fixed() (message string, ok bool) {
	switch {
	case p.before || p.after || len(p.parts) > 1:
		return "", false
	case len(p.parts) == 0:
		return "", true
	}
	return p.parts[0].text, !p.parts[0].placeholder && utf8.ValidString(p.parts[0].text)
}

// Expression returns a regular expression, without anchors, that matches the messages with this
// pattern.
func (p *Pattern) Expression() string {
	const anything = ".*"
	var b strings.Builder
	if p.before {
		b.WriteString(anything)
	}
	for _, one := range p.parts {
		if one.placeholder {
			b.WriteString(anything)
		} else {
			b.WriteString(regexp.QuoteMeta(string([]rune(one.text)))) // each invalid byte matches U+FFFD
		}
	}
	if p.after {
		b.WriteString(anything)
	}
	return b.String()
}
