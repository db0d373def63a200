package yamltree_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// What is wrong with the text of a file, before anybody knows what it means.
func TestParseProblems(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, problems := yamltree.Load(files(text), outside())
		problems.Sort()
		if got := problems.Error(); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
	f("", "")
	f("# nothing\n", "")
	f("---\n", "")
	f("~", "")
	f("5", `1.yaml:1:1: the file must have keys such as receivers, exporters and service, not text`)
	f("- a", "1.yaml:1:1: the file must have keys such as receivers, exporters and service, not a list")
	f("a: 1\n---\nb: 2\n", "1.yaml:2:1: second YAML document; put it into a separate file and repeat --config")
	f("a: {b: 1\nc: 2",
		"1.yaml:1:1: not valid YAML: did not find expected ',' or '}'; inside { } and [ ] a value with ${...} must be quoted")
	f("a: ${X:-1}\n\tb", "1.yaml:2:1: not valid YAML: found a tab character that violates indentation")
	f("a: b: c", "1.yaml:1:1: not valid YAML: mapping values are not allowed in this context")
	f("a: \x01", "1.yaml:1:1: not valid YAML: control characters are not allowed")
	f("a: 1\nb: 2\na: 3", `1.yaml:3:1: duplicate key "a"; first given on line 1`)
	f("r:\n  a: 1\n  a: 2\n  a: 3",
		"1.yaml:3:3: r: duplicate key \"a\"; first given on line 2\n1.yaml:4:3: r: duplicate key \"a\"; first given on line 2")
	f("? [a]\n: 1", `1.yaml:1:3: keys must be words without "::"`)
	f("r: {? {a: b} : 1}", `1.yaml:1:7: r: keys must be words without "::"`)
	f("a::b: 1", `1.yaml:1:1: keys must be words without "::"`)
	f("'': 1", `1.yaml:1:1: keys must be words without "::"`)
	f("a: &x 1\nb: {*x : 2}", `1.yaml:2:5: b: keys must be words without "::"`)
	f("a:\n  <<: 5", "1.yaml:2:7: a: << needs an alias of a map, or a list of such aliases")
	f("a: *missing", "1.yaml:1:1: not valid YAML: unknown anchor 'missing' referenced")
}

// Sources that are small and stand for something huge end in one message.
func TestParseIsBounded(t *testing.T) {
	laughs, merges := "a0: &a0 [x]\n", "a0: &a0 {x: 1}\n"
	for i := 1; i < 30; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9))
		merges += fmt.Sprintf("a%d: &a%d {<<: [%s]}\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9))
	}
	long := strings.Repeat("k", 1<<20)
	for name, text := range map[string]string{
		"aliases":         laughs,
		"merges":          merges,
		"alias of itself": "a: &a {b: *a, c: *a}",
		"merge of itself": "a: &a {<<: [*a, *a]}",
		"deep flow":       "a: " + strings.Repeat("[", 500) + strings.Repeat("]", 500),
		"deep block":      strings.Repeat("- ", 500) + "a",
		"many keys":       strings.Repeat("- \n", 30_000),
		"long keys":       "a: &a\n  ? " + long + "\n  : {b: 1, c: 2}\nd: [" + strings.Repeat("*a,", 100) + "]",
		"long values":     "a: &a " + long + "\nd: [" + strings.Repeat("*a,", 100) + "]",
		"files":           "a: &a ${file:/token}" + strings.Repeat("x", 1000_000) + "\nd: [" + strings.Repeat("*a,", 100) + "]",
		"size":            "a: " + strings.Repeat("b", 17<<20),
	} {
		if !strings.HasPrefix(text, "a") {
			text = "a:\n" + text
		}
		_, problems := yamltree.Load(files(text), outside())
		if len(problems) != 1 || !strings.Contains(problems.Error(), "configuration too large") {
			t.Errorf("%s: %.300s", name, problems)
		}
	}
}

// A scalar is what is written, with its references replaced once; what comes from outside is text
// and never structure.
func TestExpand(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		tree := read(t, "a: "+in)
		s, ok := tree.Get("a").(yamltree.Scalar)
		if !ok || s.Bad != "" || s.Text != want {
			t.Errorf("%s: got %+v, want %q", in, tree.Get("a"), want)
		}
	}
	f("${HOST}", "example.org")
	f("http://${HOST}:${NUMBER}/$x", "http://example.org:42/$x")
	f("${env:HOST}", "example.org")
	f("${NOPE:-localhost}:4317", "localhost:4317")
	f("${env:NOPE:-a b}", "a b")
	f("${NOPE:-}", "")
	f("${NOPE:-${HOST}}:4317", "example.org:4317")
	f("${env:NOPE:-${env:NO:-${env:NUMBER}}}", "42")
	f("${HOST:-${NOPE}}", "example.org")
	f("${EMPTY}", "")
	f("${EMPTY:-full}", "full")
	f("$$", "$")
	f("$${HOST}", "${HOST}")
	f("5$", "5$")
	f("$a$", "$a$")
	f("${YAML}", "{a: [b, c]}")
	f("${DOLLAR}", "${HOST}$$") // once, not again
	f("${file:/token}", "s3cret")
	f("'${HOST}'", "example.org")
	f(`"${HOST}\n"`, "example.org\n")
	f("|\n  ${HOST}\n", "example.org\n")

	bad := func(in, want string) {
		t.Helper()
		if s, _ := read(t, "a: "+in).Get("a").(yamltree.Scalar); s.Bad != want {
			t.Errorf("%s: got %q, want %q", in, s.Bad, want)
		}
	}
	bad("${NOPE}", "environment variable NOPE is not set; write ${NOPE:-default} for a default")
	bad("'${HOST'", "has no closing brace after ${; write $$ for a dollar")
	bad("'${}'", "${} is neither an environment variable nor ${file:/path}; write $$ for a dollar")
	bad("'${a b}'", "${a b} is neither an environment variable nor ${file:/path}; write $$ for a dollar")
	bad("'${A:-${NOPE}}'", "environment variable NOPE is not set; write ${NOPE:-default} for a default")
	bad("'${file:/nope}'", "reading ${file:/nope}: no such file")
	bad("'${file:/huge}'", "${file:/huge} has more than 1048576 bytes")
	bad("${HOST}"+strings.Repeat("${HOST}", 120_000), "expands to more than 1048576 bytes")
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"", "$", "$$", "${HOST}", "${NOPE:-x}", "${", "${}", "$${x}", "a$b${env:HOST:-}c", "${file:/token}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out, err := outside().Expand(s)
		if err != nil && out != "" {
			t.Errorf("%q: both %q and %v", s, out, err)
		}
		if err == nil && !strings.Contains(s, "$") && out != s {
			t.Errorf("%q became %q", s, out)
		}
		// What is escaped comes back as it was.
		if same, err := outside().Expand(strings.ReplaceAll(s, "$", "$$")); err != nil || same != s {
			t.Errorf("%q, escaped and expanded, is %q, %v", s, same, err)
		}
	})
}
