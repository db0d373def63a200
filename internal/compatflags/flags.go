package compatflags

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// The flags of the interface: each stands for a key of a component's configuration. Components gives them to the factories.

// OTLPReceiver returns the flags of receiver otlp.
func OTLPReceiver() []pipeline.Flag {
	const (
		grpc  = "protocols::grpc"
		http  = "protocols::http"
		alive = grpc + "::keepalive::server_parameters"
	)
	return slices.Concat([]pipeline.Flag{
		{Name: "collector.otlp.enabled", Switch: true, Doc: "Whether spans are accepted in the OpenTelemetry protocol."},
		{Name: "collector.otlp.grpc.host-port", Key: grpc + "::endpoint", Value: pipeline.HostPort, Doc: "Where OTLP over gRPC listens."},
		{Name: "collector.otlp.grpc.max-message-size", Block: grpc, Key: grpc + "::max_recv_msg_size_mib", Value: mebibytes,
			Doc: "Greatest message in bytes, rounded up to MiB."},
		{Name: "collector.otlp.grpc.max-connection-age", Block: grpc, Key: alive + "::max_connection_age",
			Doc: "Have clients reconnect after so long; 0: never."},
		{Name: "collector.otlp.grpc.max-connection-age-grace", Block: grpc, Key: alive + "::max_connection_age_grace",
			Doc: "Time for calls beyond that age; 0: no limit."},
		{Name: "collector.otlp.http.host-port", Key: http + "::endpoint", Value: pipeline.HostPort, Doc: "Where OTLP over HTTP listens."},
		{Name: "collector.otlp.http.idle-timeout", Block: http, Key: http + "::idle_timeout",
			Doc: "How long a connection may stay open without a request."},
		{Name: "collector.otlp.http.read-timeout", Block: http, Key: http + "::read_timeout",
			Doc: "How long a client may take to send a whole request."},
		{Name: "collector.otlp.http.read-header-timeout", Block: http, Key: http + "::read_header_timeout",
			Doc: "How long a client may take to send the headers of a request."},
		{Name: "collector.num-workers", Instead: "requests are handled as they come, as many at once as service.limits.inflight has room for"},
		{Name: "collector.queue-size", Instead: "nothing is queued in front of a store; service.limits.inflight bounds what is being handled"},
		{Name: "collector.queue-size-memory", Instead: "set service.limits.inflight, the bytes of requests that may be in memory at once"},
	},
		tlsFlags("collector.otlp.grpc", grpc+"::tls"), tlsFlags("collector.otlp.http", http+"::tls"),
		corsFlags("collector.otlp.http", http), tenancyFlags(grpc), tenancyFlags(http))
}

// DiskExporter returns the flags of exporter disk.
func DiskExporter() []pipeline.Flag {
	return []pipeline.Flag{
		{Name: "badger.span-store-ttl", Key: "retention::time", Doc: "How long the embedded store keeps spans."},
		{Name: "badger.ephemeral", Instead: "the embedded store keeps its files; choose --span-storage.type=memory for one that does not"},
		{Name: "badger.directory-key", Instead: "the embedded store has one folder: set exporters.disk.directory, or service.data_dir for all components"},
		{Name: "badger.directory-value", Instead: "the embedded store has one folder: set exporters.disk.directory, or service.data_dir for all components"},
		{Name: "badger.consistency", Instead: "acknowledged spans are always synced; exporters.disk.sync says otherwise where speed matters more"},
		{Name: "badger.maintenance-interval", Instead: "expired spans are deleted as soon as they are due"},
		{Name: "badger.metrics-update-interval", Instead: "metrics are always current"},
		{Name: "badger.read-only", Instead: "a process that only reads leaves the exporter out of its pipelines"},
	}
}

// MemoryExporter returns the flags of exporter memory.
func MemoryExporter() []pipeline.Flag {
	return []pipeline.Flag{
		{Name: "memory.max-traces", Instead: "the store is bounded in bytes: set exporters.memory.max_bytes"},
	}
}

