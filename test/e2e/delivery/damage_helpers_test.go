package delivery_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// damageFile changes a file in a random way: in half of the cases it flips a bit. what begins with
// the kind of damage.
func damageFile(t *testing.T, rnd *rand.Rand, name string) (what string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	used := len(strings.TrimRight(string(b), "\x00")) // the rest is preallocated
	at := rnd.IntN(used)
	switch rnd.IntN(8) {
	case 0:
		b = b[:at]
		what = fmt.Sprintf("cut to %d of %d bytes", at, used)
	case 1:
		b = nil
		what = "cut to nothing"
	case 2:
		clear(b[at:min(used, at+512)])
		what = fmt.Sprintf("zeros from byte %d of %d", at, used)
	case 3:
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		return "deleted"
	default:
		bit := rnd.IntN(8)
		b[at] ^= 1 << bit
		what = fmt.Sprintf("flipped bit %d of byte %d of %d", bit, at, used)
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return what
}

// checkPanics fails the test if a log line is about a panic.
func checkPanics(t *testing.T, p *harness.Process) {
	t.Helper()
	for _, line := range p.LogLines() {
		if strings.Contains(fmt.Sprint(line), "panic") {
			t.Errorf("panic: %v", line)
		}
	}
}

// isDegraded reports whether the status shows a component as degraded.
func isDegraded(t *testing.T, p *harness.Process) bool {
	t.Helper()
	_, body := harness.Fetch(t, p.AdminURL()+"/status")
	return strings.Contains(string(body), `"degraded"`)
}
