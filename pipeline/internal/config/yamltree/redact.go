package yamltree

import (
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// included is a value that may be a secret, and what is written in the configuration instead. The
// value is the value of an environment variable or file in the scalar at path, or the whole scalar.
type included struct{ path, text, written string }

// minSecret is the minimum length of a secret in bytes. Shorter texts match by chance.
const minSecret = 6

var (
	words = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[\pL\pN]+`)
	hosts = regexp.MustCompile(`^$|^localhost$|^[A-Za-z0-9_-]*\.[A-Za-z0-9._-]*$`)
)

// mayBeSecret reports whether a value may be a secret: it is not a number, a boolean, a duration
// or, unless it was read from a file, an address.
func (v *included) mayBeSecret() bool {
	_, notNumber := strconv.ParseFloat(v.text, 64)
	_, notDuration := time.ParseDuration(v.text)
	return len(v.text) >= minSecret && notNumber != nil && notDuration != nil && (v.isFile() || !isAddress(v.text))
}

func (v *included) isFile() bool { return strings.HasPrefix(v.written, "${file:") }

// isAddress reports whether a text is an IP address, localhost, or host:port. Other hosts need a
// dot: user:12345 may be a user and a password.
func isAddress(text string) bool {
	host, port, noPort := net.SplitHostPort(text)
	if noPort != nil {
		_, notIP := netip.ParseAddr(text)
		return notIP == nil || text == "localhost"
	}
	_, notIP := netip.ParseAddr(host)
	_, notPort := strconv.ParseUint(port, 10, 16)
	return notPort == nil && (notIP == nil || hosts.MatchString(host))
}

// Redact replaces the values of environment variables and files by what is written in the
// configuration, in messages about their keys and about blocks that contain them. A message that
// contains only a part of such a value, for example because it is truncated, is not shown.
func (t *Tree) Redact(problems Problems) {
	for i := range problems {
		p := &problems[i]
		concerned := slices.DeleteFunc(slices.Clone(t.included), func(v included) bool {
			return p.Path != "" && p.Path != v.path && !strings.HasPrefix(v.path, p.Path+".")
		})
		for _, v := range concerned {
			p.Msg = v.replace(p.Msg)
		}
		what, remedy, _ := strings.Cut(p.Msg, "; ")
		for _, v := range slices.Backward(concerned) { // variables before the whole scalar
			if !v.isPartOf(what) {
				continue
			}
			p.Msg = "has a problem that is not shown, because the message contains a part of " + v.written + ", which may be a secret"
			if remedy != "" && !v.isPartOf(remedy) {
				p.Msg += "; " + remedy
			}
			break
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

// replace replaces the value, including its quoted form, but not within a longer word.
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

// joins reports whether a word spans the end of one text and the beginning of the next.
func joins(a, b string) bool {
	isWord := func(c byte) bool { return c >= 0x80 || c == '_' || words.Match([]byte{c}) }
	return a != "" && b != "" && isWord(a[len(a)-1]) && isWord(b[0])
}

// isPartOf reports whether a message contains a part of the value in quotes, or a word of it,
// possibly cut at one end or at the end of a longer word. Text that is written in the configuration
// does not count.
func (v *included) isPartOf(msg string) bool {
	own := words.FindAllString(strings.ReplaceAll(v.text, `"`, " "), -1)
	return slices.ContainsFunc(words.FindAllString(msg, -1), func(part string) bool {
		text, isQuoted := strconv.Unquote(part)
		switch {
		case isQuoted != nil:
			text = part
		case strings.Contains(strings.ToLower(v.text), strings.ToLower(text)):
		default:
			return v.isPartOf(strings.ReplaceAll(text, `"`, " "))
		}
		if len(text) < minSecret || strings.Contains(v.written, text) {
			return false
		}
		return isQuoted == nil || slices.ContainsFunc(own, func(word string) bool { return sharesEnd(word, text) })
	})
}

// sharesEnd reports whether one of two words begins or ends with the other, of at least minSecret
// bytes.
func sharesEnd(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return len(a) >= minSecret && (strings.HasPrefix(b, a) || strings.HasSuffix(b, a))
}
