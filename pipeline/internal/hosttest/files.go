package hosttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// EachFile runs a test for every file that matches a pattern.
func EachFile(t *testing.T, pattern string, test func(t *testing.T, file, text string)) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			test(t, file, string(text))
		})
	}
}

// Header splits a text into its leading lines with a prefix, which it removes, and the rest.
func Header(text, prefix string) (lines []string, rest string) {
	for {
		line, below, _ := strings.Cut(text, "\n")
		s, ok := strings.CutPrefix(line, prefix)
		if !ok {
			return lines, text
		}
		lines, text = append(lines, s), below
	}
}

// Lines joins lines, to compare them with a text of several lines.
func Lines(s ...string) string { return strings.Join(s, "\n") }

// Must returns v and panics if err is not nil.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
