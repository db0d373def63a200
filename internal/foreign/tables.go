package foreign

import (
	"slices"
	"strconv"
)

// block is a block of a component, with the rules for its keys.
type block struct {
	section string
	types   []string
	path    string
	rules   []rule
}

// blocks are the blocks whose keys differ from the Collector's. Other keys have the same names and
// meanings in both programs, or are unknown, which is an error.
var blocks = []block{
	{receivers, []string{"otlp", "native"}, "protocols.grpc", grpcServer},
	{receivers, []string{"otlp", "native"}, "protocols.http", httpServer},
	{receivers, []string{"thriftudp"}, "compact", udpServer},
	{receivers, []string{"thriftudp"}, "binary", udpServer},
	{receivers, []string{"zipkin"}, "", httpServer},
	{connectors, []string{"routing"}, "", []rule{
		{"match_once", when(drop("spans take the first row that they match, unless its action is copy"), "true")},
	}},
	{connectors, []string{"failover"}, "", []rule{
		{"retry_gap", drop("all higher levels are tried at each retry_interval")},
		{"max_retries", drop("higher levels are retried until they accept spans")},
		{"sending_queue", drop("clients get the response of the level that accepts their spans; exporters have the key sending_queue")},
	}},
	{extensions, []string{"query", "sampling"}, "http", httpServer},
	{extensions, []string{"query", "sampling"}, "grpc", grpcServer},
	{extensions, []string{"remote_storage"}, "", grpcServer},
	{extensions, []string{"health_check", "healthcheckv2"}, "", healthCheck},
	{extensions, []string{"health_check", "healthcheckv2"}, "grpc", grpcServer},
	{exporters, []string{"otlp", "otlp_grpc", "native", "jaeger", "grpc"}, "", slices.Concat(delivery, grpcClient)},
	{exporters, []string{"load_balancing", "loadbalancing"}, "", delivery},
	{exporters, []string{"load_balancing", "loadbalancing"}, "protocol.otlp", slices.Concat(delivery, grpcClient)},
	{exporters, []string{"otlphttp", "otlp_http", "zipkin"}, "", slices.Concat(delivery, httpClient)},
	{exporters, []string{"clickhouse"}, "", clickHouse},
	{exporters, []string{"kafka"}, "", kafkaExporter},
	{receivers, []string{"kafka"}, "", kafkaReceiver},
	{exporters, []string{"debug", "logging"}, "", debug},
}

const (
	fixedBuffers = "the size of buffers is fixed"
	onlySpans    = "only spans are received and sent"
	noSuchSignal = "only spans and log records are received and sent"
	noMiddleware = "is not supported; delete the key: service.limits and the limits of listeners bound requests"
	noCurves     = "is not supported; delete the key to use the curves that Go selects"
	noTPM        = "is not supported; delete the key and use a key in a file"
	defaultLimit = "0 stands for the default here"
	noInsecure   = "is not supported, because these cipher suites are broken; delete the key"
)

var httpServer = slices.Concat([]rule{
	{"tls_settings", to("tls")},
	{"cors_allowed_origins", to("cors.allowed_origins")},
	{"cors_allowed_headers", to("cors.allowed_headers")},
	{"cors.exposed_headers", drop("no response has headers that pages need")},
	{"transport", first(when(quietly, "tcp", "tcp4", "tcp6"), refuse("is not supported; delete the key: this listener uses TCP"))},
	{"dialer", drop("listeners do not dial")},
	{"compression_algorithms", drop("requests may have every compression that is supported: gzip, zstd, deflate, snappy and others")},
	{"keepalive.idle_timeout", to("idle_timeout")},
	{"keepalive", emptied},
	{"keep_alives_enabled", drop("connections stay open for idle_timeout")},
	{"middlewares", refuse(noMiddleware)},
	{"metrics_url_path", drop(noSuchSignal)},
	{"logs_url_path", leadingSlash},
	{"profiles_url_path", drop(noSuchSignal)},
	{"traces_url_path", leadingSlash},
	{"response_headers", headers},
	{"max_request_body_size", when(drop(defaultLimit), "0")},
	{"read_timeout", when(drop(defaultLimit), "0", "0s")},
	{"read_header_timeout", when(drop(defaultLimit), "0", "0s")},
	{"idle_timeout", when(drop(defaultLimit), "0", "0s")},
}, below("tls", serverTLS))

// leadingSlash adds the slash that the Collector adds.
func leadingSlash(r *rewriter, _, path []string) {
	if text := r.Text(path...); text != "" && text[0] != '/' && text[0] != '$' {
		r.Set(path, "/"+text, "")
	}
}

