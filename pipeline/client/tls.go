// Package client is the one way to connect outwards: gRPC and HTTP connections to a next hop, with TLS, authentication, headers,
// compression and limits, configured by the keys that the OpenTelemetry Collector has for them.
//
// A connection is made in three steps, as a component is: New checks and opens nothing, Start reads files and never waits for the other
// side, Stop closes. What goes out is dialled through [pipeline.Env].
package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/certs"
)

// TLSConfig are the keys below `tls`.
type TLSConfig struct {
	Insecure           bool              `yaml:"insecure" doc:"Send in plain text, without TLS; for HTTP the scheme of the URL decides."`
	InsecureSkipVerify bool              `yaml:"insecure_skip_verify" doc:"Believe any certificate of the server; encrypts, and protects from nobody in between."`
	CAFile             string            `yaml:"ca_file" doc:"PEM file of the authorities to trust; empty trusts those of the system."`
	SystemCAs          bool              `yaml:"include_system_ca_certs_pool" doc:"Trust the authorities of the system besides those of ca_file."`
	CertFile           string            `yaml:"cert_file" doc:"PEM file of the client's certificate, with the chain above it."`
	KeyFile            string            `yaml:"key_file" doc:"PEM file of the key of cert_file."`
	ServerName         string            `yaml:"server_name_override" doc:"Name that the server's certificate must have instead of the endpoint's host."`
	MinVersion         string            `yaml:"min_version" doc:"Least version of TLS: 1.0, 1.1, 1.2 or 1.3."`
	MaxVersion         string            `yaml:"max_version" doc:"Greatest version of TLS; empty is the newest."`
	ReloadInterval     pipeline.Duration `yaml:"reload_interval" doc:"How often the files are looked at for new certificates, which new connections then use; 0: never."`
}

// defaultReload is how old certificates and tokens may be.
const defaultReload = 10 * time.Second

func defaultTLS() TLSConfig {
	return TLSConfig{MinVersion: "1.2", ReloadInterval: pipeline.Duration(defaultReload)}
}

// Validate reports versions that do not exist and keys that contradict each other.
func (c *TLSConfig) Validate() error {
	var errs []error
	_, _, errLeast, errMost := certs.Versions(c.MinVersion, c.MaxVersion)
	if errLeast != nil {
		errs = append(errs, pipeline.BadKey("min_version", "%v", errLeast))
	}
	if errMost != nil {
		errs = append(errs, pipeline.BadKey("max_version", "%v", errMost))
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		errs = append(errs, pipeline.BadKey("", "cert_file and key_file belong together; write both or neither"))
	}
	if c.Insecure && (c.CAFile != "" || c.CertFile != "") {
		errs = append(errs, pipeline.BadKey("insecure", "is true, which uses no certificates; delete it, or the files"))
	}
	return errors.Join(errs...)
}

// source returns the TLS configuration for handshakes that offer the given application protocols.
func (c *TLSConfig) source(set pipeline.Settings, protocols ...string) (*certs.Source, error) {
	least, most, errLeast, errMost := certs.Versions(c.MinVersion, c.MaxVersion)
	if err := errors.Join(errLeast, errMost); err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	base := &tls.Config{MinVersion: least, MaxVersion: most, ServerName: c.ServerName, NextProtos: protocols,
		InsecureSkipVerify: c.InsecureSkipVerify}
	files := certs.Files{Cert: c.CertFile, Key: c.KeyFile, CA: c.CAFile, SystemCAs: c.SystemCAs}
	return certs.ForClient(base, files, follow(set, "certificates", c.ReloadInterval)), nil
}

// follow returns how files are followed by a component.
func follow(set pipeline.Settings, what string, interval pipeline.Duration) certs.Options {
	return certs.Logged(set.Logger, set.Env.Now, what, interval.Std())
}
