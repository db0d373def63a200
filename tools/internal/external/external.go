// Package external finds the programs of other projects that tests run.
package external

import (
	"os"
	"os/exec"
	"testing"
)

// Require returns the path of a program. If it is not installed, the test is skipped, or fails if
// the variable CI is true. debianPackage is the package of Debian that contains the program.
func Require(tb testing.TB, program, debianPackage string) string {
	tb.Helper()
	path, err := exec.LookPath(program)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") == "true":
		tb.Fatalf("%s is not installed; install the package %s", program, debianPackage)
	default:
		tb.Skipf("%s is not installed; the package %s of Debian contains it", program, debianPackage)
	}
	return ""
}
