package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eachFile runs a test for every file of a folder.
func eachFile(t *testing.T, pattern string, test func(t *testing.T, file, text string)) {
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

// header takes the leading lines that begin with prefix off a text, and returns them without it.
func header(text, prefix string) (lines []string, rest string) {
	for {
		line, below, _ := strings.Cut(text, "\n")
		s, ok := strings.CutPrefix(line, prefix)
		if !ok {
			return lines, text
		}
		lines, text = append(lines, s), below
	}
}

// lines joins what it is given by line breaks, for comparisons of several lines.
func lines(s ...string) string { return strings.Join(s, "\n") }
