package commands

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Names of the environment variables that [Variables] describes.
const (
	VarListenHost     = "TRACING_LISTEN_HOST"
	VarDataDir        = "TRACING_DATA_DIR"
	VarCollectorHost  = "TRACING_COLLECTOR_HOST"
	VarStorageHost    = "TRACING_STORAGE_HOST"
	VarClickHouseHost = "TRACING_CLICKHOUSE_HOST"
	VarKafkaBrokers   = "TRACING_KAFKA_BROKERS"
	VarQueryURL       = "TRACING_QUERY_URL"
	VarAdminURL       = "TRACING_ADMIN_URL"
	VarOTLPURL        = "TRACING_OTLP_URL"
	VarSamplingURL    = "TRACING_SAMPLING_URL"
)

// Variable is an environment variable of the program.
type Variable struct {
	Name string
	Doc  string // one sentence
}

// Variables returns the environment variables of presets and commands. In addition, most flags have
// a variable, see pipeline.Flag.Env.
func Variables() []Variable {
	return []Variable{
		{VarListenHost, "Host on which the listeners of presets listen (default localhost; 0.0.0.0 for all interfaces). " +
			"Commands expect the program there."},
		{VarDataDir, "Folder for the files of all components, like --data-dir."},
		{VarCollectorHost, "Host of the collector to which the preset agent sends spans (default localhost)."},
		{VarStorageHost, "Host of the collector whose store the preset query reads (default localhost)."},
		{VarClickHouseHost, "Host of the ClickHouse server of the presets collector-clickhouse and query-clickhouse (default localhost)."},
		{VarKafkaBrokers, "Address of a Kafka broker, host:port, for the presets collector-kafka and ingester (default localhost:9092); " +
			"several are separated by commas."},
		{VarQueryURL, "URL of the query API for trace, search, services, canary and doctor, like --query."},
		{VarAdminURL, "URL of the admin API for delete and healthcheck, like --admin and --endpoint."},
		{VarOTLPURL, "URL of the OTLP/HTTP endpoint to which canary and demo write, like --otlp."},
		{VarSamplingURL, "URL from which sampling explain requests strategies, like --url."},
	}
}

// DefaultURL returns the default of a URL that a command connects to: the value of the environment
// variable, or http:// with the host of the listeners and the port. getenv is os.Getenv outside of
// tests.
func DefaultURL(getenv func(string) string, variable string, port int) string {
	if value := getenv(variable); value != "" {
		return value
	}
	return "http://" + net.JoinHostPort(LocalHost(getenv(VarListenHost)), strconv.Itoa(port))
}

// LocalHost returns the host by which this machine reaches a listener on the given host, which may
// be empty, an address for all interfaces, or an IPv6 address with or without brackets.
func LocalHost(host string) string {
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		return "localhost"
	}
	return host
}

// LocalURL returns the URL by which this machine reaches an HTTP listener without TLS, or "" if the
// address has no port.
func LocalURL(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	return "http://" + net.JoinHostPort(LocalHost(host), port)
}
