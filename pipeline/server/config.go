package server

import (
	"errors"
	"math"
	"net/http"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/tracing-backend/tracing/pipeline"
)

// Limits of configuration values.
const (
	maxRecvMsgSizeMiB = 2047 // a gRPC message length is an int32 in places
	maxBodySize       = 1 << 40
	maxMessageSize    = 1 << 30
)

// HTTPConfig are the keys of an HTTP listener. A config that embeds it and has keys of its own needs a Validate of its own for those
// (and only those): the loader calls the one of HTTPConfig, too. The keys are those of the OpenTelemetry Collector where it has them.
type HTTPConfig struct {
	Endpoint           pipeline.Endpoint `yaml:"endpoint" doc:"Address to listen on, host:port."`
	MaxRequestBodySize pipeline.ByteSize `yaml:"max_request_body_size" doc:"Greatest size of a request body, before and after decompression."`
	ReadHeaderTimeout  pipeline.Duration `yaml:"read_header_timeout" doc:"How long a client may take to send the headers of a request."`
	ReadTimeout        pipeline.Duration `yaml:"read_timeout" doc:"How long a client may take to send a whole request."`
	WriteTimeout       pipeline.Duration `yaml:"write_timeout" doc:"Time from the headers to the end of the answer; 0: no limit."`
	IdleTimeout        pipeline.Duration `yaml:"idle_timeout" doc:"How long a connection may stay open without a request."`
	MaxConnections     int               `yaml:"max_connections" doc:"How many connections may be open; further ones are closed at once."`
	SecurityConfig
	CORS            pipeline.Optional[CORSConfig] `yaml:"cors" doc:"Let browsers send requests from pages of other origins."`
	ResponseHeaders map[string]string             `yaml:"response_headers" doc:"Headers that every answer gets."`
}

// DefaultHTTPConfig returns limits that are safe on an open network, and the given endpoint.
func DefaultHTTPConfig(endpoint pipeline.Endpoint) HTTPConfig {
	return HTTPConfig{
		Endpoint:           endpoint,
		MaxRequestBodySize: 20 << 20,
		ReadHeaderTimeout:  pipeline.Duration(10 * time.Second),
		ReadTimeout:        pipeline.Duration(30 * time.Second),
		WriteTimeout:       pipeline.Duration(time.Minute),
		IdleTimeout:        pipeline.Duration(time.Minute),
		MaxConnections:     4096,
		SecurityConfig:     defaultSecurity(),
		CORS:               pipeline.Absent(CORSConfig{}),
	}
}

// Validate reports values that would switch a limit off or make the listener useless.
func (c *HTTPConfig) Validate() error {
	return errors.Join(
		checkEndpoint(c.Endpoint),
		checkRange("max_request_body_size", int64(c.MaxRequestBodySize), 1, maxBodySize),
		checkSet("read_header_timeout", c.ReadHeaderTimeout),
		checkSet("read_timeout", c.ReadTimeout),
		checkSet("idle_timeout", c.IdleTimeout),
		checkRange("max_connections", int64(c.MaxConnections), 1, math.MaxInt32),
		checkHeaders(c.ResponseHeaders),
	)
}

// checkHeaders refuses what would be no header, or end one and begin another.
func checkHeaders(headers map[string]string) error {
	var errs []error
	for name, value := range headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			errs = append(errs, pipeline.BadKey("response_headers", "%q: %q is not a header", name, value))
		}
	}
	return errors.Join(errs...)
}

// withHeaders adds headers to all answers; a handler can replace them.
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

// GRPCConfig are the keys of a gRPC listener, named as in the OpenTelemetry Collector where it has them.
type GRPCConfig struct {
	Endpoint             pipeline.Endpoint `yaml:"endpoint" doc:"Address to listen on, host:port."`
	MaxRecvMsgSizeMiB    int               `yaml:"max_recv_msg_size_mib" doc:"Greatest message in MiB, before and after decompression."`
	MaxConcurrentStreams uint32            `yaml:"max_concurrent_streams" doc:"How many calls one connection may have open at once."`
	MaxConnections       int               `yaml:"max_connections" doc:"How many connections may be open; further ones are closed at once."`
	ConnectionTimeout    pipeline.Duration `yaml:"connection_timeout" doc:"How long a client may take to set up a connection."`
	ReadTimeout          pipeline.Duration `yaml:"read_timeout" doc:"How long a call's first message may take to arrive."`
	Keepalive            KeepaliveConfig   `yaml:"keepalive" doc:"How dead and overactive clients are found."`
	SecurityConfig
}

// KeepaliveConfig are the keys below `keepalive`.
type KeepaliveConfig struct {
	ServerParameters  KeepaliveServerConfig      `yaml:"server_parameters" doc:"When the server pings clients and ends connections."`
	EnforcementPolicy KeepaliveEnforcementConfig `yaml:"enforcement_policy" doc:"Which pings of clients are too many."`
}

