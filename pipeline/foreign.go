package pipeline

// What files written for other programs of this grammar hold and this one answers differently: one sentence each, shown with the lines to
// delete.

var foreignSections = map[string]string{
	"connectors": "pipelines here end in exporters",
}

var foreignComponents = map[Kind]map[string]string{
	KindReceiver: {
		"jaeger": "use native for its protocols grpc and thrift_http, and thriftudp for thrift_compact and thrift_binary",
	},
	KindProcessor: {
		"memory_limiter": "memory is bounded by service.limits.inflight, always on",
	},
	KindExporter: {
		"logging":                 "use debug",
		"jaeger_storage_exporter": "list the store itself as an exporter, for example memory",
	},
	KindExtension: {
		"basicauth":       "listeners have the key auth: {htpasswd_file: FILE}",
		"bearertokenauth": "listeners have the key auth: {bearer_tokens_file: FILE}, and next hops auth: {bearer_token_file: FILE}",
		"zpages":          "admin serves /status",
		"expvar":          "admin serves /debug/vars",
		"pprof":           "admin serves /debug/pprof",
		"jaeger_storage":  "stores are exporters, for example memory",
		"jaeger_query":    "it is called query",
		"health_check":    "admin answers health checks",
		"healthcheckv2":   "admin answers health checks",
	},
}
