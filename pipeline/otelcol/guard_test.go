package otelcol_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otelcol"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

// A panic in Shutdown is an error of Stop and does not end the process. The log has its stack.
func TestShutdownPanics(t *testing.T) {
	l := &life{start: func(component.Host) error { return nil }, stop: func(context.Context) error { panic("stop twice") }}
	factory := lifeFactory(l)
	f := pipelinetest.NewFixture("life", 1<<20)
	p, err := factory.Build(f.Settings, factory.Defaults(), &sink{})
	if err != nil {
		t.Fatal(err)
	}
	err = p.(pipeline.Stopper).Stop(t.Context())
	if err == nil || err.Error() != "BUG: component panicked: stop twice" {
		t.Errorf("%v", err)
	}
	logged := f.Logs.FilterMessage("BUG: component panicked").All()
	if len(logged) != 1 || !strings.Contains(fmt.Sprint(logged[0].ContextMap()["stack"]), "guard_test.go") {
		t.Errorf("logged %v", logged)
	}
}

// stuckFactories are components whose ConsumeTraces calls consume.
func stuckFactories(consume func(context.Context, ptrace.Traces) error) map[string]pipeline.Factory {
	create := func() component.Config { return &hopConfig{} }
	return map[string]pipeline.Factory{
		"exporter": otelcol.Exporter(exporter.NewFactory(component.MustNewType("stuck"), create,
			exporter.WithTraces(func(context.Context, exporter.Settings, component.Config) (exporter.Traces, error) {
				next, err := consumer.NewTraces(consume)
				return &hopExporter{Traces: next}, err
			}, component.StabilityLevelStable))),
		"processor": otelcol.Processor(processor.NewFactory(component.MustNewType("stuck"), create,
			processor.WithTraces(func(context.Context, processor.Settings, component.Config, consumer.Traces) (processor.Traces, error) {
				next, err := consumer.NewTraces(consume)
				return &passing{Traces: next}, err
			}, component.StabilityLevelStable))),
	}
}

// A call returns when its context ends, even if the component does not. What a component holds on
// to counts as in flight, and a component that never returns does not get more and more calls.
func TestComponentIgnoresContext(t *testing.T) {
	for _, kind := range []string{"exporter", "processor"} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			f := pipelinetest.NewFixture("stuck", 1<<20)
			c := buildWith(t, stuckFactories(func(context.Context, ptrace.Traces) error {
				<-release
				return nil
			})[kind], f.Settings, nil, &sink{})
			start, refused := time.Now(), 0
			for range 70 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				err := c.Consume(ctx, pipelinetest.Batch(t, otlpdata.Meta{}, 2))
				cancel()
				switch {
				case pipeline.IsTemporary(err) && strings.Contains(err.Error(), "component hangs"):
					refused++
				case !errors.Is(err, context.DeadlineExceeded):
					t.Fatalf("%s: %v", kind, err)
				}
			}
			if took := time.Since(start); refused != 6 || took != 64*time.Second {
				t.Errorf("%s: %d calls were refused, all took %s", kind, refused, took)
			}
			if f.Settings.Budget.Used() == 0 {
				t.Errorf("%s: nothing is reserved", kind)
			}
			close(release)
			synctest.Wait()
			if used := f.Settings.Budget.Used(); used != 0 {
				t.Errorf("%s: %d bytes stay reserved", kind, used)
			}
			if err := c.Consume(t.Context(), pipelinetest.Batch(t, otlpdata.Meta{}, 2)); err != nil {
				t.Errorf("%s after it has returned: %v", kind, err)
			}
		})
	}
}
