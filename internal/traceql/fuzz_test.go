package traceql

import (
	"errors"
	"strings"
	"testing"
)

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`{ service.name = "checkout" && duration > 1s && (http.response.status_code >= 500 || error) }`,
		"({span.a=1.5e3} || {}) >> {!(name=~`x.*`)} > {exists(event.\"a b\")} | select(.a, name)",
		"{kind=server&&status!=ok&&root&&trace.rootName!~\"\\\\d\"&&1d2h<trace:duration}", "{a+b}", "{\t\"\xff", "{} !<< {} &~ {}",
		"{ -.a ^ 2 % 3 > parent.b - 1.5s } // c\n| by(.x) | avg(duration) + 1 >= 2 * -3 | coalesce() | select(.y) with (a=1)",
		"({.a}|count()) > ({.b}|by(.c)|max(.d)) | {nestedSetParent<0 && \"a\" =~ `b`}", "{.ä\n=\n1 &}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text)
		if err == nil {
			checkFormat(t, q.Set)
			return
		}
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%T: %v", err, err)
		}
		if e.Offset < 0 || e.Length < 0 || e.Offset+e.Length > len(e.Text) {
			t.Fatalf("error position: %d bytes at %d in a text of %d", e.Length, e.Offset, len(e.Text))
		}
		lines := strings.Split(e.Detail(), "\n")
		if len(lines) != 3 || len(e.Detail()) > 4000 || !strings.Contains(lines[2], "^") {
			t.Fatalf("%d bytes in %d lines: %s", len(e.Detail()), len(lines), e.Detail())
		}
	})
}
