package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/certs"
)

// SecurityConfig holds the blocks for transport security, authentication and tenancy. Each is off
// unless it is configured.
type SecurityConfig struct {
	TLS     pipeline.Optional[TLSConfig]     `yaml:"tls" doc:"TLS settings. With the block, plaintext connections are refused."`
	Auth    pipeline.Optional[AuthConfig]    `yaml:"auth" doc:"Authentication of clients."`
	Tenancy pipeline.Optional[TenancyConfig] `yaml:"tenancy" doc:"Separation of tenants: every request must have a header that names its tenant."`

	TrustedProxies []string `yaml:"trusted_proxies" doc:"Addresses or networks, such as 10.0.0.0/8, of proxies whose header X-Forwarded-For names the client, for limits on passwords and queries and for explanations of sampling strategies. By default, all clients of a proxy count as one client."`
}

func defaultSecurity() SecurityConfig {
	return SecurityConfig{
		TLS:     pipeline.Absent(TLSConfig{MinVersion: "1.2", ReloadInterval: pipeline.Duration(defaultReload)}),
		Auth:    pipeline.Absent(DefaultAuthConfig()),
		Tenancy: pipeline.Absent(TenancyConfig{Enabled: true, Header: defaultTenantHeader}),
	}
}

// SeparatesTenants implements [pipeline.TenantSeparator].
func (c *SecurityConfig) SeparatesTenants() bool {
	t, on := c.Tenancy.Get()
	return on && t.Enabled
}

// severalTenants reports whether clients can name more than one tenant.
func (c *SecurityConfig) severalTenants() bool {
	t, _ := c.Tenancy.Get()
	return c.SeparatesTenants() && len(t.Tenants) != 1
}

// AuthenticatesClients reports whether clients need credentials or a client certificate.
func (c *SecurityConfig) AuthenticatesClients() bool {
	_, auth := c.Auth.Get()
	t, on := c.TLS.Get()
	return auth || on && t.ClientCAFile != ""
}

// TLSConfig is the block `tls`.
type TLSConfig struct {
	CertFile       string            `yaml:"cert_file" path:"file" doc:"PEM file of the certificate, followed by its chain."`
	KeyFile        string            `yaml:"key_file" path:"file" doc:"PEM file of the private key for cert_file."`
	ClientCAFile   string            `yaml:"client_ca_file" path:"file" doc:"PEM file of certificate authorities that may sign the certificates of clients, which are then required."`
	MinVersion     string            `yaml:"min_version" doc:"Minimum TLS version: 1.0, 1.1, 1.2 or 1.3."`
	MaxVersion     string            `yaml:"max_version" doc:"Maximum TLS version. Empty allows the newest."`
	CipherSuites   []string          `yaml:"cipher_suites" doc:"Cipher suites for TLS 1.2 and older, by their Go names. Empty selects a safe default."`
	ReloadInterval pipeline.Duration `yaml:"reload_interval" doc:"Interval at which the files are checked for changes, which new connections use. 0 disables reloading."`
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
	tlsBase *tls.Config      // settings of tls that are not in files; nil if plaintext
	auth    *authenticator   // nil if off
	tenancy *tenancy         // nil if off
	proxies proxies

	anyTenant bool // whether clients with only a certificate can name several tenants
	log       *zap.Logger
}

