package harness

import (
	"testing"
	"time"
)

// Poll waits until a condition holds. It fails the test after 2 minutes, which no test needs.
func Poll(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("timeout: %s", what)
		}
	}
}
