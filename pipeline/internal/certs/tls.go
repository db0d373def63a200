package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// Files holds the paths of PEM files. "" means no file.
type Files struct {
	// Cert and Key hold this side's certificate, followed by its chain, and its private key. Both
	// or neither must be set.
	Cert, Key string
	// CA holds trusted certificate authorities. Without it, a client trusts the system's
	// authorities. With it, a server requires a client certificate signed by one of them.
	CA string
	// SystemCAs makes a client with a CA also trust the system's authorities.
	SystemCAs bool
}

// TLSSource is a TLS configuration that is reloaded from files. It is safe for concurrent use after
// Load.
type TLSSource struct {
	base   *tls.Config
	loader *Reloader[*tls.Config]
}

// NewServerTLS returns the TLS configuration of a listener. base holds the settings that do not
// come from files, such as NextProtos.
func NewServerTLS(base *tls.Config, f Files, o ReloadOptions) *TLSSource {
	return newTLSSource(base, f, o, func(c *tls.Config, pool *x509.CertPool) {
		c.ClientCAs, c.ClientAuth = pool, tls.RequireAndVerifyClientCert
	})
}

// NewClientTLS returns the TLS configuration of a client. base holds the settings that do not come
// from files.
func NewClientTLS(base *tls.Config, f Files, o ReloadOptions) *TLSSource {
	return newTLSSource(base, f, o, func(c *tls.Config, pool *x509.CertPool) { c.RootCAs = pool })
}

func newTLSSource(base *tls.Config, f Files, o ReloadOptions, trust func(*tls.Config, *x509.CertPool)) *TLSSource {
	parse := func(contents [][]byte) (*tls.Config, error) {
		c := base.Clone()
		if f.Cert != "" {
			pair, err := tls.X509KeyPair(contents[0], contents[1])
			if err != nil {
				return nil, fmt.Errorf("certificate %s with key %s: %w", f.Cert, f.Key, err)
			}
			c.Certificates = []tls.Certificate{pair}
		}
		if f.CA != "" {
			pool, err := f.pool(contents[2])
			if err != nil {
				return nil, err
			}
			trust(c, pool)
		}
		return c, nil
	}
	return &TLSSource{base: base, loader: NewReloader([]string{f.Cert, f.Key, f.CA}, o, parse)}
}

// Load reads the files for the first time. It must succeed before other methods are called. The
// error names the file.
func (s *TLSSource) Load() error { return s.loader.Load() }

// Config returns the current configuration for a handshake. It is shared; callers must clone it
// before they modify it.
func (s *TLSSource) Config() *tls.Config { return s.loader.Get() }

// Listener returns a configuration for a server, which calls Config for each handshake. Sessions
// are resumed only as long as the files do not change.
func (s *TLSSource) Listener() *tls.Config {
	c := s.base.Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.Config(), nil }
	return c
}

func (f Files) pool(pem []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if f.SystemCAs {
		var err error
		if pool, err = x509.SystemCertPool(); err != nil {
			return nil, fmt.Errorf("reading system certificates: %w", err)
		}
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s contains no PEM certificate", f.CA)
	}
	return pool, nil
}

// Versions parses the values of min_version and max_version, which are `1.0` to `1.3`, or "" for
// the default (0). It returns one error for each value.
func Versions(minVersion, maxVersion string) (lo, hi uint16, errMin, errMax error) {
	lo, errMin = parseVersion(minVersion)
	hi, errMax = parseVersion(maxVersion)
	if errMax == nil && hi != 0 && hi < lo {
		errMax = fmt.Errorf("%s is below min_version (%s)", maxVersion, minVersion)
	}
	return lo, hi, errMin, errMax
}

func parseVersion(s string) (uint16, error) {
	versions := map[string]uint16{"": 0, "1.0": tls.VersionTLS10, "1.1": tls.VersionTLS11, "1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}
	v, ok := versions[s]
	if !ok {
		return 0, fmt.Errorf("unknown TLS version %q; use 1.0, 1.1, 1.2 or 1.3", s)
	}
	return v, nil
}