var grpcServer = slices.Concat([]rule{
	{"tls_settings", to("tls")},
	{"transport", first(when(quietly, "tcp", "tcp4", "tcp6"), refuse("is not supported; delete the key: this listener uses TCP"))},
	{"dialer", drop("listeners do not dial")},
	{"read_buffer_size", drop(fixedBuffers)},
	{"write_buffer_size", drop(fixedBuffers)},
	{"middlewares", refuse(noMiddleware)},
	{"max_recv_msg_size_mib", when(drop(defaultLimit), "0")},
	{"max_concurrent_streams", when(drop(defaultLimit), "0")},
}, below("tls", serverTLS))

var udpServer = []rule{
	{"socket_buffer_size", to("socket_buffer")},
	{"max_packet_size", atMost(65527, "no datagram is longer than 65527 bytes")},
	{"queue_size", dropDatagrams},
}

// dropDatagrams leaves out a queue size in datagrams: in this program it is a size in bytes, at
// least 1 MiB.
func dropDatagrams(r *rewriter, _, path []string) {
	if n, err := strconv.Atoi(r.Text(path...)); err == nil && n < 1<<20 {
		r.Drop(path, "queue_size is a number of bytes here; the default is used")
	}
}

var anyTLS = []rule{
	{"cert_pem", refuse(`is not supported; write the text to a file and name it in cert_file`)},
	{"key_pem", refuse(`is not supported; write the text to a file and name it in key_file`)},
	{"curve_preferences", refuse(noCurves)},
	{"include_insecure_cipher_suites", first(when(quietly, "false"), refuse(noInsecure))},
	{"tpm.enabled", when(refuse(noTPM), "true")},
	{"tpm", quietly},
}

var serverTLS = slices.Concat([]rule{
	{"client_ca_file_reload", drop("all files are reloaded, see reload_interval")},
	{"ca_file", drop("listeners verify clients by client_ca_file")},
	{"ca_pem", drop("listeners verify clients by client_ca_file")},
	{"include_system_ca_certs_pool", drop("listeners verify clients by client_ca_file")},
	{"insecure", when(quietly, "false")},
	{"server_name_override", drop("only clients have it")},
}, anyTLS)

var clientTLS = slices.Concat([]rule{
	{"ca_pem", refuse(`is not supported; write the text to a file and name it in ca_file`)},
	{"cipher_suites", refuse("is not supported for connections; delete the key, and use min_version: 1.3 for fewer suites")},
	{"insecure", insecureWithCA},
}, anyTLS)

// insecureWithCA leaves out `insecure` where the Collector uses TLS despite it.
func insecureWithCA(r *rewriter, block, path []string) {
	if r.Text(path...) != "true" {
		return
	}
	if r.Text(at(block, "tls.ca_file")...) != "" {
		r.Drop(path, "TLS is used because ca_file is set")
	} else if e := r.Text(at(block, "endpoint")...); len(e) > 8 && e[:8] == "https://" {
		r.Drop(path, "TLS is used because the endpoint begins with https")
	}
}

var anyClient = slices.Concat([]rule{
	{"tls_settings", to("tls")},
	{"insecure", to("tls.insecure")},
	{"insecure_skip_verify", to("tls.insecure_skip_verify")},
	{"ca_file", to("tls.ca_file")},
	{"cert_file", to("tls.cert_file")},
	{"key_file", to("tls.key_file")},
	{"server_name_override", to("tls.server_name_override")},
	{"headers", headers},
	{"compression", when(set("gzip", "gzip is used: this compression is not supported"), "zlib", "deflate", "lz4", "x-snappy-framed")},
	{"compression_params", drop("the level of compression is fixed")},
	{"middlewares", refuse("is not supported; delete the key")},
	{"timeout", when(drop("an attempt always has a timeout; the default is used"), "0", "0s")},
}, below("tls", clientTLS))

var grpcClient = slices.Concat([]rule{
	{"user_agent", drop("the header User-Agent is fixed")},
	{"balancer_name", when(drop("round_robin is used"), "weighted_round_robin", "least_request_experimental", "grpclb")},
}, anyClient)

var httpClient = slices.Concat([]rule{
	{"proxy_url", refuse("is not supported; delete the key if the server can be reached without a proxy, " +
		"or send to a Collector that uses the proxy")},
	{"cookies", drop("cookies of responses are not sent back")},
	{"force_attempt_http2", drop("HTTP/2 is used if the server supports it")},
	{"keepalive.idle_conn_timeout", to("idle_conn_timeout")},
	{"keepalive.max_idle_conns", to("max_idle_conns")},
	{"keepalive.max_idle_conns_per_host", to("max_idle_conns_per_host")},
	{"keepalive", emptied},
	{"metrics_endpoint", drop(noSuchSignal)},
	{"profiles_endpoint", drop(noSuchSignal)},
	{"max_conns_per_host", when(drop(defaultLimit), "0")},
	{"max_idle_conns", when(drop(defaultLimit), "0")},
	{"max_idle_conns_per_host", when(drop(defaultLimit), "0")},
}, anyClient)

