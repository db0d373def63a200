// Package compatflags defines the command-line flags of established tracing tools, so that existing
// command lines work unchanged. Each flag sets a key of a component's configuration, or has no
// effect and names the key to use instead. The list of components attaches the flags to the
// factories. The tests, which need that list, are in test/e2e/config.
package compatflags

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// OTLPReceiver returns the flags of the `otlp` receiver.
func OTLPReceiver() []pipeline.Flag {
	const inMemory = "set service.limits.inflight to limit the bytes of requests in memory"
	return slices.Concat([]pipeline.Flag{
		{Name: "collector.otlp.enabled", Distinctive: "COLLECTOR_OTLP_", Switch: true, Doc: "Whether to accept spans over OTLP."},
	},
		grpcFlags("collector.otlp.grpc.", "Address on which to accept OTLP over gRPC."),
		httpFlags("collector.otlp.http.", "Address on which to accept OTLP over HTTP."), []pipeline.Flag{
			{Name: "collector.num-workers", Instead: inMemory},
			{Name: "collector.queue-size", Instead: inMemory},
			{Name: "collector.queue-size-memory", Instead: inMemory},
		},
		tlsFlags("collector.otlp.grpc", grpc+"::tls"), tlsFlags("collector.otlp.http", http+"::tls"),
		corsFlags("collector.otlp.http", http), tenancyFlags(grpc), tenancyFlags(http))
}

// Blocks of receivers with two listeners.
const (
	grpc = "protocols::grpc"
	http = "protocols::http"
)

// grpcFlags returns the flags of a receiver's gRPC listener, without those for TLS and tenants.
func grpcFlags(prefix, doc string) []pipeline.Flag {
	const alive = grpc + "::keepalive::server_parameters"
	return []pipeline.Flag{
		{Name: prefix + "host-port", Key: grpc + "::endpoint", Value: hostPort, Doc: doc},
		{Name: prefix + "max-message-size", Block: grpc, Key: grpc + "::max_recv_msg_size_mib", Value: mebibytes,
			Doc: "Maximum message size in bytes, rounded up to MiB."},
		{Name: prefix + "max-connection-age", Block: grpc, Key: alive + "::max_connection_age",
			Doc: "Age at which a connection is closed, so that its client reconnects. 0 disables the limit."},
		{Name: prefix + "max-connection-age-grace", Block: grpc, Key: alive + "::max_connection_age_grace",
			Doc: "Time that open calls have to finish after max-connection-age. 0 disables the limit."},
	}
}

// httpFlags returns the flags of a receiver's HTTP listener, without those for TLS, CORS and
// tenants.
func httpFlags(prefix, doc string) []pipeline.Flag {
	return []pipeline.Flag{
		{Name: prefix + "host-port", Key: http + "::endpoint", Value: hostPort, Doc: doc},
		{Name: prefix + "idle-timeout", Block: http, Key: http + "::idle_timeout",
			Doc: "Maximum time that a connection stays open without a request."},
		{Name: prefix + "read-timeout", Block: http, Key: http + "::read_timeout",
			Doc: "Maximum time for a client to send a whole request."},
		{Name: prefix + "read-header-timeout", Block: http, Key: http + "::read_header_timeout",
			Doc: "Maximum time for a client to send the headers of a request."},
	}
}

// DiskExporter returns the flags of the `disk` exporter.
func DiskExporter() []pipeline.Flag {
	return []pipeline.Flag{
		{Name: "badger.span-store-ttl", Distinctive: "BADGER_", Key: "retention::time", Doc: "Time for which the embedded store keeps spans."},
		{Name: "badger.directory-value", Key: "directory", Value: storeFolder,
			Doc: "Folder below which the embedded store has its own folder, disk."},
		{Name: "badger.directory-key", Instead: "the embedded store has one folder, given by --badger.directory-value"},
		{Name: "badger.ephemeral", Switch: true, Always: "false",
			Instead: "the embedded store keeps its files; use --span-storage.type=memory for a store without files"},
		{Name: "badger.consistency", Switch: true, Always: "true",
			Instead: "acknowledged spans are always synced; set exporters.disk.sync to change this"},
		{Name: "badger.maintenance-interval", Instead: "expired spans are deleted as soon as they expire"},
		{Name: "badger.metrics-update-interval", Instead: "metrics are calculated when they are read"},
		{Name: "badger.read-only", Switch: true, Always: "false",
			Instead: "to run a process that only reads, remove the exporter from its pipelines"},
	}
}

