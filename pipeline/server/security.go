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

// SecurityConfig are the keys that say who may come in, and whose data theirs is. All blocks are off unless the file has them.
type SecurityConfig struct {
	TLS     pipeline.Optional[TLSConfig]     `yaml:"tls" doc:"Serve TLS only."`
	Auth    pipeline.Optional[AuthConfig]    `yaml:"auth" doc:"Let in only clients that prove who they are."`
	Tenancy pipeline.Optional[TenancyConfig] `yaml:"tenancy" doc:"Keep tenants apart by a header that every request must have."`
}

func defaultSecurity() SecurityConfig {
	return SecurityConfig{
		TLS:     pipeline.Absent(TLSConfig{MinVersion: "1.2", ReloadInterval: pipeline.Duration(defaultReload)}),
		Auth:    pipeline.Absent(AuthConfig{}),
		Tenancy: pipeline.Absent(TenancyConfig{Enabled: true, Header: defaultTenantHeader}),
	}
}

// TLSConfig are the keys below `tls`.
type TLSConfig struct {
	CertFile       string            `yaml:"cert_file" doc:"PEM file of the certificate, with the chain above it."`
	KeyFile        string            `yaml:"key_file" doc:"PEM file of the key of cert_file."`
	ClientCAFile   string            `yaml:"client_ca_file" doc:"PEM file of authorities: clients must have a certificate that one of them signed."`
	MinVersion     string            `yaml:"min_version" doc:"Least version of TLS: 1.0, 1.1, 1.2 or 1.3."`
	MaxVersion     string            `yaml:"max_version" doc:"Greatest version of TLS; empty is the newest."`
	CipherSuites   []string          `yaml:"cipher_suites" doc:"Cipher suites for TLS up to 1.2, by their names in Go; empty is a safe choice."`
	ReloadInterval pipeline.Duration `yaml:"reload_interval" doc:"How often the files are looked at for new certificates, which new connections then use; 0: never."`
}

// Validate reports missing files and versions that do not exist.
func (c *TLSConfig) Validate() error {
	var errs []error
	if c.CertFile == "" {
		errs = append(errs, pipeline.BadKey("cert_file", "must be set"))
	}
	if c.KeyFile == "" {
		errs = append(errs, pipeline.BadKey("key_file", "must be set"))
	}
	_, _, errLeast, errMost := certs.Versions(c.MinVersion, c.MaxVersion)
	if errLeast != nil {
		errs = append(errs, pipeline.BadKey("min_version", "%v", errLeast))
	}
	if errMost != nil {
		errs = append(errs, pipeline.BadKey("max_version", "%v", errMost))
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
			return nil, fmt.Errorf("%q is not a cipher suite that is safe to use; write one like TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", name)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// security is what one listener demands of its clients.
type security struct {
	tls     *certs.Source // nil: plain text
	auth    *authenticator
	tenancy *tenancy
}

// newSecurity makes the checks of a listener that speaks the given application protocols.
func newSecurity(set pipeline.Settings, c SecurityConfig, protocols ...string) (*security, error) {
	s := &security{}
	if t, on := c.TLS.Get(); on {
		least, most, errLeast, errMost := certs.Versions(t.MinVersion, t.MaxVersion)
		if err := errors.Join(errLeast, errMost); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		suites, err := cipherSuites(t.CipherSuites)
		if err != nil {
			return nil, err
		}
		base := &tls.Config{MinVersion: least, MaxVersion: most, CipherSuites: suites, NextProtos: protocols}
		s.tls = certs.ForServer(base, certs.Files{Cert: t.CertFile, Key: t.KeyFile, CA: t.ClientCAFile},
			follow(set, "certificates", t.ReloadInterval))
	}
	if a, on := c.Auth.Get(); on {
		s.auth = newAuthenticator(set, a)
	}
	if t, on := c.Tenancy.Get(); on && t.Enabled {
		s.tenancy = newTenancy(t)
	}
	return s, nil
}

// follow returns how files are followed by a component.
func follow(set pipeline.Settings, what string, interval pipeline.Duration) certs.Options {
	return certs.Logged(set.Logger, set.Env.Now, what, interval.Std())
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

// check lets a request in, and returns its context with the tenant. The error is a *[Denied].
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

// Reasons of refused requests that concern who the client is.
const (
	ReasonUnauthenticated = "unauthenticated"
	ReasonTenant          = "tenant"
)

// Denied is the error of a request that is not let in. It carries its gRPC status, by which [pipeline.HTTPStatus] and
// [pipeline.GRPCStatus] know the answer: Unauthenticated (401) or, for a tenant, PermissionDenied (403).
type Denied struct {
	Reason string // ReasonUnauthenticated or ReasonTenant
	Msg    string
}

// Error returns the message.
func (d *Denied) Error() string { return d.Msg }

// GRPCStatus returns the status of a gRPC answer.
func (d *Denied) GRPCStatus() *status.Status {
	if d.Reason == ReasonTenant {
		return status.New(codes.PermissionDenied, d.Msg)
	}
	return status.New(codes.Unauthenticated, d.Msg)
}

// DenyByClass answers a denied request with the status of the error's class and the text, on a line; for [HTTP.OnDenied].
func DenyByClass(w http.ResponseWriter, _ *http.Request, d *Denied) {
	code, _ := pipeline.HTTPStatus(d)
	http.Error(w, d.Msg, code)
}

// deny is the answer to a denied HTTP request where the component has none of its own: 401 and the bare text.
func deny(w http.ResponseWriter, _ *http.Request, d *Denied) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusUnauthorized)
	w.Write([]byte(d.Msg)) //nolint:errcheck // the client is gone
}
