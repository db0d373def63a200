// Package conformance_test sends requests in all protocols to the program, as proper, careless and
// hostile clients do, and checks what it answers and stores.
package conformance_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/harness"
)

// A fake broker that is closed while it holds a request back may wait forever for its own lock.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(harness.Cleanup),
		goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*Cluster).beginSleptControl"))
}
