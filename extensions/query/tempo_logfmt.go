package query

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxLogfmtBytes = 16 << 10
	maxLogfmtTags  = 64
)

// logfmtTag is `key=value`, or only a key.
type logfmtTag struct {
	key, value string
	hasValue   bool
}

// parseLogfmt reads tags that blanks separate. A value in double quotes is written as in Go, which is also how JSON writes it, but for
// slashes. A key may occur once.
func parseLogfmt(text string) (tags []logfmtTag, err error) {
	if len(text) > maxLogfmtBytes {
		return nil, fmt.Errorf("they are %d bytes long; at most %d are read", len(text), maxLogfmtBytes)
	}
	seen := make(map[string]bool)
	rest := strings.TrimLeft(text, logfmtBlanks)
	for rest != "" {
		at := len(text) - len(rest)
		var t logfmtTag
		if t, rest, err = cutLogfmt(rest); err != nil {
			return nil, fmt.Errorf("%w at position %d", err, at)
		}
		if seen[t.key] {
			return nil, fmt.Errorf("tag %s has been set twice", clip(t.key))
		}
		seen[t.key] = true
		if tags = append(tags, t); len(tags) > maxLogfmtTags {
			return nil, fmt.Errorf("there are more than %d", maxLogfmtTags)
		}
		rest = strings.TrimLeft(rest, logfmtBlanks)
	}
	return tags, nil
}

const logfmtBlanks = " \t\r\n"

// cutLogfmt reads the first tag of a text that begins with one.
func cutLogfmt(text string) (t logfmtTag, rest string, err error) {
	end := strings.IndexAny(text, logfmtBlanks+`="`)
	if end < 0 {
		end = len(text)
	}
	t.key, rest = text[:end], text[end:]
	if t.key == "" || !utf8.ValidString(t.key) {
		return t, rest, fmt.Errorf("no key")
	}
	if strings.HasPrefix(rest, `"`) {
		return t, rest, fmt.Errorf("a quote in a key")
	}
	if !strings.HasPrefix(rest, "=") {
		return t, rest, nil
	}
	t.hasValue = true
	t.value, rest, err = cutLogfmtValue(rest[1:])
	return t, rest, err
}

func cutLogfmtValue(text string) (value, rest string, err error) {
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", text, fmt.Errorf("no value between quotes")
		}
		if value, err = strconv.Unquote(quoted); err != nil {
			return "", text, fmt.Errorf("no value between quotes")
		}
		return value, text[len(quoted):], nil
	}
	end := strings.IndexAny(text, logfmtBlanks+`="`)
	if end < 0 {
		end = len(text)
	}
	if value, rest = text[:end], text[end:]; rest != "" && !strings.ContainsRune(logfmtBlanks, rune(rest[0])) {
		return "", rest, fmt.Errorf("a value with %q that is not between quotes", rest[0])
	}
	return value, rest, nil
}
