package server

import (
	"errors"
	"math"
	"net/http"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server/internal/listen"
)

// Limits of configuration values.
const (
	maxRecvMsgSizeMiB = 2047 // gRPC stores some message lengths as int32
	maxBodySize       = 1 << 40
)

// The default of max_request_body_size is 1/bodyPart of the available memory, half of the default
// of service.limits.inflight, but at most the maximum.
const (
	bodyPart       = 14
	maxDefaultBody = 20 << 20
)

// HTTPConfig is the configuration of an HTTP listener. Keys that also exist in the OpenTelemetry
// Collector have the same names. A config that embeds HTTPConfig should define its own Validate
// that checks only its own keys: the loader also calls the Validate of embedded configs.
type HTTPConfig struct {
	Endpoint           pipeline.Endpoint `yaml:"endpoint" doc:"Address to listen on, host:port."`
	MaxRequestBodySize pipeline.ByteSize `yaml:"max_request_body_size" doc:"Maximum size of a request body, also after decompression. The default is 1/14 of the available memory, at most 20MiB."`
	ReadHeaderTimeout  pipeline.Duration `yaml:"read_header_timeout" doc:"Maximum time for a client to send the headers of a request."`
	ReadTimeout        pipeline.Duration `yaml:"read_timeout" doc:"Maximum time for a client to send a whole request."`
	WriteTimeout       pipeline.Duration `yaml:"write_timeout" doc:"Maximum time from the request headers to the end of the response. 0 disables the limit."`
	IdleTimeout        pipeline.Duration `yaml:"idle_timeout" doc:"Maximum time that a connection stays open without a request."`
	MaxConnections     int               `yaml:"max_connections" doc:"Maximum number of open connections. Further connections are closed immediately."`
	IncludeMetadata    bool              `yaml:"include_metadata" doc:"Whether headers of requests stay available, for example to batch (metadata_keys) and routing (request)."`
	SecurityConfig
	AllowedHosts    []string                      `yaml:"allowed_hosts" doc:"Host names that requests may use, besides localhost, names below .internal, IP addresses and the host of endpoint: traces.example.com, *.example.com for subdomains, or * for all. Requests with other names are refused, which prevents DNS rebinding. Listeners on addresses other than loopback check names only if this list is not empty."`
	CORS            pipeline.Optional[CORSConfig] `yaml:"cors" doc:"Cross-origin requests from browsers. Without the block, pages of other origins can neither read responses nor change state."`
	ResponseHeaders map[string]string             `yaml:"response_headers" doc:"Headers added to every response."`
}

// DefaultHTTPConfig returns a config for the endpoint with limits that are safe on an open network.
func DefaultHTTPConfig(endpoint pipeline.Endpoint) HTTPConfig {
	return HTTPConfig{
		Endpoint:           endpoint,
		MaxRequestBodySize: pipeline.MemoryShare(bodyPart, maxDefaultBody),
		ReadHeaderTimeout:  pipeline.Duration(10 * time.Second),
		ReadTimeout:        pipeline.Duration(30 * time.Second),
		WriteTimeout:       pipeline.Duration(time.Minute),
		IdleTimeout:        pipeline.Duration(time.Minute),
		MaxConnections:     4096,
		SecurityConfig:     defaultSecurity(),
		CORS:               pipeline.Absent(CORSConfig{}),
	}
}

// KeepsHeaders implements [pipeline.HeaderKeeper].
func (c *HTTPConfig) KeepsHeaders() bool { return c.IncludeMetadata }

// Validate reports values that would disable a limit or make the listener unusable.
func (c *HTTPConfig) Validate() error {
	return errors.Join(
		listen.CheckEndpoint(c.Endpoint),
		listen.CheckRange("max_request_body_size", int64(c.MaxRequestBodySize), 1, maxBodySize),
		listen.CheckTimeout("read_header_timeout", c.ReadHeaderTimeout),
		listen.CheckTimeout("read_timeout", c.ReadTimeout),
		listen.CheckTimeout("idle_timeout", c.IdleTimeout),
		listen.CheckRange("max_connections", int64(c.MaxConnections), 1, math.MaxInt32),
		checkHosts(c.AllowedHosts),
		checkProxies(c.TrustedProxies),
		checkHeaders(c.ResponseHeaders),
	)
}

// checkHeaders reports invalid names and values, including values that would inject another header.
func checkHeaders(headers map[string]string) error {
	var errs []error
	for name, value := range headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			errs = append(errs, pipeline.BadKey("response_headers", "%q: %q is not a valid header", name, value))
		}
	}
	return errors.Join(errs...)
}

// withHeaders adds headers to all responses. A handler may replace them.
func withHeaders(headers map[string]string, h http.Handler) http.Handler {
	if len(headers) == 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		h.ServeHTTP(w, r)
	})
}

