package failure

import (
	"regexp"
	"strings"
	"testing"
)

func TestPatternOf(t *testing.T) {
	for message, want := range map[string]string{
		"":                            "",
		"connection refused":          "connection refused",
		"order 17 of decade failed":   "order <n> of decade failed",
		"timeout after 1.5s, 3 of 3":  "timeout after <n>s, <n> of <n>",
		"timeout after 3000 ms":       "timeout after <n> ms",
		"dial tcp 10.0.3.17:5432: no": "dial tcp <n>: no",
		"at 2024-05-01T10:00:00.123Z": "at <n>-<n>-<n>T<n>Z",
		"no trace 550e8400-e29b-41d4-a716-446655440000": "no trace <id>",
		"object 0xc000123 at 3f2a1bc":                   "object <id> at <id>",
		"token aZ3kQ9pLm2xY7wQ1 bad":                    "token <id> bad",
		"sku-17 and u-1007":                             "sku-<n> and u-<n>",
		`column "price" does not exist`:                 `column "<text>" does not exist`,
		"key 'a''b' isn't unique":                       "key '<text>''<text>' isn't unique",
		"it's the user's fault":                         "it's the user's fault",
		"unclosed \"quote here":                         "unclosed \"quote here",
		"mail to ann@shop.example.":                     "mail to <email>.",
		"open /var/lib/x/17.db: denied":                 "open <path>: denied",
		`open C:\data\x.db failed`:                      `open <path> failed`,
		"read/write error, and/or":                      "read/write error, and/or",
		"GET https://shop.example/a?b=1: 503":           "GET <url>: <n>",
		"\n  first line 1 \nsecond":                     "first line <n>",
		"ü 1 \xff\xfe 2":                                "ü <n> \ufffd <n>",
		"file:///a":                                     "<url>",
	} {
		p := PatternOf(message)
		if got := p.String(); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
		checkPattern(t, message)
	}
	long := PatternOf(strings.Repeat("word ", 10_000))
	if n := len(long.String()); n < maxPattern || n > 2*maxPattern {
		t.Errorf("pattern of a long message has %d bytes", n)
	}
}

// checkPattern checks that a pattern matches its message and is small.
func checkPattern(t *testing.T, message string) {
	t.Helper()
	p := PatternOf(message)
	if fixed, ok := p.Fixed(); ok && fixed != message {
		t.Errorf("%q: the only message is %q", message, fixed)
	}
	re, err := regexp.Compile("^(?s:" + p.Expression() + ")$")
	if err != nil || !re.MatchString(message) {
		t.Errorf("%q: %q does not match, %v", message, p.Expression(), err)
	}
	if n := len(p.String()); n > 2*maxPattern {
		t.Errorf("%q: pattern has %d bytes", message, n)
	}
}

func FuzzPattern(f *testing.F) {
	f.Add("order 17 of 'a b' failed at /a/b, see http://x/y or x@y.z: 0xab\n\xff")
	f.Fuzz(func(t *testing.T, message string) { checkPattern(t, message) })
}

func FuzzTopFrame(f *testing.F) {
	f.Add("\tat com.acme.A.b(A.java:1)\n  File \"a.py\", line 1, in f\nmain.f(0x1)\n\t/a.go:1\n#0 a(1): b()\nx:1:in `y'\n at a (b:1:2)\nf@g:1:2")
	f.Fuzz(func(t *testing.T, stack string) {
		one := TopFrame(stack)
		if len(one.String()) > len(stack)+3 {
			t.Errorf("Frame %q of %q", one, stack)
		}
		if _, err := regexp.Compile(one.Like); err != nil {
			t.Error(err)
		}
	})
}