// newSecurity returns the checks of the named listener. protocols are announced in the TLS
// handshake (ALPN).
func newSecurity(set pipeline.Settings, listener string, c SecurityConfig, protocols ...string) (*security, error) {
	trusted, err := parseProxies(c.TrustedProxies)
	if err != nil {
		return nil, err
	}
	s := &security{proxies: trusted, log: set.Logger}
	if t, on := c.TLS.Get(); on {
		minVersion, maxVersion, errMin, errMax := certs.Versions(t.MinVersion, t.MaxVersion)
		if err := errors.Join(errMin, errMax); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		suites, err := cipherSuites(t.CipherSuites)
		if err != nil {
			return nil, err
		}
		s.tlsBase = &tls.Config{MinVersion: minVersion, MaxVersion: maxVersion, CipherSuites: suites, NextProtos: protocols}
		s.tls = certs.NewServerTLS(s.tlsBase, certs.Files{Cert: t.CertFile, Key: t.KeyFile, CA: t.ClientCAFile},
			reloadOptions(set, "certificates", t.ReloadInterval))
		s.anyTenant = t.ClientCAFile != "" && c.severalTenants()
	}
	if a, on := c.Auth.Get(); on {
		if s.auth, err = newAuthenticator(set, listener, a); err != nil {
			return nil, fmt.Errorf("auth: %w", err)
		}
		s.auth.forTenants, s.anyTenant = c.severalTenants(), false
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

// addProtocol adds a protocol that clients can choose in the TLS handshake. Earlier protocols have
// precedence. It must be called before load.
func (s *security) addProtocol(name string) {
	if s.tlsBase != nil {
		s.tlsBase.NextProtos = append(s.tlsBase.NextProtos, name)
	}
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
	if s.anyTenant {
		s.log.Warn("clients can name any tenant, because certificates are not limited to tenants", zap.String("remedy",
			"set auth, with the tenants of each token after it in auth::bearer_tokens_file, "+
				"or make a listener for each tenant, with its name in tenancy::tenants"))
	}
	return nil
}

// stop ends the checks that requests wait for.
func (s *security) stop() {
	if s.auth != nil {
		s.auth.stop()
	}
}

// check authenticates a request from the remote address and returns its context with the tenant and
// the client. It may wait for the comparison of a password. The error is a *[Denied].
func (s *security) check(ctx context.Context, remote string, header func(name string) []string) (context.Context, error) {
	checked, l, err := s.beginRequest(ctx, remote, header)
	if l != nil {
		err = l.wait(ctx)
	}
	if err != nil {
		return ctx, err
	}
	return checked, nil
}

// beginRequest is like check but does not block: if it returns a login, the login decides.
func (s *security) beginRequest(ctx context.Context, remote string, header func(name string) []string) (context.Context, *login, error) {
	var who identity
	var err error
	addr := s.proxies.address(remote, header)
	ctx = WithClient(ctx, addr)
	if s.auth != nil {
		if who, err = s.auth.check(network(addr), header); err != nil {
			return ctx, nil, err
		}
	}
	tenant, denied := "", (*Denied)(nil)
	if s.tenancy != nil {
		tenant, denied = s.tenancy.tenant(header(s.tenancy.header))
		ctx = context.WithValue(ctx, tenantKey{}, tenant)
	}
	if denied == nil {
		denied = who.tenants.deny(tenant)
	}
	switch {
	case who.login != nil:
		who.login.denied = denied // do not reveal it to a client with a wrong password
	case denied != nil:
		return ctx, nil, denied
	}
	return ctx, who.login, nil
}

// Denied is the error of a request that fails authentication, has no valid tenant, or comes from a
// web page that may not send it. [pipeline.HTTPStatus] and [pipeline.GRPCStatus] use its gRPC
// status: Unauthenticated (401); for a tenant or a web page, PermissionDenied (403); if the
// credentials were not checked, ResourceExhausted (429) or, while the server stops, Unavailable
// (503).
type Denied struct {
	Reason     string // such as ReasonUnauthenticated or ReasonTenant
	Msg        string
	RetryAfter time.Duration // delay before the client may retry; 0 if a retry would be refused too
}

// Error returns the message.
func (d *Denied) Error() string { return d.Msg }

// GRPCStatus returns the status of a gRPC response.
func (d *Denied) GRPCStatus() *status.Status {
	code := codes.Unauthenticated
	switch {
	case d.Reason == ReasonTenant, d.Reason == ReasonHost, d.Reason == ReasonCrossOrigin, d.Reason == ReasonPrivileged:
		code = codes.PermissionDenied
	case d.Reason == ReasonStopping || d.Reason == ReasonIncomplete:
		code = codes.Unavailable
	case d.RetryAfter > 0:
		code = codes.ResourceExhausted
	}
	s := status.New(code, d.Msg)
	if d.RetryAfter > 0 {
		if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(d.RetryAfter)}); err == nil {
			return detailed
		}
	}
	return s
}

// DenyWithStatus responds to a denied request with 401 or 403, see [Denied], and one line of text.
// Pass it to [HTTP.OnDenied].
func DenyWithStatus(w http.ResponseWriter, _ *http.Request, d *Denied) {
	code, _ := pipeline.HTTPStatus(d)
	http.Error(w, d.Msg, code)
}

// deny sends the default response to a denied HTTP request: the text without a line end. The status
// is 401, even if the tenant is refused, unless the request may be retried.
func deny(w http.ResponseWriter, _ *http.Request, d *Denied) {
	code, _ := pipeline.HTTPStatus(d)
	if d.Reason == ReasonTenant {
		code = http.StatusUnauthorized
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	w.Write([]byte(d.Msg)) //nolint:errcheck // the client is gone
}
