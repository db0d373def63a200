// Package tracing lists everything that is built into the program: its components and its presets.
// A custom build starts from here.
package tracing

import (
	"slices"

	examples "github.com/tracing-backend/tracing/config-examples"
	"github.com/tracing-backend/tracing/connectors/failover"
	"github.com/tracing-backend/tracing/connectors/forward"
	"github.com/tracing-backend/tracing/connectors/routing"
	"github.com/tracing-backend/tracing/exporters/clickhouse"
	"github.com/tracing-backend/tracing/exporters/debug"
	"github.com/tracing-backend/tracing/exporters/disk"
	"github.com/tracing-backend/tracing/exporters/disk/storetool"
	"github.com/tracing-backend/tracing/exporters/grpc"
	kafkaexporter "github.com/tracing-backend/tracing/exporters/kafka"
	loadbalancing "github.com/tracing-backend/tracing/exporters/load_balancing"
	"github.com/tracing-backend/tracing/exporters/memory"
	nativeexporter "github.com/tracing-backend/tracing/exporters/native"
	"github.com/tracing-backend/tracing/exporters/nop"
	otlpexporter "github.com/tracing-backend/tracing/exporters/otlp"
	"github.com/tracing-backend/tracing/exporters/otlphttp"
	zipkinexporter "github.com/tracing-backend/tracing/exporters/zipkin"
	"github.com/tracing-backend/tracing/extensions/admin"
	healthcheck "github.com/tracing-backend/tracing/extensions/health_check"
	"github.com/tracing-backend/tracing/extensions/query"
	remotestorage "github.com/tracing-backend/tracing/extensions/remote_storage"
	"github.com/tracing-backend/tracing/extensions/sampling"
	spanmetrics "github.com/tracing-backend/tracing/extensions/span_metrics"
	"github.com/tracing-backend/tracing/internal/commands/canary"
	"github.com/tracing-backend/tracing/internal/commands/demo"
	"github.com/tracing-backend/tracing/internal/commands/doctor"
	"github.com/tracing-backend/tracing/internal/commands/migrate"
	"github.com/tracing-backend/tracing/internal/commands/replay"
	"github.com/tracing-backend/tracing/internal/commands/schema"
	"github.com/tracing-backend/tracing/internal/commands/traces"
	"github.com/tracing-backend/tracing/internal/compatflags"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	adaptivesampling "github.com/tracing-backend/tracing/processors/adaptive_sampling"
	"github.com/tracing-backend/tracing/processors/batch"
	probabilisticsampler "github.com/tracing-backend/tracing/processors/probabilistic_sampler"
	resourcetags "github.com/tracing-backend/tracing/processors/resource_tags"
	kafkareceiver "github.com/tracing-backend/tracing/receivers/kafka"
	"github.com/tracing-backend/tracing/receivers/native"
	"github.com/tracing-backend/tracing/receivers/otlp"
	"github.com/tracing-backend/tracing/receivers/thriftudp"
	"github.com/tracing-backend/tracing/receivers/zipkin"
)

// Components returns the factories of all built-in components.
func Components() []pipeline.Factory {
	return withExamples(slices.Concat([]pipeline.Factory{
		otlp.Factory().Flags(compatflags.OTLPReceiver()...),
		native.Factory().Flags(compatflags.NativeReceiver()...),
		thriftudp.Factory().Flags(compatflags.ThriftUDPReceiver()...),
		zipkin.Factory().Flags(compatflags.ZipkinReceiver()...),
		kafkareceiver.Factory().Flags(compatflags.KafkaReceiver()...).Commands(replay.Commands()...),

		batch.Factory(),
		adaptivesampling.Factory().Flags(compatflags.AdaptiveSampling()...),
		probabilisticsampler.Factory().Flags(compatflags.ProbabilisticSampler()...),
		resourcetags.Factory().Flags(compatflags.ResourceTags()...),

		memory.Factory().Flags(compatflags.MemoryExporter()...),
		disk.Factory().Flags(compatflags.DiskExporter()...).Flags(compatflags.OtherStores()...).Commands(storetool.Commands()...),
		clickhouse.Factory().Flags(compatflags.ClickHouseExporter()...).Commands(schema.Commands()...),
		grpc.Factory().Flags(compatflags.GRPCExporter()...),
		nativeexporter.Factory().Alias("jaeger").Flags(compatflags.NativeExporter()...),
		otlpexporter.Factory().Alias("otlp_grpc"),
		loadbalancing.Factory(),
		otlphttp.Factory().Alias("otlp_http"),
		kafkaexporter.Factory().Flags(compatflags.KafkaExporter()...),
		zipkinexporter.Factory(),
		debug.Factory().Alias("logging"),
		nop.Factory(),

		failover.Factory(),
		forward.Factory(),
		routing.Factory(),

		query.Factory(Documents()).Flags(compatflags.Query()...).Commands(canary.Commands()...).Commands(traces.Commands()...).
			Commands(demo.Commands(Components, Presets)...).Commands(doctor.Commands()...),
		sampling.Factory().Flags(compatflags.Sampling()...).Commands(sampling.Commands()...),
		spanmetrics.Factory(),
		remotestorage.Factory().Flags(compatflags.RemoteStorage()...),
		healthcheck.Factory().Alias("healthcheckv2"),
		admin.Factory().Flags(compatflags.Admin()...).Flags(compatflags.Whole()...).Commands(migrate.Commands(Components, Presets)...),
	}, collectorProcessors()))
}

// withExamples adds the example of each component.
func withExamples(factories []pipeline.Factory) []pipeline.Factory {
	for i, f := range factories {
		factories[i] = f.Example(examples.Component(f.Kind().String(), f.Type()))
	}
	return factories
}

// Presets returns the built-in configurations; the first one is the default.
func Presets() []app.Preset {
	return []app.Preset{
		{Name: "all-in-one", Doc: "receivers, store, query service and web UI in one process", YAML: examples.AllInOne},
		{Name: "agent", Doc: "receives datagrams from local applications, and sends their spans to a collector", YAML: examples.Agent},
		{Name: "collector", Doc: "receives spans over TCP, and stores them for query services", YAML: examples.Collector},
		{Name: "query", Doc: "query service and web UI for the store of a collector", YAML: examples.Query},
		{Name: "collector-clickhouse", Doc: "receives spans over TCP, and stores them in ClickHouse", YAML: examples.CollectorClickHouse},
		{Name: "collector-kafka", Doc: "receives spans over TCP, and writes them to Kafka", YAML: examples.CollectorKafka},
		{Name: "ingester", Doc: "reads spans from Kafka, and stores them for query services", YAML: examples.Ingester},
		{Name: "query-clickhouse", Doc: "query service and web UI for spans in ClickHouse", YAML: examples.QueryClickHouse},
	}
}
