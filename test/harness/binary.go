package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Cleanup removes the program that [Binary] built and exits. TestMain passes it to goleak.Cleanup.
func Cleanup(code int) {
	if binaryDir != "" {
		os.RemoveAll(binaryDir) //nolint:errcheck // a folder of the system's temporary files
	}
	os.Exit(code)
}

// binaryDir holds the program that TestMain's end removes; "" until a test needed it.
var binaryDir string

// Binary builds the program once for all tests that need a process of its own.
var Binary = sync.OnceValues(func() (path string, err error) {
	if binaryDir, err = os.MkdirTemp("", "tracing-test"); err != nil {
		return "", err
	}
	path = filepath.Join(binaryDir, "tracing")
	build := exec.Command("go", "build", "-o", path, "./cmd/tracing")
	if build.Dir, err = moduleRoot(); err != nil {
		return "", err
	}
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w: %s", err, out)
	}
	return path, nil
})

// SkipShort leaves out a long test of the program as a process of its own where tests are shortened, which is under the race detector: it does
// not see into other processes.
func SkipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("tests are shortened: this one takes long and runs the program as a process of its own; make test runs it")
	}
}

// SkipLong leaves out a long test where tests are shortened: what it goes through is raced by the tests of the packages themselves.
func SkipLong(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("tests are shortened: this one takes long under the race detector; make test runs it")
	}
}

// Root returns the folder of the module, where go.mod is.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// moduleRoot looks for go.mod from the folder of the test's package upwards.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod in the working directory or above")
		}
		dir = parent
	}
}
