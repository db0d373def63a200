package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/soak"
)

// binaryDir is the folder of the program, or "" if no test has needed it.
var binaryDir string

// ProgramVariable is the environment variable with the path of the program, for tests that must not
// build it again. The program must be current. The name of the variable does not begin with
// TRACING_, because the program warns about unknown variables of this kind.
const ProgramVariable = "TEST_PROGRAM"

var buildBinary = sync.OnceValues(func() (path string, err error) {
	if path = os.Getenv(ProgramVariable); path != "" {
		_, err := os.Stat(path) // Go repeats the test when the file has changed
		return path, err
	}
	if binaryDir, err = os.MkdirTemp("", "tracing-test"); err != nil {
		return "", err
	}
	path = filepath.Join(binaryDir, "tracing")
	build := exec.Command("go", "build", "-o", path, "./cmd/tracing")
	if build.Dir, err = moduleRoot(); err != nil {
		return "", err
	}
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
})

// Binary returns the path of the program, which it builds once for all tests of a package, unless
// [ProgramVariable] is set. With -short and the race detector, which does not see what a process of
// its own does, it skips the test.
func Binary(tb testing.TB) string {
	tb.Helper()
	soak.SkipIfRaced(tb)
	path, err := buildBinary()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// Cleanup removes the program that [Binary] built and exits with code. TestMain passes it to
// goleak.Cleanup.
func Cleanup(code int) {
	if binaryDir != "" {
		os.RemoveAll(binaryDir) //nolint:errcheck // in the system's folder for temporary files
	}
	os.Exit(code)
}

// SkipIfShort skips a long test if tests run with -short, as they do in `make test` and under the race detector.
func SkipIfShort(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("long test; it runs without -short")
	}
}

// Root returns the root folder of the module.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := moduleRoot()
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

// DependsOn lets Go repeat the test if a file at the path or below it has changed. It is for files
// that only commands read.
func DependsOn(tb testing.TB, path string) {
	tb.Helper()
	err := filepath.WalkDir(path, func(_ string, _ fs.DirEntry, err error) error { return err })
	if err != nil {
		tb.Fatal(err)
	}
}

// moduleRoot searches the working directory and its parents for the module of the program, which
// may contain other modules.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "cmd", "tracing")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no folder cmd/tracing in the working directory and its parents")
		}
		dir = parent
	}
}
