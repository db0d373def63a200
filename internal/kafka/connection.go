package kafka

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// Connection provides the options with which the clients of a component connect to a cluster. It is
// safe for concurrent use after Load.
type Connection struct {
	set  pipeline.Settings
	cfg  ClientConfig
	tls  *client.TLS // nil: no TLS
	auth *authenticator
	log  *logger
}

// NewConnection returns the connection of a component. It opens nothing and reads no files.
func NewConnection(set pipeline.Settings, cfg ClientConfig) (*Connection, error) {
	c := &Connection{set: set, cfg: cfg, log: newLogger(set)}
	if cfg.encrypted() {
		block, _ := cfg.TLS.Get()
		var err error
		if c.tls, err = client.NewTLS(set, block); err != nil {
			return nil, err
		}
	}
	var err error
	c.auth, err = newAuthenticator(set, cfg)
	return c, err
}

// Load reads certificates and secrets for the first time. It must succeed before a client with
// these Options is created.
func (c *Connection) Load(ctx context.Context) error {
	if c.tls != nil {
		if err := c.tls.Load(); err != nil {
			return fmt.Errorf("tls: %w", err)
		}
	}
	return c.auth.load(ctx)
}

// Options returns the options of every client of the component: addresses, identity, encryption,
// authentication, network, log and the interval of metadata. A component appends its own options.
func (c *Connection) Options() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.cfg.addresses()...),
		kgo.ClientID(c.cfg.ClientID),
		kgo.SoftwareNameAndVersion("tracing", softwareVersion(c.set)),
		kgo.Dialer(c.dial),
		kgo.ConnIdleTimeout(c.cfg.IdleTimeout.Std()),
		kgo.MetadataMaxAge(c.cfg.Metadata.RefreshInterval.Std()),
		kgo.MetadataMinAge(min(minMetadataAge, c.cfg.Metadata.RefreshInterval.Std())),
		kgo.WithLogger(c.log),
		// This process has its own metrics; some Kafka-compatible services fail on client metrics.
		kgo.DisableClientMetrics(),
	}
	if m := c.auth.mechanism(); m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	return opts
}

// Close ends the log and closes idle connections for tokens. All clients with the options must have
// been closed.
func (c *Connection) Close(ctx context.Context) error {
	c.log.lines.Close()
	return c.auth.close(ctx)
}

// dial connects to a broker.
func (c *Connection) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.ConnectTimeout.Std())
	defer cancel()
	conn, err := c.set.Env.Dial(ctx, network, address)
	if err != nil || c.tls == nil {
		return conn, err
	}
	return c.tls.Client(ctx, conn, address)
}

// softwareVersion returns the version of this program, with characters that brokers accept.
func softwareVersion(set pipeline.Settings) string {
	if set.Process == nil {
		return unknownVersion
	}
	version := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, set.Process.Build().Version)
	version = strings.Trim(version[:min(len(version), maxClientID)], ".-")
	if version == "" {
		return unknownVersion
	}
	return version
}

const unknownVersion = "unknown"
