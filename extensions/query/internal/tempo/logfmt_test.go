package tempo

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func FuzzLogfmt(f *testing.F) {
	for _, s := range []string{"", "a=b", `a=b c="d e" f`, `a="\"\\\u00e9"`, "=", `a"`, `a="`, "a=b=c", "a=1 a=2", " \t\na = b", "é=\xff", strings.Repeat("a ", 100)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tags, err := parseLogfmt(text)
		if err != nil {
			return
		}
		// The tags, written with all values quoted, must parse to the same tags.
		var b bytes.Buffer
		for _, tag := range tags {
			b.WriteString(tag.key)
			if tag.hasValue {
				fmt.Fprintf(&b, "=%+q", tag.value)
			}
			b.WriteByte(' ')
		}
		again, err := parseLogfmt(b.String())
		if b.Len() <= maxLogfmtBytes && (err != nil || !slices.Equal(again, tags)) {
			t.Errorf("%q is %v, and %q is %v, %v", text, tags, b.String(), again, err)
		}
	})
}

func TestLogfmt(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		tags, err := parseLogfmt(text)
		got := ""
		for _, tag := range tags {
			got += fmt.Sprintf("%s|%s|%t;", tag.key, tag.value, tag.hasValue)
		}
		if got = cmp.Or(got, fmt.Sprint(err)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	f(`service.name=web  http.status=500`, "service.name|web|true;http.status|500|true;")
	f(`name="GET /" error`, "name|GET /|true;error||false;")
	f(`a="x\"\n" b= c=""`, "a|x\"\n|true;b||true;c||true;")
	f("", "<nil>")
	f(`a=1 =2`, "no key at position 4")
	f(`a="x`, "invalid quoted value at position 0")
	f(`a=x"y"`, `unquoted value with '"' at position 0`)
	f(`a=1 a=2`, "tag a has been set twice")
}
