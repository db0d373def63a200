package tempo

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

// logfmtTag is `key=value`, or a key alone.
type logfmtTag struct {
	key, value string
	hasValue   bool
}

// parseLogfmt parses tags that are separated by white space. A value in double quotes is a Go
// string literal, which is the same as in JSON except for escaped slashes. A key may occur only
// once.
func parseLogfmt(text string) (tags []logfmtTag, err error) {
	if len(text) > maxLogfmtBytes {
		return nil, fmt.Errorf("%d bytes, more than %d", len(text), maxLogfmtBytes)
	}
	seen := make(map[string]bool)
	rest := strings.TrimLeft(text, logfmtSpace)
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
			return nil, fmt.Errorf("more than %d tags", maxLogfmtTags)
		}
		rest = strings.TrimLeft(rest, logfmtSpace)
	}
	return tags, nil
}

const logfmtSpace = " \t\r\n"

// cutLogfmt parses the first tag of a text that begins with one.
func cutLogfmt(text string) (t logfmtTag, rest string, err error) {
	end := strings.IndexAny(text, logfmtSpace+`="`)
	if end < 0 {
		end = len(text)
	}
	t.key, rest = text[:end], text[end:]
	if t.key == "" || !utf8.ValidString(t.key) {
		return t, rest, fmt.Errorf("no key")
	}
	if strings.HasPrefix(rest, `"`) {
		return t, rest, fmt.Errorf("quote in a key")
	}
	if !strings.HasPrefix(rest, "=") {
		return t, rest, nil
	}
	t.hasValue = true
	t.value, rest, err = cutLogfmtValue(rest[1:])
	return t, rest, err
}

// cutLogfmtValue parses the value at the beginning of a text.
func cutLogfmtValue(text string) (value, rest string, err error) {
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", text, fmt.Errorf("invalid quoted value")
		}
		if value, err = strconv.Unquote(quoted); err != nil {
			return "", text, fmt.Errorf("invalid quoted value")
		}
		return value, text[len(quoted):], nil
	}
	end := strings.IndexAny(text, logfmtSpace+`="`)
	if end < 0 {
		end = len(text)
	}
	if value, rest = text[:end], text[end:]; rest != "" && !strings.ContainsRune(logfmtSpace, rune(rest[0])) {
		return "", rest, fmt.Errorf("unquoted value with %q", rest[0])
	}
	return value, rest, nil
}
