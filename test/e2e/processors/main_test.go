// Package processors_test runs pipelines with processors of the OpenTelemetry Collector.
package processors_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(harness.Cleanup)) }
