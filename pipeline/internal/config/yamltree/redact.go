package yamltree

import (
	"regexp"
	"strconv"
	"strings"
)

// included is a scalar with a value from an environment variable or a file, which may be a secret.
type included struct{ path, text, written string }

// Lengths from which texts are looked for in messages: parts of an included value in a message
// about its key, and whole values in any message. Shorter ones occur by chance.
const (
	minPart  = 4
	minWhole = 12
)

var words = regexp.MustCompile(`[\pL\pN]+`)

// Redact replaces the values of environment variables and files in the messages of problems by what
// is written in the configuration. A message about a key with such a value does not contain a part
// of the value either.
func (t *Tree) Redact(problems Problems) {
	for i := range problems {
		p := &problems[i]
		for _, v := range t.included {
			p.Msg = v.replace(p.Msg)
			if v.isAt(p.Path) && v.leaks(p.Msg) {
				p.Msg = "the value of " + v.written + " is not valid; it is not shown, because it may be a secret"
			}
		}
	}
}

// RedactText is Redact for a message without a path.
func (t *Tree) RedactText(msg string) string {
	for _, v := range t.included {
		msg = v.replace(msg)
	}
	return msg
}

// isAt reports whether the value is at, above or below a path.
func (v *included) isAt(path string) bool {
	return path == v.path || strings.HasPrefix(path, v.path+".") || strings.HasPrefix(v.path, path+".")
}

func (v *included) replace(msg string) string {
	if v.text == "" {
		return msg
	}
	msg = strings.ReplaceAll(msg, strconv.Quote(v.text), strconv.Quote(v.written))
	if len(v.text) >= minWhole {
		msg = strings.ReplaceAll(msg, v.text, v.written)
	}
	return msg
}

// leaks reports whether a message contains a word of the value, in any case, outside of what is
// written in the configuration.
func (v *included) leaks(msg string) bool {
	msg = strings.ToLower(strings.ReplaceAll(msg, v.written, ""))
	for _, word := range words.FindAllString(strings.ToLower(v.text), -1) {
		if len(word) >= minPart && strings.Contains(msg, word) {
			return true
		}
	}
	return false
}
