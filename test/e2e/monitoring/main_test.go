// Package monitoring_test runs Prometheus on processes of the program, and checks that the
// dashboards and alerts in deploy/monitoring find their metrics.
package monitoring_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
	"github.com/tracing-backend/tracing/test/harness"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(engine.Tests{M: m}, goleak.Cleanup(harness.Cleanup))
}
