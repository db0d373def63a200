package config

import "github.com/tracing-backend/tracing/pipeline"

// unsupportedSections and unsupportedComponents hold sections and component types of other programs
// with the same configuration grammar. The value is a hint for the error message.

var unsupportedSections = map[string]string{
	"connectors": "pipelines end in exporters",
}

var unsupportedComponents = map[pipeline.Kind]map[string]string{
	pipeline.KindReceiver: {
		"jaeger": "use native for its protocols grpc and thrift_http, and thriftudp for thrift_compact and thrift_binary",
	},
	pipeline.KindProcessor: {
		"memory_limiter": "memory is limited by service.limits.inflight, which is always on",
	},
	pipeline.KindExporter: {
		"jaeger_storage_exporter": "list the store itself as an exporter, for example memory",
	},
	pipeline.KindExtension: {
		"basicauth":       "listeners have the key auth: {htpasswd_file: FILE}",
		"bearertokenauth": "listeners have the key auth: {bearer_tokens_file: FILE}, and next hops auth: {bearer_token_file: FILE}",
		"zpages":          "admin serves /status",
		"expvar":          "admin serves /debug/vars",
		"pprof":           "admin serves /debug/pprof",
		"jaeger_storage":  "stores are exporters, for example memory",
		"jaeger_query":    "use query",
		"health_check":    "admin answers health checks",
		"healthcheckv2":   "admin answers health checks",
	},
}
