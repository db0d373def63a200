// Package tracing lists everything that is built into the program: its components and its presets. A custom build starts from here.
package tracing

import (
	examples "github.com/tracing-backend/tracing/config-examples"
	"github.com/tracing-backend/tracing/exporters/debug"
	"github.com/tracing-backend/tracing/exporters/disk"
	"github.com/tracing-backend/tracing/exporters/disk/storetool"
	"github.com/tracing-backend/tracing/exporters/grpc"
	"github.com/tracing-backend/tracing/exporters/memory"
	nativeexporter "github.com/tracing-backend/tracing/exporters/native"
	"github.com/tracing-backend/tracing/exporters/nop"
	otlpexporter "github.com/tracing-backend/tracing/exporters/otlp"
	"github.com/tracing-backend/tracing/exporters/otlphttp"
	"github.com/tracing-backend/tracing/extensions/admin"
	"github.com/tracing-backend/tracing/extensions/query"
	remotestorage "github.com/tracing-backend/tracing/extensions/remote_storage"
	"github.com/tracing-backend/tracing/extensions/sampling"
	"github.com/tracing-backend/tracing/internal/canary"
	"github.com/tracing-backend/tracing/internal/tracecli"
	"github.com/tracing-backend/tracing/pipeline"
	adaptivesampling "github.com/tracing-backend/tracing/processors/adaptive_sampling"
	"github.com/tracing-backend/tracing/processors/batch"
	probabilisticsampler "github.com/tracing-backend/tracing/processors/probabilistic_sampler"
	resourcetags "github.com/tracing-backend/tracing/processors/resource_tags"
	"github.com/tracing-backend/tracing/receivers/native"
	"github.com/tracing-backend/tracing/receivers/otlp"
	"github.com/tracing-backend/tracing/receivers/thriftudp"
	"github.com/tracing-backend/tracing/receivers/zipkin"
)

// Components returns the factories of all built-in components.
func Components() []pipeline.Factory {
	return []pipeline.Factory{
		otlp.Factory().Flags(otlpReceiverFlags()...),
		native.Factory().Flags(nativeReceiverFlags()...),
		thriftudp.Factory().Flags(thriftUDPFlags()...),
		zipkin.Factory().Flags(zipkinReceiverFlags()...),

		batch.Factory(),
		adaptivesampling.Factory().Flags(adaptiveSamplingFlags()...),
		probabilisticsampler.Factory(),
		resourcetags.Factory().Flags(resourceTagsFlags()...),

		disk.Factory().Flags(diskExporterFlags()...).Commands(storetool.Commands()...),
		memory.Factory().Flags(memoryExporterFlags()...),
		grpc.Factory().Flags(grpcExporterFlags()...),
		nativeexporter.Factory().Flags(nativeExporterFlags()...),
		otlpexporter.Factory(),
		otlphttp.Factory(),
		debug.Factory(),
		nop.Factory(),

		query.Factory().Flags(queryFlags()...).Commands(canary.Commands()...).Commands(tracecli.Commands()...),
		sampling.Factory().Flags(samplingFlags()...).Commands(sampling.Commands()...),
		remotestorage.Factory().Flags(remoteStorageFlags()...),
		admin.Factory().Flags(adminFlags()...),
	}
}

// Presets returns the built-in configurations; the first one runs when nothing else is asked for.
func Presets() []pipeline.Preset {
	return []pipeline.Preset{
		{Name: "all-in-one", YAML: examples.AllInOne},
		{Name: "agent", YAML: examples.Agent},
		{Name: "collector", YAML: examples.Collector},
		{Name: "query", YAML: examples.Query},
	}
}
