package otelcol

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tracing-backend/tracing/pipeline"
)

// componentID returns the id of a component as the Collector's type.
func componentID(f component.Factory, id pipeline.ID) (component.ID, error) {
	if id.Name == "" {
		return component.NewID(f.Type()), nil
	}
	out := component.NewIDWithName(f.Type(), id.Name)
	if err := new(component.ID).UnmarshalText([]byte(out.String())); err != nil {
		return out, fmt.Errorf("components of the Collector cannot be called %q: %w", id.Name, err)
	}
	return out, nil
}

func telemetry(set pipeline.Settings) component.TelemetrySettings {
	return component.TelemetrySettings{
		Logger: set.Logger, TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(),
		Resource: pcommon.NewResource(),
	}
}

func buildInfo(set pipeline.Settings) component.BuildInfo {
	info := component.BuildInfo{Command: "tracing", Description: "tracing backend"}
	if set.Process != nil {
		info.Version = set.Process.Build().Version
	}
	return info
}

func docOf(f component.Factory) string {
	return fmt.Sprintf("The component `%s` of the OpenTelemetry Collector.", f.Type())
}

// lifecycle starts and stops a component of the Collector.
type lifecycle struct {
	component component.Component
	set       pipeline.Settings
}

// Start starts the component. The Collector lets components keep the context that Start gets only
// while it starts, and so does this program.
func (l *lifecycle) Start(ctx context.Context) error {
	return l.component.Start(ctx, host{})
}

// Stop stops the component, which passes on what it holds.
func (l *lifecycle) Stop(ctx context.Context) error { return l.component.Shutdown(ctx) }

// host is what components of the Collector see of this program.
type host struct{}

// GetExtensions returns no extensions: those of this program are of another kind.
func (host) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{}
}
