package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a test whose failures are recorded.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func TestCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "testdata", "new.golden")
	defer func(before bool) { *update = before }(*update)
	*update = true
	Check(t, file, "first\n")
	if got, err := os.ReadFile(file); err != nil || string(got) != "first\n" {
		t.Errorf("with -update: %q, %v", got, err)
	}
	*update = false
	if want := Check(t, file, []byte("first\n")); string(want) != "first\n" {
		t.Errorf("content %q", want)
	}
	r := &recorder{TB: t}
	Check(r, file, "second\n")
	if len(r.failures) != 1 || !strings.Contains(r.failures[0], "got\nsecond") || !strings.Contains(r.failures[0], "want\nfirst") {
		t.Errorf("failures for other content: %q", r.failures)
	}
	r.failures = nil
	Check(r, file, "fir\xff")
	if len(r.failures) != 1 || !strings.Contains(r.failures[0], "got 4 bytes, want 6; the first difference is at byte 3") {
		t.Errorf("failures for bytes: %q", r.failures)
	}
}
