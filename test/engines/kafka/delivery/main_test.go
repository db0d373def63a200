package delivery_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/test/engines/kafka/broker"
	"github.com/tracing-backend/tracing/test/harness"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(broker.Tests{M: m}, goleak.Cleanup(harness.Cleanup))
}
