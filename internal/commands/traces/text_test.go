package traces

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for s, want := range map[string]string{
		"GET /a?b=ü 漢字 🚀":         "GET /a?b=ü 漢字 🚀",
		"\x1b[2J\x07\r\n\t\x00":   `\x1b[2J\a\r\n\t\x00`,
		"a\x7f\u009b31m":          `a\x7f\u009b31m`,
		"user\u202egnp.exe":       `user\u202egnp.exe`,
		"\u2066x\u2069\u200e":     `\u2066x\u2069\u200e`,
		"no\u00a0break\u2028line": `no\u00a0break\u2028line`,
		"\xff\xc3ok\ufffd":        `\xff\xc3ok` + "\ufffd",
		"na\u200cme \u200d":       "na\u200cme \u200d",
		"\U000e0041":              `\U000e0041`,
		"":                        "",
	} {
		if got := clean(s); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
	got := clean(strings.Repeat("ü", maxText))
	if !utf8.ValidString(got) || !strings.HasSuffix(got, "ü… (2000 more bytes)") {
		t.Errorf("got %q", got[len(got)-60:])
	}
}

func TestWidths(t *testing.T) {
	for s, want := range map[string]int{
		"abc": 3, "": 0, "ü": 1, "u\u0308": 1, "漢字": 4, "한글": 4, "ｆｕｌｌ": 8, "🚀": 2, "✉": 1, "☂": 1, "⌚": 2, "🇩🇪": 2, "├ └ │ █": 7,
		"a\u200db": 2, "นี่": 1,
	} {
		if got := width(s); got != want {
			t.Errorf("%q: got %d, want %d", s, got, want)
		}
	}
}

func TestFit(t *testing.T) {
	f := func(s string, columns int, want string) {
		t.Helper()
		if got := fit(s, columns); got != want {
			t.Errorf("%q in %d columns: got %q, want %q", s, columns, got, want)
		}
	}
	f("abc", 5, "abc  ")
	f("abc", 3, "abc")
	f("abcd", 3, "ab…")
	f("漢字漢", 6, "漢字漢")
	f("漢字漢", 5, "漢字…")
	f("漢字漢", 4, "漢… ")
	f("a", 0, "")
	f("a", -1, "")
	f("", 2, "  ")
	stacked := "e" + strings.Repeat("\u0301", 1000)
	if got := fit(stacked, 4); utf8.RuneCountInString(got) > (maxRunesPerCell+1)*4 || width(got) != 4 {
		t.Errorf("%d characters in %d columns", utf8.RuneCountInString(got), width(got))
	}
}

func TestShortDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Microsecond: "1µs", 999 * time.Microsecond: "999µs",
		1234567 * time.Microsecond: "1.23s", 12345 * time.Microsecond: "12.3ms",
		61234 * time.Millisecond: "1m1.2s", time.Hour: "1h0m0s", 100 * time.Hour: "100h0m0s", -12345 * time.Microsecond: "-12.3ms",
	} {
		if got := short(d); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
}
