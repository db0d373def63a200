package failure

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The files have a stack trace, a line of dashes, and its top Frame.
func TestTopFrame(t *testing.T) {
	files, err := filepath.Glob("testdata/stacks/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		stack, want, _ := strings.Cut(string(text), "--\n")
		got := TopFrame(stack)
		if got.String() != strings.TrimSpace(want) {
			t.Errorf("%s: %q, want %q", file, got, strings.TrimSpace(want))
		}
		if re := regexp.MustCompile(got.Like); !re.MatchString(stack) {
			t.Errorf("%s: %s does not match", file, got.Like)
		}
		if got := TopFrame(strings.ReplaceAll(stack, "\n", "\r\n")).String(); got != strings.TrimSpace(want) {
			t.Errorf("%s with carriage returns: %q", file, got)
		}
	}
}
