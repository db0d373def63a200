package memory

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
	"github.com/tracing-backend/tracing/pipeline/sampling/samplingtest"
)

func TestSamplingStore(t *testing.T) {
	samplingtest.Run(t, samplingtest.Options{New: func(t *testing.T, now func() time.Time) sampling.Store {
		env := pipeline.SystemEnv()
		env.Now = now
		e, err := newExporter(pipeline.Settings{Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(), Env: env}, defaults())
		if err != nil {
			t.Fatal(err)
		}
		return e
	}})
}
