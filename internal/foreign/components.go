package foreign

const (
	observed   = "only receivers that discover their targets use it, and there is none"
	memory     = "memory is limited by service.limits.inflight (256MiB by default), which is always on"
	noListener = "no listener is opened; the admin extension serves "
)

// acceptedTypes are components that need no counterpart, with the reason.
var acceptedTypes = map[string]map[string]string{
	processors: {
		"memory_limiter": memory,
		"spanmetrics":    builtIn,
		"servicegraph":   builtIn,
		"queued_retry":   "exporters have the keys sending_queue and retry_on_failure",
	},
	extensions: {
		"memory_limiter":  memory,
		"memory_ballast":  "the garbage collector is set to the memory of the process",
		"pprof":           noListener + "/debug/pprof",
		"zpages":          noListener + "/status, and the query extension serves traces",
		"expvar":          noListener + "/debug/vars",
		"file_storage":    "queues with storage: disk are in service.data_dir; the folder of file_storage is neither read nor deleted",
		"host_observer":   observed,
		"k8s_observer":    observed,
		"docker_observer": observed,
		"ecs_observer":    observed,
	},
}

// accepted leaves out components that need no counterpart.
func (r *rewriter) accepted() {
	for _, section := range []string{processors, extensions} {
		for _, id := range r.Keys(section) {
			reason := acceptedTypes[section][TypeOf(id)]
			if reason != "" && !r.known(section, TypeOf(id)) {
				r.dropComponent(section, id, reason)
			}
		}
	}
}

// hints say what replaces components that are not accepted, because something would be lost.
var hints = map[string]map[string]string{
	receivers: {
		"opencensus":        "clients can send to the otlp receiver",
		"datadog":           "run a Collector with it that sends to the otlp receiver",
		"skywalking":        "run a Collector with it that sends to the otlp receiver",
		"awsxray":           "run a Collector with it that sends to the otlp receiver",
		"googlecloudpubsub": "run a Collector with it that sends to the otlp receiver",
	},
	processors: {
		"routing":            "use the routing connector, see docs/connectors.md",
		"k8sattributes":      enriches + "; SDKs can add k8s.* from the downward API with OTEL_RESOURCE_ATTRIBUTES",
		"k8s_attributes":     enriches + "; SDKs can add k8s.* from the downward API with OTEL_RESOURCE_ATTRIBUTES",
		"resourcedetection":  enriches + "; SDKs can add host.*, cloud.* and os.* with their resource detectors",
		"resource_detection": enriches + "; SDKs can add host.*, cloud.* and os.* with their resource detectors",
		"span":               "use the transform processor",
		"groupbyattrs":       "groups spans by resource, which has no effect on stored spans",
		"cumulativetodelta":  onlyMetrics,
		"deltatorate":        onlyMetrics,
		"metricstransform":   onlyMetrics,
		"logstransform":      "changes logs, which are not supported",
	},
	exporters: {
		"jaeger_thrift":           "use native",
		"jaeger_storage_exporter": "list the store itself as an exporter, for example memory",
		"elasticsearch":           "use disk, which stores traces itself",
		"opensearch":              "use disk, which stores traces itself",
		"file":                    "use debug, or disk to store traces",
	},
	connectors: {
		"count":             makesMetrics,
		"exceptions":        makesMetrics,
		"grafanacloud":      makesMetrics,
		"signal_to_metrics": makesMetrics,
		"signaltometrics":   makesMetrics,
		"sum":               makesMetrics,
		"roundrobin":        "the load_balancing exporter sends the spans of a trace to one of several next hops",
		"round_robin":       "the load_balancing exporter sends the spans of a trace to one of several next hops",
	},
	extensions: {
		"jaegerremotesampling": "use sampling: source.file is file.path, source.remote is remote, and source.reload_interval is " +
			"file.reload_interval",
		"jaeger_storage":  "stores are exporters, for example memory",
		"jaeger_query":    "use query",
		"remote_sampling": "use sampling",
	},
}

const (
	enriches     = "only adds attributes"
	onlyMetrics  = "changes metrics, which are not supported"
	makesMetrics = "makes metrics or logs of spans, which are not supported"
)

// InFront says how to use a component that this program lacks: in a Collector in front of it.
const InFront = "run it in a Collector in front of this program"

// Hint returns what replaces a component of another program, or "".
func Hint(section, typ string) string { return hints[section][typ] }

// Distributes reports whether components of a type decide which exporters get which spans. Such a
// component must not be left out: other exporters would get the spans.
func Distributes(section, typ string) bool {
	return section == connectors && hints[connectors][typ] != makesMetrics || section == processors && typ == "routing"
}
