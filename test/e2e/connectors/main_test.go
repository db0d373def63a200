// Package connectors_test runs pipelines that feed each other through connectors.
package connectors_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(harness.Cleanup)) }