// storeFolder returns a folder for the embedded store inside the folder of another store, whose
// files are not touched. An empty text means the default folder.
func storeFolder(folder string) (any, error) {
	if folder == "" {
		return "", nil
	}
	return filepath.Join(folder, "disk"), nil
}

// MemoryExporter returns the flags of the `memory` exporter.
func MemoryExporter() []pipeline.Flag {
	return []pipeline.Flag{
		{Name: "memory.max-traces", Instead: "the memory store is limited in bytes: set exporters.memory.max_bytes"},
	}
}

// Query returns the flags of the `query` extension.
func Query() []pipeline.Flag {
	return slices.Concat([]pipeline.Flag{
		{Name: "query.http-server.host-port", Key: "http::endpoint", Value: hostPort, Doc: "Address on which to serve the query API over HTTP."},
		{Name: "query.base-path", Key: "base_path", Doc: "Prefix of the paths of all HTTP routes, for example /tracing."},
		{Name: "query.grpc-server.host-port", Key: "grpc::endpoint", Value: hostPort, Doc: "Address on which to serve the query API over gRPC."},
		{Name: "query.ui-config", Block: "ui::path", Key: "ui::config_file",
			Optional: "configures the web UI of --query.static-files; the built-in web UI has no configuration file",
			Doc:      "Configuration file of the web UI, .json or .js."},
		{Name: "query.static-files", Key: "ui::path", Doc: "Folder with a built web UI."},
		{Name: "query.port", Key: "http::endpoint", Value: hostPort, Doc: "Earlier name of query.http-server.host-port."},
		{Name: "query.host-port", Key: "http::endpoint", Value: hostPort, Doc: "Earlier name of query.http-server.host-port."},
		{Name: "query.log-static-assets-access", Switch: true, Always: "false",
			Instead: "requests are not logged; metrics count them"},
		{Name: "query.max-clock-skew-adjustment", Key: "max_clock_skew_adjustment",
			Doc: "Maximum clock-skew adjustment between hosts. 0 disables the adjustment."},
		{Name: "query.bearer-token-propagation", Key: "bearer_token_propagation", Switch: true,
			Doc: "Whether to forward bearer tokens to a remote storage server."},
		{Name: "query.additional-headers", Key: "http::response_headers", Value: headers,
			Doc: "Headers added to every response, one `Name: value` per line."},
		{Name: "query.enable-tracing", Switch: true, Always: "false",
			Instead: "set service.telemetry.traces to trace requests and queries"},
	}, storageTypes(), prometheusFlags(), tlsFlags("query.http", "http::tls"), tlsFlags("query.grpc", "grpc::tls"),
		tenancyFlags("http"), tenancyFlags("grpc"))
}

// headers parses one `Name: value` per line.
func headers(text string) (any, error) {
	all := map[string]string{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			return nil, fmt.Errorf("line %d is not a header; write Name: value", n)
		}
		all[name] = strings.TrimSpace(value)
	}
	return all, nil
}

