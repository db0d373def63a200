package pages

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/engines/clickhouse/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(engine.Tests{M: m}) }
