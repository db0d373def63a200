// Package tracing lists everything that is built into the program: its components and its presets. A custom build starts from here.
package tracing

import (
	examples "github.com/tracing-backend/tracing/config-examples"
	"github.com/tracing-backend/tracing/exporters/debug"
	"github.com/tracing-backend/tracing/exporters/disk"
	"github.com/tracing-backend/tracing/exporters/disk/storetool"
	"github.com/tracing-backend/tracing/exporters/memory"
	"github.com/tracing-backend/tracing/exporters/nop"
	otlpexporter "github.com/tracing-backend/tracing/exporters/otlp"
	"github.com/tracing-backend/tracing/exporters/otlphttp"
	"github.com/tracing-backend/tracing/extensions/admin"
	"github.com/tracing-backend/tracing/extensions/query"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/processors/batch"
	"github.com/tracing-backend/tracing/receivers/otlp"
)

// Components returns the factories of all built-in components.
func Components() []pipeline.Factory {
	return []pipeline.Factory{
		otlp.Factory().Flags(otlpReceiverFlags()...),

		batch.Factory(),

		disk.Factory().Flags(diskExporterFlags()...).Commands(storetool.Commands()...),
		memory.Factory().Flags(memoryExporterFlags()...),
		otlpexporter.Factory(),
		otlphttp.Factory(),
		debug.Factory(),
		nop.Factory(),

		query.Factory().Flags(queryFlags()...),
		admin.Factory().Flags(adminFlags()...),
	}
}

// Presets returns the built-in configurations; the first one runs when nothing else is asked for.
func Presets() []pipeline.Preset {
	return []pipeline.Preset{
		{Name: "all-in-one", YAML: examples.AllInOne},
	}
}
