package db

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/client"
)

// dialer opens connections with the current certificates and secrets.
type dialer struct {
	set      pipeline.Settings
	cfg      Config
	tls      *client.TLS        // nil: no TLS
	password *client.SecretFile // nil: cfg.Password
	token    *client.SecretFile // nil: no token
}

func newDialer(set pipeline.Settings, c Config) (*dialer, error) {
	d := &dialer{set: set, cfg: c}
	if block, on := c.TLS.Get(); on && !block.Insecure {
		var err error
		if d.tls, err = client.NewTLS(set, block); err != nil {
			return nil, err
		}
	}
	if c.PasswordFile != "" {
		d.password = client.NewSecretFile(set, c.PasswordFile)
	}
	if c.TokenFile != "" {
		d.token = client.NewSecretFile(set, c.TokenFile)
	}
	return d, nil
}

// load reads certificates and secrets for the first time.
func (d *dialer) load() error {
	if d.tls != nil {
		if err := d.tls.Load(); err != nil {
			return fmt.Errorf("tls: %w", err)
		}
	}
	if d.password != nil {
		if err := d.password.Load(); err != nil {
			return fmt.Errorf("password_file: %w", err)
		}
	}
	if d.token != nil {
		if err := d.token.Load(); err != nil {
			return fmt.Errorf("token_file: %w", err)
		}
	}
	if d.tls == nil && (d.cfg.Password != "" || d.password != nil) {
		d.set.Logger.Warn("sending the password in plaintext, because the block tls is missing")
	}
	return nil
}

// options returns the options of the pool of one server.
func (d *dialer) options(address string) *clickhouse.Options {
	o := &clickhouse.Options{
		Addr: []string{address}, Auth: clickhouse.Auth{Username: d.cfg.Username, Password: string(d.cfg.Password)},
		Compression: &clickhouse.Compression{Method: compressions()[d.cfg.Compression]},
		DialTimeout: d.cfg.ConnectTimeout.Std(), ReadTimeout: readTimeout,
		MaxOpenConns: d.cfg.MaxConnections, MaxIdleConns: d.cfg.MaxConnections,
		DialContext: d.dial, DialStrategy: d.open,
	}
	if d.cfg.Protocol == HTTP {
		o.Protocol = clickhouse.HTTP
	}
	if d.token != nil {
		o.GetJWT = func(context.Context) (string, error) { return string(d.token.Get()), nil }
	}
	return o
}

// readTimeout is the maximum time between two packets of a server, for statements without a
// deadline.
const readTimeout = 5 * time.Minute

// open opens a connection to the only address of a pool with the current secrets.
func (d *dialer) open(ctx context.Context, _ int, o *clickhouse.Options, dial clickhouse.Dial) (clickhouse.DialResult, error) {
	current := *o
	if d.password != nil {
		current.Auth.Password = string(d.password.Get())
	}
	if d.tls != nil {
		current.TLS = d.tls.Config()
	}
	return dial(ctx, o.Addr[0], &current)
}

// dial connects to a server. Over HTTP, the transport of the client adds TLS.
func (d *dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.ConnectTimeout.Std())
	defer cancel()
	conn, err := d.set.Env.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, &dialError{err}
	}
	if d.tls == nil || d.cfg.Protocol == HTTP {
		return conn, nil
	}
	secured, err := d.tls.Client(ctx, conn, address)
	if err != nil {
		return nil, &dialError{err}
	}
	return secured, nil
}

// dialError is the error of a connection attempt. No statement was sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return "connecting: " + e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }
