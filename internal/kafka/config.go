package kafka

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// ClientConfig holds the keys of a connection to a Kafka cluster. Keys that the OpenTelemetry
// Collector also has use its names.
type ClientConfig struct {
	Brokers        []string                            `yaml:"brokers" doc:"Addresses of brokers, host:port. An item may list several, separated by commas. The first broker that responds names the others."`
	ClientID       string                              `yaml:"client_id" doc:"Name of the client in the log, metrics and quotas of the brokers."`
	TLS            pipeline.Optional[client.TLSConfig] `yaml:"tls" doc:"TLS settings. Without the block, connections are not encrypted."`
	Auth           AuthConfig                          `yaml:"auth" doc:"Authentication of the client."`
	Metadata       MetadataConfig                      `yaml:"metadata" doc:"Metadata about topics and brokers."`
	ConnectTimeout pipeline.Duration                   `yaml:"connect_timeout" doc:"Maximum time for one connection attempt, with TLS handshake."`
	IdleTimeout    pipeline.Duration                   `yaml:"conn_idle_timeout" doc:"Time after which an idle connection is closed, from 100ms to 15m."`
}

// MetadataConfig says how often the client requests topics and brokers.
type MetadataConfig struct {
	RefreshInterval pipeline.Duration `yaml:"refresh_interval" doc:"Interval, from 1s to 1h, at which the client asks for topics, partitions and brokers even without errors."`
}

// Limits of durations, as in the client library.
const (
	minRefresh = time.Second
	maxRefresh = time.Hour
	minIdle    = 100 * time.Millisecond
	maxIdle    = 15 * time.Minute
)

// maxClientID is the maximum length of ClientConfig.ClientID.
const maxClientID = 256

// DefaultClientConfig returns the configuration of a broker on this machine.
func DefaultClientConfig() ClientConfig {
	return ClientConfig{
		Brokers: []string{"localhost:9092"}, ClientID: "tracing", TLS: pipeline.Absent(client.DefaultTLSConfig()),
		Auth: defaultAuth(), Metadata: MetadataConfig{RefreshInterval: pipeline.Duration(10 * time.Minute)},
		ConnectTimeout: pipeline.Duration(10 * time.Second), IdleTimeout: pipeline.Duration(9 * time.Minute),
	}
}

// Validate checks what the types of the values do not.
func (c *ClientConfig) Validate() error {
	var errs []error
	if len(c.Brokers) == 0 {
		errs = append(errs, pipeline.BadKey("brokers", "must not be empty"))
	}
	for _, b := range c.addresses() {
		host, port, err := net.SplitHostPort(b)
		if n, perr := strconv.ParseUint(port, 10, 16); err != nil || host == "" || perr != nil || n == 0 {
			errs = append(errs, pipeline.BadKey("brokers", "%q is not host:port, for example localhost:9092", b))
		}
	}
	if c.ClientID == "" || len(c.ClientID) > maxClientID {
		errs = append(errs, pipeline.BadKey("client_id", "must have from 1 to %d bytes", maxClientID))
	}
	if c.ConnectTimeout <= 0 {
		errs = append(errs, pipeline.BadKey("connect_timeout", "must be above 0"))
	}
	if d := c.IdleTimeout.Std(); d < minIdle || d > maxIdle {
		errs = append(errs, pipeline.BadKey("conn_idle_timeout", "must be from %s to %s, not %s", minIdle, maxIdle, d))
	}
	return errors.Join(errs...)
}

// Validate checks the interval.
func (c *MetadataConfig) Validate() error {
	if d := c.RefreshInterval.Std(); d < minRefresh || d > maxRefresh {
		return pipeline.BadKey("refresh_interval", "must be from %s to %s, not %s", minRefresh, maxRefresh, d)
	}
	return nil
}

// addresses returns the addresses of all items.
func (c *ClientConfig) addresses() (all []string) {
	for _, item := range c.Brokers {
		for address := range strings.SplitSeq(item, ",") {
			all = append(all, strings.TrimSpace(address))
		}
	}
	return all
}

// encrypted reports whether connections use TLS.
func (c *ClientConfig) encrypted() bool {
	tls, on := c.TLS.Get()
	return on && !tls.Insecure
}

// minMetadataAge is the minimum time between two requests for metadata after errors.
const minMetadataAge = 500 * time.Millisecond
