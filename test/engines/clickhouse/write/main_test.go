// Package write tests how the clickhouse exporter stores spans on the current engine: repeated
// and interrupted inserts, errors of the server, large batches and extreme times.
package write

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(engine.Tests{M: m}) }
