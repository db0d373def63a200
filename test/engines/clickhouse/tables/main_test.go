// Package tables tests the tables of the clickhouse exporter on the current engine: creation,
// upgrades, retention, and the start of the exporter while the server is down.
package tables

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(engine.Tests{M: m}) }
