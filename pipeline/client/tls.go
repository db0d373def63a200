package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/certs"
)

// TLSConfig is the block `tls`.
type TLSConfig struct {
	Insecure           bool              `yaml:"insecure" doc:"Whether to connect without TLS. Ignored for HTTP, where the scheme of the URL decides."`
	InsecureSkipVerify bool              `yaml:"insecure_skip_verify" doc:"Whether to accept any server certificate. The connection is encrypted but not protected against interception."`
	CAFile             string            `yaml:"ca_file" path:"file" doc:"PEM file of trusted certificate authorities. Empty trusts the system's authorities."`
	SystemCAs          bool              `yaml:"include_system_ca_certs_pool" doc:"Whether to trust the system's certificate authorities in addition to ca_file."`
	CertFile           string            `yaml:"cert_file" path:"file" doc:"PEM file of the client certificate, followed by its chain."`
	KeyFile            string            `yaml:"key_file" path:"file" doc:"PEM file of the private key for cert_file."`
	ServerName         string            `yaml:"server_name_override" doc:"Name that the server certificate must contain, instead of the host of the endpoint."`
	MinVersion         string            `yaml:"min_version" doc:"Minimum TLS version: 1.0, 1.1, 1.2 or 1.3."`
	MaxVersion         string            `yaml:"max_version" doc:"Maximum TLS version. Empty allows the newest."`
	ReloadInterval     pipeline.Duration `yaml:"reload_interval" doc:"Interval at which the files are checked for changes, which new connections use. 0 disables reloading."`
}

// defaultReload is the default interval at which certificate and token files are checked for
// changes.
const defaultReload = 10 * time.Second

func defaultTLS() TLSConfig {
	return TLSConfig{MinVersion: "1.2", ReloadInterval: pipeline.Duration(defaultReload)}
}

// Validate reports unknown versions and contradictory keys.
func (c *TLSConfig) Validate() error {
	var errs []error
	_, _, errMin, errMax := certs.Versions(c.MinVersion, c.MaxVersion)
	if errMin != nil {
		errs = append(errs, pipeline.BadKey("min_version", "%v", errMin))
	}
	if errMax != nil {
		errs = append(errs, pipeline.BadKey("max_version", "%v", errMax))
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		errs = append(errs, pipeline.BadKey("", "must have both cert_file and key_file or neither"))
	}
	if c.Insecure && (c.CAFile != "" || c.CertFile != "") {
		errs = append(errs, pipeline.BadKey("insecure", "true disables TLS, but certificate files are set; remove insecure or the files"))
	}
	return errors.Join(errs...)
}

// source returns the TLS configuration. protocols are offered in the handshake (ALPN).
func (c *TLSConfig) source(set pipeline.Settings, protocols ...string) (*certs.TLSSource, error) {
	minVersion, maxVersion, errMin, errMax := certs.Versions(c.MinVersion, c.MaxVersion)
	if err := errors.Join(errMin, errMax); err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	base := &tls.Config{MinVersion: minVersion, MaxVersion: maxVersion, ServerName: c.ServerName, NextProtos: protocols,
		InsecureSkipVerify: c.InsecureSkipVerify}
	files := certs.Files{Cert: c.CertFile, Key: c.KeyFile, CA: c.CAFile, SystemCAs: c.SystemCAs}
	return certs.NewClientTLS(base, files, reloadOptions(set, "certificates", c.ReloadInterval)), nil
}

// reloadOptions returns options for reloading files of a component.
func reloadOptions(set pipeline.Settings, what string, interval pipeline.Duration) certs.ReloadOptions {
	return certs.NewReloadOptions(set.Logger, set.Env.Now, what, interval.Std())
}

// DefaultTLSConfig returns a configuration with TLS 1.2 or newer.
func DefaultTLSConfig() TLSConfig { return defaultTLS() }

// TLS is the TLS configuration of clients of protocols other than gRPC and HTTP. It is safe for
// concurrent use after Load.
type TLS struct{ source *certs.TLSSource }

// NewTLS returns the configuration of c. It reads no files.
func NewTLS(set pipeline.Settings, c TLSConfig) (*TLS, error) {
	source, err := c.source(set)
	if err != nil {
		return nil, err
	}
	return &TLS{source}, nil
}

// Load reads the certificates.
func (t *TLS) Load() error { return t.source.Load() }

// Config returns the current configuration, which must not be modified. It rereads the files if
// they have changed.
func (t *TLS) Config() *tls.Config { return t.source.Config() }

// Client returns a TLS connection over conn after the handshake with the server at address. If the
// handshake fails, it closes conn.
func (t *TLS) Client(ctx context.Context, conn net.Conn, address string) (net.Conn, error) {
	cfg := t.source.Config()
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			conn.Close() //nolint:errcheck // the first error is returned
			return nil, err
		}
		cfg = cfg.Clone()
		cfg.ServerName = host
	}
	secured := tls.Client(conn, cfg)
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close() //nolint:errcheck // the first error is returned
		return nil, fmt.Errorf("tls: %w", err)
	}
	return secured, nil
}
