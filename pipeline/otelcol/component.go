package otelcol

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// componentID returns the id of a component as the Collector's type.
func componentID(f component.Factory, id pipeline.ID) (component.ID, error) {
	var out component.ID
	text := f.Type().String()
	if id.Name != "" {
		text += "/" + id.Name
	}
	if err := out.UnmarshalText([]byte(text)); err != nil {
		return out, fmt.Errorf("components of the Collector cannot be called %q: %w", id.Name, err)
	}
	return out, nil
}

// identity returns the id and the telemetry of a component.
func identity(f component.Factory, set pipeline.Settings) (component.ID, component.TelemetrySettings, error) {
	id, err := componentID(f, set.ID)
	if err != nil {
		return id, component.TelemetrySettings{}, err
	}
	tel, err := telemetry(set)
	return id, tel, err
}

// lifecycle starts and stops a Collector component.
type lifecycle struct {
	component component.Component
	report    func(error)
	log       *zap.Logger
}

// Start starts the component.
func (l *lifecycle) Start(ctx context.Context) error {
	return l.component.Start(ctx, host{l.report})
}

// Stop stops the component, which first passes on held spans. When ctx ends, Stop returns even if
// the component does not.
func (l *lifecycle) Stop(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- shutdown(ctx, l.component, l.log) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	default:
		return fmt.Errorf("component is still stopping: %w", context.Cause(ctx))
	}
}

// host is the program as Collector components see it.
type host struct{ report func(error) }

var _ componentstatus.Reporter = host{}

// GetExtensions returns no extensions, because this program's extensions have another interface.
func (host) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{}
}

// Report passes on the state that a component reports.
func (h host) Report(e *componentstatus.Event) {
	switch {
	case h.report == nil:
	case e.Status() == componentstatus.StatusOK:
		h.report(nil)
	case e.Status() == componentstatus.StatusFatalError:
		h.report(pipeline.NotReady(reason(e)))
	case componentstatus.StatusIsError(e.Status()):
		h.report(reason(e))
	}
}

func reason(e *componentstatus.Event) error {
	if e.Err() != nil {
		return e.Err()
	}
	return fmt.Errorf("component reports %s without a reason", e.Status())
}