// KeepaliveServerConfig are the keys below `keepalive.server_parameters`. Zero is without limit for the first three.
type KeepaliveServerConfig struct {
	MaxConnectionIdle     pipeline.Duration `yaml:"max_connection_idle" doc:"Close connections without calls for so long; 0: never."`
	MaxConnectionAge      pipeline.Duration `yaml:"max_connection_age" doc:"Have clients reconnect after so long; 0: never."`
	MaxConnectionAgeGrace pipeline.Duration `yaml:"max_connection_age_grace" doc:"Time for calls beyond max_connection_age; 0: no limit."`
	Time                  pipeline.Duration `yaml:"time" doc:"Ping a client after so long without any sign of it."`
	Timeout               pipeline.Duration `yaml:"timeout" doc:"Close the connection when a ping is not answered for so long."`
}

// KeepaliveEnforcementConfig are the keys below `keepalive.enforcement_policy`.
type KeepaliveEnforcementConfig struct {
	MinTime             pipeline.Duration `yaml:"min_time" doc:"Close connections of clients that ping more often than this."`
	PermitWithoutStream bool              `yaml:"permit_without_stream" doc:"Let clients ping while they have no call open."`
}

// DefaultGRPCConfig returns limits that are safe on an open network, and the given endpoint.
func DefaultGRPCConfig(endpoint pipeline.Endpoint) GRPCConfig {
	return GRPCConfig{
		Endpoint:             endpoint,
		MaxRecvMsgSizeMiB:    4,
		MaxConcurrentStreams: 100,
		MaxConnections:       4096,
		ConnectionTimeout:    pipeline.Duration(20 * time.Second),
		ReadTimeout:          pipeline.Duration(30 * time.Second),
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

// Validate reports values that would switch a limit off or make the listener useless.
func (c *GRPCConfig) Validate() error {
	return errors.Join(
		checkEndpoint(c.Endpoint),
		checkRange("max_recv_msg_size_mib", int64(c.MaxRecvMsgSizeMiB), 1, maxRecvMsgSizeMiB),
		checkRange("max_concurrent_streams", int64(c.MaxConcurrentStreams), 1, math.MaxInt32),
		checkRange("max_connections", int64(c.MaxConnections), 1, math.MaxInt32),
		checkSet("connection_timeout", c.ConnectionTimeout),
		checkSet("read_timeout", c.ReadTimeout),
		checkSet("keepalive::server_parameters::time", c.Keepalive.ServerParameters.Time),
		checkSet("keepalive::server_parameters::timeout", c.Keepalive.ServerParameters.Timeout),
	)
}

// TCPConfig are the keys of a listener for a protocol of its own. A config that embeds it and has keys of its own needs a Validate of its
// own for those (and only those): the loader calls the one of TCPConfig, too. There is no authentication and there are no tenants, since
// both are told in headers; tls with client_ca_file keeps strangers out.
type TCPConfig struct {
	Endpoint       pipeline.Endpoint `yaml:"endpoint" doc:"Address to listen on, host:port."`
	MaxMessageSize pipeline.ByteSize `yaml:"max_message_size" doc:"Greatest size of one message, with what marks its end."`
	ReadTimeout    pipeline.Duration `yaml:"read_timeout" doc:"How long a message that has begun, or a TLS handshake, may take."`
	WriteTimeout   pipeline.Duration `yaml:"write_timeout" doc:"How long a client may take to let an answer in."`
	IdleTimeout    pipeline.Duration `yaml:"idle_timeout" doc:"How long a connection may stay open without a message."`
	MaxConnections int               `yaml:"max_connections" doc:"How many connections may be open; further ones are closed at once."`

	TLS pipeline.Optional[TLSConfig] `yaml:"tls" doc:"Serve TLS only."`
}

// DefaultTCPConfig returns limits that are safe on an open network, and the given endpoint.
func DefaultTCPConfig(endpoint pipeline.Endpoint) TCPConfig {
	return TCPConfig{
		Endpoint:       endpoint,
		MaxMessageSize: 64 << 10,
		ReadTimeout:    pipeline.Duration(30 * time.Second),
		WriteTimeout:   pipeline.Duration(30 * time.Second),
		IdleTimeout:    pipeline.Duration(time.Minute),
		MaxConnections: 4096,
		TLS:            defaultSecurity().TLS,
	}
}

// Validate reports values that would switch a limit off or make the listener useless.
func (c *TCPConfig) Validate() error {
	return errors.Join(
		checkEndpoint(c.Endpoint),
		checkRange("max_message_size", int64(c.MaxMessageSize), 1, maxMessageSize),
		checkSet("read_timeout", c.ReadTimeout),
		checkSet("write_timeout", c.WriteTimeout),
		checkSet("idle_timeout", c.IdleTimeout),
		checkRange("max_connections", int64(c.MaxConnections), 1, math.MaxInt32),
	)
}

func checkEndpoint(e pipeline.Endpoint) error {
	if e == "" {
		return pipeline.BadKey("endpoint", "must be set; write host:port, for example localhost:4317")
	}
	return nil
}

func checkRange(key string, v, least, most int64) error {
	if v < least || v > most {
		return pipeline.BadKey(key, "must be from %d to %d, not %d", least, most, v)
	}
	return nil
}

func checkSet(key string, d pipeline.Duration) error {
	if d <= 0 {
		return pipeline.BadKey(key, "must be above 0, or a client that does nothing would be waited for without end")
	}
	return nil
}
