package otelcol

import (
	"fmt"

	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// telemetry returns the telemetry settings of a component, with the logger and the metrics of set.
// Spans about the component itself are discarded.
func telemetry(set pipeline.Settings) (component.TelemetrySettings, error) {
	meters, err := meterProvider(set)
	if err != nil {
		return component.TelemetrySettings{}, fmt.Errorf("metrics of the component: %w", err)
	}
	return telemetryWith(set.Logger, meters), nil
}

// silentTelemetry returns telemetry settings for a component that is built on a trial basis.
func silentTelemetry() component.TelemetrySettings {
	return telemetryWith(zap.NewNop(), metricnoop.NewMeterProvider())
}

func telemetryWith(log *zap.Logger, meters metric.MeterProvider) component.TelemetrySettings {
	return component.TelemetrySettings{
		Logger: log, MeterProvider: meters, TracerProvider: tracenoop.NewTracerProvider(), Resource: pcommon.NewResource(),
	}
}

// meterProvider returns a provider that adds its metrics to set, under the Collector's names. It
// needs no shutdown: it has no goroutine, and the metrics of a component are read until the
// framework removes the component.
func meterProvider(set pipeline.Settings) (metric.MeterProvider, error) {
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(set.Metrics),
		otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo(),
		otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithoutSuffixes))
	if err != nil {
		return nil, err
	}
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(resource.Empty()),
		sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter)), nil
}

func buildInfo(set pipeline.Settings) component.BuildInfo {
	info := component.NewDefaultBuildInfo()
	info.Command, info.Description = "tracing", "Distributed tracing backend"
	if set.Process != nil {
		info.Version = set.Process.Build().Version
	}
	return info
}