// GRPCConfig is the configuration of a gRPC listener. Keys that also exist in the OpenTelemetry
// Collector have the same names.
type GRPCConfig struct {
	Endpoint             pipeline.Endpoint `yaml:"endpoint" doc:"Address to listen on, host:port."`
	MaxRecvMsgSizeMiB    int               `yaml:"max_recv_msg_size_mib" doc:"Maximum size of a message in MiB, before and after decompression."`
	MaxConcurrentStreams uint32            `yaml:"max_concurrent_streams" doc:"Maximum number of concurrent calls on one connection."`
	MaxConnections       int               `yaml:"max_connections" doc:"Maximum number of open connections. Further connections are closed immediately."`
	ConnectionTimeout    pipeline.Duration `yaml:"connection_timeout" doc:"Maximum time for a client to establish a connection."`
	ReadTimeout          pipeline.Duration `yaml:"read_timeout" doc:"Maximum time for a client to send the first message of a call."`
	WriteTimeout         pipeline.Duration `yaml:"write_timeout" doc:"Maximum time for which a client may stop reading a response. Then its connection is closed. 0 disables the limit."`
	Keepalive            KeepaliveConfig   `yaml:"keepalive" doc:"Detection of dead connections and of clients that ping too often."`
	IncludeMetadata      bool              `yaml:"include_metadata" doc:"Whether headers of requests stay available, for example to batch (metadata_keys) and routing (request)."`
	SecurityConfig
}

// KeepaliveConfig is the block `keepalive`.
type KeepaliveConfig struct {
	ServerParameters  KeepaliveServerConfig      `yaml:"server_parameters" doc:"Pings by the server and the lifetime of connections."`
	EnforcementPolicy KeepaliveEnforcementConfig `yaml:"enforcement_policy" doc:"Limits on pings by clients."`
}

// KeepaliveServerConfig is the block `keepalive.server_parameters`. Zero disables each of the first
// three.
type KeepaliveServerConfig struct {
	MaxConnectionIdle     pipeline.Duration `yaml:"max_connection_idle" doc:"Time without calls after which a connection is closed. 0 disables the limit."`
	MaxConnectionAge      pipeline.Duration `yaml:"max_connection_age" doc:"Age at which a connection is closed, so that its client reconnects. 0 disables the limit."`
	MaxConnectionAgeGrace pipeline.Duration `yaml:"max_connection_age_grace" doc:"Time that open calls have to finish after max_connection_age. 0 disables the limit."`
	Time                  pipeline.Duration `yaml:"time" doc:"Time without activity after which the server pings a client."`
	Timeout               pipeline.Duration `yaml:"timeout" doc:"Time to wait for the response to a ping before the connection is closed."`
}

// KeepaliveEnforcementConfig is the block `keepalive.enforcement_policy`.
type KeepaliveEnforcementConfig struct {
	MinTime             pipeline.Duration `yaml:"min_time" doc:"Minimum interval between the pings of a client. Clients that ping more often are disconnected."`
	PermitWithoutStream bool              `yaml:"permit_without_stream" doc:"Whether clients may ping while they have no open call."`
}

// DefaultGRPCConfig returns a config for the endpoint with limits that are safe on an open network.
func DefaultGRPCConfig(endpoint pipeline.Endpoint) GRPCConfig {
	return GRPCConfig{
		Endpoint:             endpoint,
		MaxRecvMsgSizeMiB:    4,
		MaxConcurrentStreams: 100,
		MaxConnections:       4096,
		ConnectionTimeout:    pipeline.Duration(20 * time.Second),
		ReadTimeout:          pipeline.Duration(30 * time.Second),
		WriteTimeout:         pipeline.Duration(time.Minute),
		SecurityConfig:       defaultSecurity(),
		Keepalive: KeepaliveConfig{
			ServerParameters: KeepaliveServerConfig{
				Time:    pipeline.Duration(time.Minute),
				Timeout: pipeline.Duration(20 * time.Second),
			},
			EnforcementPolicy: KeepaliveEnforcementConfig{
				MinTime:             pipeline.Duration(10 * time.Second),
				PermitWithoutStream: true,
			},
		},
	}
}

// KeepsHeaders implements [pipeline.HeaderKeeper].
func (c *GRPCConfig) KeepsHeaders() bool { return c.IncludeMetadata }

// Validate reports values that would disable a limit or make the listener unusable.
func (c *GRPCConfig) Validate() error {
	return errors.Join(
		listen.CheckEndpoint(c.Endpoint),
		listen.CheckRange("max_recv_msg_size_mib", int64(c.MaxRecvMsgSizeMiB), 1, maxRecvMsgSizeMiB),
		listen.CheckRange("max_concurrent_streams", int64(c.MaxConcurrentStreams), 1, math.MaxInt32),
		listen.CheckRange("max_connections", int64(c.MaxConnections), 1, math.MaxInt32),
		listen.CheckTimeout("connection_timeout", c.ConnectionTimeout),
		listen.CheckTimeout("read_timeout", c.ReadTimeout),
		listen.CheckTimeout("keepalive::server_parameters::time", c.Keepalive.ServerParameters.Time),
		listen.CheckTimeout("keepalive::server_parameters::timeout", c.Keepalive.ServerParameters.Timeout),
		checkProxies(c.TrustedProxies),
	)
}
