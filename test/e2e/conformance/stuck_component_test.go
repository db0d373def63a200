package conformance_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otelcol"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// stuckExporter is an exporter of the Collector that ignores its context.
type stuckExporter struct {
	component.StartFunc
	component.ShutdownFunc
	consumer.Traces
}

// TestStuckComponent checks that a client is answered with 503 after max_wait although a component
// does not return.
func TestStuckComponent(t *testing.T) {
	release := make(chan struct{})
	factory := otelcol.Exporter(exporter.NewFactory(component.MustNewType("stuck"), func() component.Config { return &struct{}{} },
		exporter.WithTraces(func(context.Context, exporter.Settings, component.Config) (exporter.Traces, error) {
			next, err := consumer.NewTraces(func(context.Context, ptrace.Traces) error {
				<-release
				return nil
			})
			return &stuckExporter{Traces: next}, err
		}, component.StabilityLevelStable)))
	p := inprocess.StartYAML(t, `
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0"}}}}
exporters: {stuck: }
service: {limits: {max_wait: 100ms}, pipelines: {traces: {receivers: [otlp], exporters: [stuck]}}}
`, factory)
	body := harness.JSONSpan("5b8efff798038103d269b633813fc60c", "shop", "pay", time.Now(), time.Second)
	status, answer := p.PostOTLP("application/json", body)
	const want = "exporter stuck: component has not returned: not accepted within 100ms (service::limits::max_wait)"
	if status != http.StatusServiceUnavailable || !strings.Contains(answer, want) {
		t.Errorf("status %d: %s", status, answer)
	}
	close(release)
}