// Query returns the flags of extension query.
func Query() []pipeline.Flag {
	return slices.Concat([]pipeline.Flag{
		{Name: "query.http-server.host-port", Key: "http::endpoint", Value: pipeline.HostPort, Doc: "Where the query API listens."},
		{Name: "query.base-path", Key: "base_path", Doc: "Path under which all routes live, for example /tracing."},
		{Name: "query.grpc-server.host-port", Key: "grpc::endpoint", Value: pipeline.HostPort, Doc: "Where the gRPC query services listen."},
		{Name: "query.ui-config", Key: "ui::config_file", Doc: "File with the configuration of the web UI, .json or .js."},
		{Name: "query.static-files", Key: "ui::path", Doc: "Folder of a build of the web UI."},
		{Name: "query.log-static-assets-access", Instead: "requests are not logged; metrics count them"},
		{Name: "query.max-clock-skew-adjustment", Key: "max_clock_skew_adjustment",
			Doc: "By how much times are moved at most where the clocks of hosts disagree; 0: never."},
		{Name: "query.bearer-token-propagation", Key: "bearer_token_propagation", Switch: true, Doc: "Whether bearer tokens are passed on to a remote store."},
		{Name: "query.additional-headers", Key: "http::response_headers", Value: headers, Doc: "A header of every answer, `Name: value`; several on lines of their own."},
		{Name: "query.enable-tracing", Instead: "the program does not trace itself in this version"},
	}, tlsFlags("query.http", "http::tls"), tlsFlags("query.grpc", "grpc::tls"), tenancyFlags("http"), tenancyFlags("grpc"))
}

// headers reads `Name: value`, one a line.
func headers(text string) (any, error) {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			return nil, fmt.Errorf("%q is not a header; write Name: value", line)
		}
		all[name] = strings.TrimSpace(value)
	}
	return all, nil
}

// Admin returns the flags of extension admin.
func Admin() []pipeline.Flag {
	return slices.Concat([]pipeline.Flag{
		{Name: "admin.http.host-port", Key: "endpoint", Value: pipeline.HostPort, Doc: "Where health and metrics are served."},
		{Name: "metrics-backend", Instead: "metrics are always served in the text format of Prometheus; to have none, run without the extension admin"},
		{Name: "metrics-http-route", Instead: "metrics are always served at /metrics of the extension admin"},
	}, tlsFlags("admin.http", "tls"))
}

// tlsFlags are the flags of a listener's TLS, whose block is at key.
func tlsFlags(prefix, key string) []pipeline.Flag {
	prefix += ".tls."
	flags := []pipeline.Flag{
		{Name: "cert", Key: "cert_file", Doc: "PEM file of the certificate."},
		{Name: "key", Key: "key_file", Doc: "PEM file of the certificate's key."},
		{Name: "client-ca", Key: "client_ca_file", Doc: "PEM file of the authorities that clients' certificates must be signed by."},
		{Name: "cipher-suites", Key: "cipher_suites", Value: pipeline.List, Doc: "Cipher suites for TLS up to 1.2, separated by commas."},
		{Name: "min-version", Key: "min_version", Doc: "Least version of TLS."},
		{Name: "max-version", Key: "max_version", Doc: "Greatest version of TLS."},
		{Name: "reload-interval", Key: "reload_interval", Doc: "How often the files are looked at for new certificates."},
	}
	for i := range flags {
		f := &flags[i]
		f.Name, f.Key, f.Block = prefix+f.Name, key+"::"+f.Key, key
		f.Missing = withoutTLS(prefix)
	}
	return append(flags, pipeline.Flag{Name: prefix + "enabled", Key: key, Presence: true, Doc: "Whether the listener serves TLS only."})
}

// withoutTLS is what is wrong with a flag of a listener or connection without TLS.
func withoutTLS(prefix string) string {
	return prefix + "* options cannot be used when " + prefix + "enabled is false"
}

// corsFlags are the flags of a listener whose block is at key; "" is the component.
func corsFlags(prefix, key string) []pipeline.Flag {
	return []pipeline.Flag{
		{Name: prefix + ".cors.allowed-origins", Block: key, Key: below(key, "cors::allowed_origins"), Value: pipeline.List,
			Doc: "Origins of pages that may send spans, separated by commas."},
		{Name: prefix + ".cors.allowed-headers", Block: key, Key: below(key, "cors::allowed_headers"), Value: pipeline.List,
			Doc: "Headers that these pages may send, separated by commas."},
	}
}

// tenancyFlags apply to all listeners that have them. key is the listener's block; "" is the component.
func tenancyFlags(key string) []pipeline.Flag {
	block := below(key, "tenancy")
	return []pipeline.Flag{
		{Name: "multi-tenancy.enabled", Block: key, Key: block + "::enabled", Switch: true, Doc: "Whether tenants are kept apart by a header."},
		{Name: "multi-tenancy.header", Block: block, Key: block + "::header", Doc: "The header that names the tenant."},
		{Name: "multi-tenancy.tenants", Block: block, Key: block + "::tenants", Value: pipeline.List,
			Doc: "Tenants that there are, separated by commas; empty allows any."},
	}
}

// below joins the path of a block, "" for the component itself, and a path in it.
func below(block, path string) string {
	if block == "" {
		return path
	}
	return block + "::" + path
}

// mebibytes converts a number of bytes, rounding up.
func mebibytes(text string) (any, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return nil, fmt.Errorf("%q is not a number of bytes from 1 to %d", text, math.MaxInt32)
	}
	return int((n + 1<<20 - 1) >> 20), nil
}