var delivery = []rule{
	{"sending_queue.persistent_storage_enabled", first(when(quietly, "false"), func(r *rewriter, block, path []string) {
		r.Drop(path, "")
		r.Set(at(block, "sending_queue.storage"), "disk", queueFolder)
	})},
	{"sending_queue.storage", fileStorage},
	{"sending_queue.blocking", to("sending_queue.block_on_overflow")},
	{"sending_queue.wait_for_result", first(when(quietly, "false"), func(r *rewriter, block, _ []string) {
		r.Drop(at(block, "sending_queue"),
			"without a queue, spans are acknowledged after the next hop has accepted them, as with wait_for_result")
	})},
}

const queueFolder = "disk is used: the queue is in service.data_dir; the folder of file_storage is neither read nor deleted"

// fileStorage turns a queue with the `file_storage` extension into a queue on disk.
func fileStorage(r *rewriter, _, path []string) {
	if TypeOf(r.Text(path...)) == "file_storage" {
		r.Set(path, "disk", queueFolder)
	}
}

var debug = []rule{
	{"loglevel", logLevel},
	{"logLevel", logLevel},
	{"verbosity", lower},
	{"use_internal_logger", drop("spans are written to standard error")},
	{"output_paths", drop("spans are written to standard error")},
	{"sending_queue", drop("spans are written immediately")},
	{"retry_on_failure", drop("spans are written immediately")},
}

// logLevel sets the verbosity for a level of the `logging` exporter.
func logLevel(r *rewriter, block, path []string) {
	verbosity := map[string]string{"debug": "detailed", "info": "normal"}[r.Text(path...)]
	if verbosity == "" {
		verbosity = "basic"
	}
	if key := at(block, "verbosity"); r.Has(key...) {
		r.Drop(path, "verbosity has precedence")
	} else {
		r.Move(path, key, "is called verbosity here")
		r.Set(key, verbosity, "")
	}
}

var healthCheck = slices.Concat([]rule{
	{"http.status.path", to("path")},
	{"http.status.enabled", first(when(quietly, "true"), drop("without the extension, no health is served"))},
	{"http.status", emptied},
	{"http.config", drop("the admin extension serves /status, and the command print-config prints the configuration")},
	{"http", moveUp},
	{"use_v2", quietly},
	{"component_health", drop("the response is 200 while the process runs; /status of the admin extension shows each component")},
	{"check_collector_pipeline", drop("/status of the admin extension shows failing exporters")},
}, httpServer)

// moveUp moves the keys of a block to the block above.
func moveUp(r *rewriter, block, path []string) {
	for _, key := range r.Keys(path...) {
		r.Move(at(path, key), at(block, key), "")
	}
	r.Drop(path, "")
}

const (
	oneLog  = "the log is written to standard error"
	metrics = "the admin extension serves metrics on /metrics of its endpoint, by default localhost:14269"
)

// telemetryRules are the rules of service.telemetry.
var telemetryRules = []rule{
	{"logs.level", logsLevel},
	{"logs.output_paths", drop(oneLog)},
	{"logs.error_output_paths", drop(oneLog)},
	{"logs.initial_fields", drop("lines of the log have no other fields")},
	{"logs.sampling", drop("repeated lines are always limited")},
	{"logs.development", drop("the log has one format, see encoding")},
	{"logs.disable_caller", drop("all lines of the log have the caller")},
	{"logs.disable_stacktrace", drop("lines of the log have no stack trace")},
	{"logs.processors", drop(oneLog)},
	{"metrics.level", drop("all metrics are always collected")},
	{"metrics.address", drop(metrics)},
	{"metrics.readers", drop(metrics)},
	{"metrics.views", drop("all metrics are always collected")},
	{"traces.level", lower},
	{"resource.attributes", resourceAttributes},
	{"resource.attributes_list", drop("write the attributes as keys of resource")},
	{"resource.schema_url", quietly},
	{"resource.detectors", drop("only the attributes of resource describe the process")},
	{"resource.detection/development", drop("only the attributes of resource describe the process")},
}

// resourceAttributes turns a list of names and values into keys of the resource.
func resourceAttributes(r *rewriter, block, path []string) {
	for i := 0; r.Has(at(path, itoa(i))...); i++ {
		name := r.Text(at(path, itoa(i)+".name")...)
		r.Copy(at(path, itoa(i)+".value"), append(at(block, "resource"), name), "", "")
	}
	r.Drop(path, "")
}

// logsLevel accepts levels in any case, and those above error.
func logsLevel(r *rewriter, block, path []string) {
	lower(r, block, path)
	when(set("error", "error is used: it is the highest level"), "dpanic", "panic", "fatal")(r, block, path)
}