// Admin returns the flags of the `admin` extension.
func Admin() []pipeline.Flag {
	return slices.Concat([]pipeline.Flag{
		{Name: "admin.http.host-port", Key: "endpoint", Value: hostPort, Doc: "Address on which to serve the health check and the metrics."},
		{Name: "admin-http-port", Key: "endpoint", Value: hostPort, Doc: "Earlier name of admin.http.host-port."},
		{Name: "health-check-http-port", Key: "endpoint", Value: hostPort, Doc: "Earlier name of admin.http.host-port."},
		{Name: "metrics-backend", Always: "prometheus",
			Instead: "metrics are always served in the Prometheus text format; remove the admin extension to disable them"},
		{Name: "metrics-http-route", Always: "/metrics", Instead: "metrics are always served at /metrics by the admin extension"},
	}, tlsFlags("admin.http", "tls"))
}

// tlsFlags returns the flags for the TLS block of a listener at key.
func tlsFlags(prefix, key string) []pipeline.Flag {
	prefix += ".tls."
	flags := []pipeline.Flag{
		{Name: "cert", Key: "cert_file", Doc: "Certificate file in PEM format."},
		{Name: "key", Key: "key_file", Doc: "Private key file in PEM format."},
		{Name: "client-ca", Key: "client_ca_file",
			Doc: "File of certificate authorities in PEM format. If set, clients must present a certificate signed by one of them."},
		{Name: "cipher-suites", Key: "cipher_suites", Value: list, Doc: "Cipher suites for TLS 1.2 and older, separated by commas."},
		{Name: "min-version", Key: "min_version", Doc: "Minimum TLS version."},
		{Name: "max-version", Key: "max_version", Doc: "Maximum TLS version."},
		{Name: "reload-interval", Key: "reload_interval", Doc: "Interval at which the certificate and key files are checked for changes."},
	}
	for i := range flags {
		f := &flags[i]
		f.Name, f.Key, f.Block = prefix+f.Name, key+"::"+f.Key, key
		f.Missing = withoutTLS(prefix)
	}
	return append(flags, pipeline.Flag{Name: prefix + "enabled", Key: key, Presence: true, Doc: "Whether the listener requires TLS."})
}

// withoutTLS returns the error for a TLS flag of a listener or connection without TLS.
func withoutTLS(prefix string) string {
	return prefix + "* options cannot be used when " + prefix + "enabled is false"
}

// corsFlags returns the CORS flags of the listener at key, or of the component if key is "".
func corsFlags(prefix, key string) []pipeline.Flag {
	return []pipeline.Flag{
		{Name: prefix + ".cors.allowed-origins", Block: key, Key: below(key, "cors::allowed_origins"), Value: list,
			Doc: "Origins of web pages that may send spans, separated by commas."},
		{Name: prefix + ".cors.allowed-headers", Block: key, Key: below(key, "cors::allowed_headers"), Value: list,
			Doc: "Headers that web pages of the allowed origins may send, separated by commas."},
	}
}

// tenancyFlags returns the tenancy flags of the listener at key, or of the component if key is "".
// They apply to all listeners with tenancy keys.
func tenancyFlags(key string) []pipeline.Flag {
	block := below(key, "tenancy")
	return []pipeline.Flag{
		{Name: "multi-tenancy.enabled", Distinctive: "MULTI_TENANCY_", Block: key, Key: block + "::enabled", Switch: true,
			Doc: "Whether to separate tenants by a request header."},
		{Name: "multi-tenancy.header", Block: block, Key: block + "::header", Doc: "Header that names the tenant."},
		{Name: "multi-tenancy.tenants", Block: block, Key: block + "::tenants", Value: list,
			Doc: "Names of the allowed tenants, separated by commas. Empty allows all."},
	}
}

// below joins the path of a block, which is "" for the component itself, and a path in the block.
func below(block, path string) string {
	if block == "" {
		return path
	}
	return block + "::" + path
}

// mebibytes converts a number of bytes to MiB, rounding up.
func mebibytes(text string) (any, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return nil, fmt.Errorf("%q is not a number of bytes from 1 to %d", text, math.MaxInt32)
	}
	return int((n + 1<<20 - 1) >> 20), nil
}
