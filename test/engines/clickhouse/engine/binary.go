package engine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// binaryDir is the folder of chserver, or "" if no test has needed it.
var binaryDir string

var buildBinary = sync.OnceValues(func() (path string, err error) {
	if binaryDir, err = os.MkdirTemp("", "tracing-chserver"); err != nil {
		return "", err
	}
	path = filepath.Join(binaryDir, "chserver")
	build := exec.Command("go", "build", "-o", path, "github.com/tracing-backend/tracing/test/engines/clickhouse/chserver")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
})

// binary returns the path of chserver, which it builds once for all tests of a package.
func binary(tb testing.TB) string {
	tb.Helper()
	path, err := buildBinary()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

func removeBinary() {
	if binaryDir != "" {
		os.RemoveAll(binaryDir) //nolint:errcheck // in the system's folder for temporary files
	}
}
