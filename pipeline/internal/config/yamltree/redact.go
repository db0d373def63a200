package yamltree

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// included is the value of an environment variable or a file in the scalar at path, or the whole
// scalar with it, and what is written in the configuration. It may be a secret.
type included struct{ path, text, written string }

// minSecret is the minimum length of a secret in bytes. Shorter texts occur by chance.
const minSecret = 6

var (
	address = regexp.MustCompile(`^(?:localhost|(?:[a-z0-9-]+\.)+[a-z]{2,})$|^(?:[a-z0-9.-]*|\[[0-9a-f:]+\]):\d{1,5}$`)
	words   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[\pL\pN]+`)
)

// mayBeSecret reports whether a text is anything but a number, a boolean, a duration or an address.
func mayBeSecret(text string) bool {
	_, notNumber := strconv.ParseFloat(text, 64)
	_, notDuration := time.ParseDuration(text)
	_, notIP := netip.ParseAddr(text)
	return len(text) >= minSecret && notNumber != nil && notDuration != nil && notIP != nil && !address.MatchString(text)
}

// Redact replaces values of environment variables and files by what is written in the
// configuration, in messages about their keys and about blocks that contain them. If a message
// about such a key or its list has a part of the value, it keeps only what to do.
func (t *Tree) Redact(problems Problems) {
	for i := range problems {
		p := &problems[i]
		for _, v := range t.included {
			below, isBelow := strings.CutPrefix(v.path, p.Path+".")
			if !isBelow && p.Path != "" && p.Path != v.path {
				continue
			}
			p.Msg = v.replace(p.Msg)
			_, notItem := strconv.Atoi(below)
			what, remedy, _ := strings.Cut(p.Msg, "; ")
			if (p.Path == v.path || notItem == nil) && v.isPartOf(what) {
				p.Msg = strings.TrimSuffix(v.written+" is not valid here; its value may be a secret and is not shown; "+remedy, "; ")
			}
		}
	}
}

// RedactText is Redact for a message about any keys.
func (t *Tree) RedactText(msg string) string {
	for _, v := range t.included {
		msg = v.replace(msg)
	}
	return msg
}

// replace replaces the value, also as it is in quoted strings, but not within a longer word.
func (v *included) replace(msg string) string {
	quoted := strconv.Quote(v.text)
	for _, text := range slices.Compact([]string{v.text, quoted[1 : len(quoted)-1]}) {
		parts := strings.Split(msg, text)
		msg = parts[0]
		for _, part := range parts[1:] {
			if joins(msg, text) || joins(text, part) {
				msg += text + part
			} else {
				msg += v.written + part
			}
		}
	}
	return msg
}

// joins reports whether a word goes from the end of one text to the beginning of the next.
func joins(a, b string) bool {
	isWord := func(c byte) bool { return c >= 0x80 || c == '_' || words.Match([]byte{c}) }
	return a != "" && b != "" && isWord(a[len(a)-1]) && isWord(b[0])
}

// isPartOf reports whether a message has a part of the value in quotes, or a word of it.
func (v *included) isPartOf(msg string) bool {
	own := words.FindAllString(strings.ReplaceAll(v.text, `"`, " "), -1)
	return slices.ContainsFunc(words.FindAllString(msg, -1), func(part string) bool {
		text, isQuoted := strconv.Unquote(part)
		if isQuoted != nil {
			return len(part) >= minSecret && slices.Contains(own, part)
		}
		return len(text) >= minSecret && !strings.Contains(v.written, text) &&
			strings.Contains(strings.ToLower(v.text), strings.ToLower(text))
	})
}
