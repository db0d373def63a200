package memory

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(tb testing.TB, maxBytes pipeline.ByteSize) (*exporter, *prometheus.Registry) {
	tb.Helper()
	reg := prometheus.NewRegistry()
	c := defaults()
	c.AllowDelete = true
	if maxBytes > 0 {
		c.MaxBytes = maxBytes
	}
	e, err := newExporter(pipeline.Settings{Logger: zap.NewNop(), Metrics: reg, Env: pipeline.SystemEnv()}, c)
	if err != nil {
		tb.Fatal(err)
	}
	return e, reg
}

func TestStore(t *testing.T) {
	storetest.PassiveStore(t, func(tb testing.TB) storetest.Subject {
		e, _ := open(tb, 0)
		return e
	})
}
