package repo_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	glossary         = "docs/glossary.md" // names words that are not used
	forbiddenWords   = "testdata/words.txt"
	commentWidth     = 100 // columns of a line that is a comment
	trailingWidth    = 120 // characters of a line that ends with a comment
	codeWidth        = 140 // characters of other lines
	columnsPerTab    = 4
	repositoryFolder = "../.."
)

// fixedTexts are error texts that clients of the original APIs compare.
var fixedTexts = []string{"StartTime and EndTime must be initialized."}

// forbidden is a pattern of words that are not used, and the words to use instead.
type forbidden struct {
	pattern *regexp.Regexp
	literal []byte // is in lower case in each match: searching for it first is many times faster
	instead string
}

// Words and phrases that the glossary rules out are not used.
func TestForbiddenWords(t *testing.T) {
	words := readForbiddenWords(t)
	if len(words) < 10 {
		t.Fatalf("%s has %d patterns", forbiddenWords, len(words))
	}
	eachText(t, func(t *testing.T, file string, text []byte) {
		lower := bytes.ToLower(text)
		for _, w := range words {
			if !bytes.Contains(lower, w.literal) || !w.pattern.Match(text) {
				continue
			}
			for n, line := range bytes.Split(text, []byte("\n")) {
				if m := w.pattern.Find(line); m != nil {
					t.Errorf("%s:%d: %q matches %s; write: %s", file, n+1, m, w.pattern, w.instead)
				}
			}
		}
	})
}

// readForbiddenWords reads lines of a regular expression, " # " and the words to use instead.
func readForbiddenWords(t *testing.T) (words []forbidden) {
	t.Helper()
	text, err := os.ReadFile(forbiddenWords)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		pattern, instead, ok := strings.Cut(line, " # ")
		if !ok {
			t.Fatalf("%s: %q does not say what to write instead", forbiddenWords, line)
		}
		pattern = strings.TrimSpace(pattern)
		words = append(words, forbidden{regexp.MustCompile(pattern), literal(t, pattern), strings.TrimSpace(instead)})
	}
	return words
}

// literal returns the longest text, in lower case, that each match of a pattern has.
func literal(t *testing.T, pattern string) (longest []byte) {
	t.Helper()
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	parts := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		parts = re.Sub
	}
	for _, part := range parts {
		if text := strings.ToLower(string(part.Rune)); part.Op == syntax.OpLiteral && len(text) > len(longest) {
			longest = []byte(text)
		}
	}
	return longest
}

// eachText visits all tracked texts that people write here: Go, documentation, configuration, scripts. Every
// folder is a subtest.
func eachText(t *testing.T, visit func(t *testing.T, file string, text []byte)) {
	t.Helper()
	byFolder := map[string][]string{}
	for _, f := range trackedFiles(t) {
		if written(f) {
			byFolder[path.Dir(f)] = append(byFolder[path.Dir(f)], f)
		}
	}
	if len(byFolder) < 50 {
		t.Fatalf("only %d folders found", len(byFolder))
	}
	for dir, files := range byFolder {
		t.Run(dir, func(t *testing.T) {
			for _, f := range files {
				text, err := os.ReadFile(filepath.Join(repositoryFolder, f))
				if err != nil {
					t.Fatal(err)
				}
				if !generated(text) {
					visit(t, f, text)
				}
			}
		})
	}
}

func trackedFiles(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = repositoryFolder
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("skipped: git ls-files: %v", err)
	}
	var present []string
	listed := map[string]bool{}
	for _, f := range strings.Fields(string(out)) {
		if folder := filepath.Dir(filepath.Join(repositoryFolder, f)); !listed[folder] {
			listed[folder] = true
			os.ReadDir(folder) //nolint:errcheck // so that Go repeats the test when there is a new file; the folder may be gone
		}
		if _, err := os.Stat(filepath.Join(repositoryFolder, f)); err == nil {
			present = append(present, f)
		}
	}
	return present
}

// written reports whether people write a file here, as opposed to recorded data.
func written(file string) bool {
	if file == glossary || file == "LICENSE" || strings.Contains("/"+file, "/testdata/") || strings.Contains(file, "/wire/proto/") {
		return false
	}
	switch path.Ext(file) {
	case ".go", ".md", ".yaml", ".sh", ".ts", ".tsx", ".css":
		return true
	}
	return file == "Makefile" || strings.HasPrefix(file, ".ci/")
}

func generated(text []byte) bool {
	head, _, _ := bytes.Cut(text, []byte("\npackage "))
	return bytes.Contains(head, []byte("Code generated")) && bytes.Contains(head, []byte("DO NOT EDIT"))
}

// Comments and code keep to the line widths of CONTRIBUTING.md. Struct tags cannot be wrapped and may be longer.
func TestLineWidth(t *testing.T) {
	eachText(t, func(t *testing.T, file string, text []byte) {
		if path.Ext(file) != ".go" {
			return
		}
		comments := commentColumns(text)
		for n, line := range strings.Split(string(text), "\n") {
			limit, got := codeWidth, utf8.RuneCountInString(line)
			if column, ok := comments[n+1]; ok {
				limit = trailingWidth
				if strings.TrimSpace(line[:column-1]) == "" {
					limit, got = commentWidth, columns(line)
				}
			}
			unbreakable := strings.Contains(line, "`") || strings.Contains(line, "://") || strings.Contains(line, "//go:")
			if got > limit && !unbreakable {
				t.Errorf("%s:%d: %d columns, at most %d", file, n+1, got, limit)
			}
		}
	})
}

func columns(line string) int {
	return utf8.RuneCountInString(line) + (columnsPerTab-1)*strings.Count(line, "\t")
}

// commentColumns returns where a line comment starts, by line.
func commentColumns(text []byte) map[int]int {
	fset := token.NewFileSet()
	var s scanner.Scanner
	s.Init(fset.AddFile("", -1, len(text)), text, nil, scanner.ScanComments)
	starts := map[int]int{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return starts
		}
		if tok == token.COMMENT && strings.HasPrefix(lit, "//") {
			p := fset.Position(pos)
			starts[p.Line] = p.Column
		}
	}
}

// An error text names its subject first, and ends without a full stop.
func TestErrorTexts(t *testing.T) {
	opening := regexp.MustCompile(`^(?i:it|they|the|an?|this|these|that|who|what|nobody)\s`)
	eachText(t, func(t *testing.T, file string, text []byte) {
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			text, ok := errorText(n)
			if !ok || slices.Contains(fixedTexts, text) {
				return true
			}
			if m := opening.FindString(text); m != "" {
				t.Errorf("%s: error text starts with %q: %q", fset.Position(n.Pos()), strings.TrimSpace(m), text)
			}
			if strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "...") && !strings.HasSuffix(text, " .") {
				t.Errorf("%s: error text ends with a full stop: %q", fset.Position(n.Pos()), text)
			}
			return true
		})
	})
}

// errorText returns the literal text of a call that makes an error.
func errorText(n ast.Node) (string, bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return "", false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	pkg, _ := sel.X.(*ast.Ident)
	arg := 0
	switch name := sel.Sel.Name; {
	case pkg != nil && pkg.Name == "errors" && name == "New", pkg != nil && pkg.Name == "fmt" && name == "Errorf":
	case name == "BadKey", pkg != nil && pkg.Name == "status" && (name == "Error" || name == "Errorf"):
		arg = 1
	default:
		return "", false
	}
	if len(call.Args) <= arg {
		return "", false
	}
	lit, ok := call.Args[arg].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}
