package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/certs"
)

// SecurityConfig holds the blocks for transport security, authentication and tenancy. Each is off
// unless it is configured.
type SecurityConfig struct {
	TLS     pipeline.Optional[TLSConfig]     `yaml:"tls" doc:"TLS settings. If set, plaintext connections are refused."`
	Auth    pipeline.Optional[AuthConfig]    `yaml:"auth" doc:"Authentication of clients. Off by default."`
	Tenancy pipeline.Optional[TenancyConfig] `yaml:"tenancy" doc:"Separation of tenants. If enabled, every request must have a header that names its tenant. Off by default."`
}

func defaultSecurity() SecurityConfig {
	return SecurityConfig{
		TLS:     pipeline.Absent(TLSConfig{MinVersion: "1.2", ReloadInterval: pipeline.Duration(defaultReload)}),
		Auth:    pipeline.Absent(AuthConfig{}),
		Tenancy: pipeline.Absent(TenancyConfig{Enabled: true, Header: defaultTenantHeader}),
	}
}

// TLSConfig is the block `tls`.
type TLSConfig struct {
	CertFile       string            `yaml:"cert_file" doc:"PEM file of the certificate, followed by its chain."`
	KeyFile        string            `yaml:"key_file" doc:"PEM file of the private key for cert_file."`
	ClientCAFile   string            `yaml:"client_ca_file" doc:"PEM file of certificate authorities. If set, clients must present a certificate signed by one of them."`
	MinVersion     string            `yaml:"min_version" doc:"Minimum TLS version: 1.0, 1.1, 1.2 or 1.3."`
	MaxVersion     string            `yaml:"max_version" doc:"Maximum TLS version. Empty allows the newest."`
	CipherSuites   []string          `yaml:"cipher_suites" doc:"Cipher suites for TLS 1.2 and older, by their Go names. Empty selects a safe default."`
	ReloadInterval pipeline.Duration `yaml:"reload_interval" doc:"Interval at which the certificate and key files are checked for changes. New connections use the new certificates. 0 disables reloading."`
}

// Validate reports missing files and unknown versions and cipher suites.
func (c *TLSConfig) Validate() error {
	var errs []error
	if c.CertFile == "" {
		errs = append(errs, pipeline.BadKey("cert_file", "must be set"))
	}
	if c.KeyFile == "" {
		errs = append(errs, pipeline.BadKey("key_file", "must be set"))
	}
	_, _, errMin, errMax := certs.Versions(c.MinVersion, c.MaxVersion)
	if errMin != nil {
		errs = append(errs, pipeline.BadKey("min_version", "%v", errMin))
	}
	if errMax != nil {
		errs = append(errs, pipeline.BadKey("max_version", "%v", errMax))
	}
	if _, err := cipherSuites(c.CipherSuites); err != nil {
		errs = append(errs, pipeline.BadKey("cipher_suites", "%v", err))
	}
	return errors.Join(errs...)
}

func cipherSuites(names []string) ([]uint16, error) {
	var ids []uint16
	for _, name := range names {
		id := uint16(0)
		for _, s := range tls.CipherSuites() {
			if s.Name == name {
				id = s.ID
			}
		}
		if id == 0 {
			return nil, fmt.Errorf("%q is not a supported secure cipher suite; use one such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", name)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// security checks the clients of one listener.
type security struct {
	tls     *certs.TLSSource // nil if plaintext
	auth    *authenticator   // nil if off
	tenancy *tenancy         // nil if off
}

// newSecurity returns the checks of a listener. protocols are announced in the TLS handshake
// (ALPN).
func newSecurity(set pipeline.Settings, c SecurityConfig, protocols ...string) (*security, error) {
	s := &security{}
	if t, on := c.TLS.Get(); on {
		minVersion, maxVersion, errMin, errMax := certs.Versions(t.MinVersion, t.MaxVersion)
		if err := errors.Join(errMin, errMax); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		suites, err := cipherSuites(t.CipherSuites)
		if err != nil {
			return nil, err
		}
		base := &tls.Config{MinVersion: minVersion, MaxVersion: maxVersion, CipherSuites: suites, NextProtos: protocols}
		s.tls = certs.NewServerTLS(base, certs.Files{Cert: t.CertFile, Key: t.KeyFile, CA: t.ClientCAFile},
			reloadOptions(set, "certificates", t.ReloadInterval))
	}
	if a, on := c.Auth.Get(); on {
		s.auth = newAuthenticator(set, a)
	}
	if t, on := c.Tenancy.Get(); on && t.Enabled {
		s.tenancy = newTenancy(t)
	}
	return s, nil
}

// reloadOptions returns options for reloading files of a component.
func reloadOptions(set pipeline.Settings, what string, interval pipeline.Duration) certs.ReloadOptions {
	return certs.NewReloadOptions(set.Logger, set.Env.Now, what, interval.Std())
}

// load reads the files for the first time.
func (s *security) load() error {
	if s.tls != nil {
		if err := s.tls.Load(); err != nil {
			return fmt.Errorf("tls: %w", err)
		}
	}
	if s.auth != nil {
		if err := s.auth.load(); err != nil {
			return fmt.Errorf("auth: %w", err)
		}
	}
	return nil
}

// check authenticates a request and returns its context with the tenant. The error is a *[Denied].
func (s *security) check(ctx context.Context, header func(name string) []string) (context.Context, error) {
	if s.auth != nil {
		if err := s.auth.check(header("authorization")); err != nil {
			return ctx, err
		}
	}
	if s.tenancy == nil {
		return ctx, nil
	}
	tenant, err := s.tenancy.tenant(header(s.tenancy.header))
	if err != nil {
		return ctx, err
	}
	return context.WithValue(ctx, tenantKey{}, tenant), nil
}

// Denied is the error of a request that fails authentication or has no valid tenant.
// [pipeline.HTTPStatus] and [pipeline.GRPCStatus] use its gRPC status: Unauthenticated (401) or,
// for a tenant, PermissionDenied (403).
type Denied struct {
	Reason string // ReasonUnauthenticated or ReasonTenant
	Msg    string
}

// Error returns the message.
func (d *Denied) Error() string { return d.Msg }

// GRPCStatus returns the status of a gRPC response.
func (d *Denied) GRPCStatus() *status.Status {
	if d.Reason == ReasonTenant {
		return status.New(codes.PermissionDenied, d.Msg)
	}
	return status.New(codes.Unauthenticated, d.Msg)
}

// DenyWithStatus responds to a denied request with 401 or 403, see [Denied], and one line of text.
// Pass it to [HTTP.OnDenied].
func DenyWithStatus(w http.ResponseWriter, _ *http.Request, d *Denied) {
	code, _ := pipeline.HTTPStatus(d)
	http.Error(w, d.Msg, code)
}

// deny is the default response to a denied HTTP request: 401 and the text without a line end.
func deny(w http.ResponseWriter, _ *http.Request, d *Denied) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusUnauthorized)
	w.Write([]byte(d.Msg)) //nolint:errcheck // the client is gone
}
